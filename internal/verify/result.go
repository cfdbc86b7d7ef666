package verify

import (
	"encoding/json"
	"os"
	"path/filepath"

	"dot4fa/internal/fault"
)

// About is what was built, and by what.
type About struct {
	Tool     string `json:"dot4fa"`
	Recipe   string `json:"recipe"`
	Upstream string `json:"llama_cpp"` // tag
	Commit   string `json:"llama_cpp_commit"`
	Platform string `json:"platform"`
}

// Report is the result, and what `dot4fa verify --json` prints.
type Report struct {
	Format   int          `json:"format"` // 1
	Made     string       `json:"made"`   // UTC
	About    About        `json:"about"`
	Programs string       `json:"programs"` // sum of test-backend-ops and of the libraries beside it
	Backends []Backend    `json:"backends"`
	LeftOut  []string     `json:"left_out"` // parts that did not run: nothing is known of them
	Ops      []OpResult   `json:"ops,omitempty"`
	State    *StateResult `json:"state,omitempty"`
	Depth    []Attention  `json:"depth,omitempty"` // computed from the format's model
	Quality  *Quality     `json:"quality,omitempty"`
	Failures []string     `json:"failures"` // what does not hold; empty when everything that ran holds
}

// keep leaves the report where Load finds it.
func (o *Options) keep(rep *Report) error {
	if _, err := openStore(o.Dir, false); err != nil {
		return err
	}
	return rep.Write(filepath.Join(o.Dir, lastReport))
}

const lastReport = "report.json"

// Load reads the report of the last run that kept its results in dir. The error
// is fs.ErrNotExist when there is none.
func Load(dir string) (*Report, error) {
	data, err := os.ReadFile(filepath.Join(dir, lastReport))
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Parse reads a report that was written as JSON.
func Parse(data []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fault.New(fault.Failure, "the stored verification is damaged: %w", err).Hintf("make it again: dot4fa verify")
	}
	if r.Format != 1 {
		return nil, fault.New(fault.Failure, "the stored verification has format %d, not 1", r.Format).Hintf("make it again: dot4fa verify")
	}
	return r, nil
}

// Of reports whether the report was made with a program, test-backend-ops, and
// the libraries that lie beside it now.
func (r *Report) Of(program string) bool {
	sum, err := sumPrograms(program)
	return err == nil && sum == r.Programs
}
