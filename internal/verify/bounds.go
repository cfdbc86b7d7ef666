package verify

import (
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed bounds.yaml
var boundsYAML []byte

// Bounds are the recorded limits of the divergence. See bounds.yaml.
type Bounds struct {
	Format   int           `yaml:"format"`
	Models   []ModelBounds `yaml:"models"`
	Relative struct {
		To     string  `yaml:"to"`
		Factor float64 `yaml:"factor"`
		Floor  float64 `yaml:"floor"`
		Source string  `yaml:"source"`
	} `yaml:"relative"`
}

// ModelBounds are those of one model and text in one setting.
type ModelBounds struct {
	SHA256     string             `yaml:"sha256"`
	Name       string             `yaml:"name"`
	TextSHA256 string             `yaml:"text_sha256"`
	Backend    string             `yaml:"backend"`
	Ctx        int                `yaml:"ctx"`
	Chunks     int                `yaml:"chunks"`
	Source     string             `yaml:"source"`
	KLD        map[string]float64 `yaml:"kld"`
}

// Bound is what a cell was held against.
type Bound struct {
	Limit  float64 `json:"limit"`
	Source string  `json:"source"`
	Holds  bool    `json:"holds"`
}

// LoadBounds returns the recorded bounds.
func LoadBounds() (*Bounds, error) {
	b := &Bounds{}
	if err := yaml.Unmarshal(boundsYAML, b); err != nil {
		return nil, fmt.Errorf("bounds.yaml: %w", err)
	}
	if b.Format != 1 || b.Relative.Factor < 1 || b.Relative.To == "" {
		return nil, fmt.Errorf("bounds.yaml: format %d, factor %g", b.Format, b.Relative.Factor)
	}
	return b, nil
}

// recorded finds the bounds for a setting.
func (b *Bounds) recorded(q *Quality, ctx int) *ModelBounds {
	for i, m := range b.Models {
		if m.SHA256 == q.Model.SHA256 && m.TextSHA256 == q.Text.SHA256 && m.Ctx == ctx && m.Chunks == q.Chunks && m.Backend == q.Backend {
			return &b.Models[i]
		}
	}
	return nil
}

// judge gives every cell with a packed16 K its bound.
func (b *Bounds) judge(q *Quality) {
	for i := range q.Cells {
		c := &q.Cells[i]
		if !c.packed() || c.Problem != "" {
			continue
		}
		if m := b.recorded(q, c.Ctx); m != nil {
			if limit, ok := m.KLD[c.K+"/"+c.V]; ok {
				c.Bound = &Bound{limit, m.Source, c.KLD.Mean <= limit}
				continue
			}
		}
		for _, other := range q.Cells {
			if other.K == b.Relative.To && other.V == c.V && other.Ctx == c.Ctx && other.Problem == "" {
				limit := b.Relative.Factor*other.KLD.Mean + b.Relative.Floor
				c.Bound = &Bound{limit, fmt.Sprintf("%g × %s/%s of this run; %s", b.Relative.Factor, b.Relative.To, c.V, b.Relative.Source), c.KLD.Mean <= limit}
			}
		}
		if c.Bound == nil {
			c.Problem = "there is nothing to hold it against"
		}
	}
}
