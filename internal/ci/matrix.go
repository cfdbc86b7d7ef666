// Package ci turns ci/matrix.yaml into a GitHub Actions build matrix and
// writes the workflows that use it.
package ci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"dot4fa/internal/fault"
)

// MaxJobs is GitHub's limit on the jobs of one matrix.
const MaxJobs = 256

// Spec is the content of ci/matrix.yaml.
type Spec struct {
	Axes    Axes              `yaml:"axes"`
	Images  map[string]string `yaml:"images"` // ROCm version -> image reference by digest
	Exclude []Cell            `yaml:"exclude"`
	Include []Cell            `yaml:"include"`
}

// Axes are the lists whose product is the matrix.
type Axes struct {
	Upstream []string `yaml:"upstream"` // "pin", "latest" or an upstream tag or commit
	ROCm     []string `yaml:"rocm"`     // keys of Images
	Target   []string `yaml:"target"`   // GPU targets
	Recipe   []string `yaml:"recipe"`   // recipe names
}

// Cell names a value on some of the axes. As an exclude rule an empty field
// matches every value; as an include rule it means "none".
type Cell struct {
	Upstream string `yaml:"upstream"`
	ROCm     string `yaml:"rocm"`
	Target   string `yaml:"target"`
	Recipe   string `yaml:"recipe"`
}

// Job is one element of the matrix. Image and Target are empty for a job that
// runs without ROCm.
type Job struct {
	Name     string `json:"name"`
	Upstream string `json:"upstream"`
	ROCm     string `json:"rocm"`
	Image    string `json:"image"`
	Target   string `json:"target"`
	Recipe   string `json:"recipe"`
}

// Matrix is what GitHub's `strategy.matrix` takes through fromJSON.
type Matrix struct {
	Include []Job `json:"include"`
}

// Load reads a matrix specification strictly. recipes are the recipe names
// that exist; name is the file name for messages.
func Load(data []byte, name string, recipes []string) (*Spec, error) {
	var s Spec
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Usage, "%w", err).At("%s", name).
			Hintf("allowed keys: axes{upstream,rocm,target,recipe}, images, exclude, include")
	}
	if err := s.validate(name, recipes); err != nil {
		return nil, err
	}
	return &s, nil
}

var (
	byDigest = regexp.MustCompile(`^[a-z0-9.\-/]+@sha256:[0-9a-f]{64}$`)
	safeWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

func (s *Spec) validate(name string, recipes []string) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Usage, format, args...).At("%s", name)
	}
	axes := []struct {
		name   string
		values []string
	}{{"upstream", s.Axes.Upstream}, {"rocm", s.Axes.ROCm}, {"target", s.Axes.Target}, {"recipe", s.Axes.Recipe}}
	for _, a := range axes {
		if len(a.values) == 0 {
			return bad("axis %q is empty", a.name).Hintf("give at least one value, or drop the matrix")
		}
		seen := map[string]bool{}
		for _, v := range a.values {
			if !safeWord.MatchString(v) {
				return bad("axis %q has the impossible value %q", a.name, v).
					Hintf("letters, digits, '.', '_' and '-' only: values end in job names and shell steps")
			}
			if seen[v] {
				return bad("axis %q lists %q twice", a.name, v).Hintf("remove one")
			}
			seen[v] = true
		}
	}
	for version, image := range s.Images {
		if !byDigest.MatchString(image) {
			return bad("image of rocm %s is not named by digest: %q", version, image).
				Hintf("write name@sha256:<64 hex digits>")
		}
	}
	cells := slices.Concat(s.Include, s.Exclude)
	for _, c := range cells {
		for _, v := range []string{c.Upstream, c.ROCm, c.Target, c.Recipe} {
			if v != "" && !safeWord.MatchString(v) {
				return bad("a rule has the impossible value %q", v).Hintf("letters, digits, '.', '_' and '-' only")
			}
		}
	}
	known := slices.Clone(s.Axes.Recipe)
	for _, c := range s.Include {
		if c.Upstream == "" || c.Recipe == "" {
			return bad("an include rule must name upstream and recipe: %+v", c).Hintf("add the missing one")
		}
		if (c.ROCm == "") != (c.Target == "") {
			return bad("an include rule names a rocm version without a target, or the reverse: %+v", c).
				Hintf("a job has both or neither")
		}
		known = append(known, c.Recipe)
	}
	for _, r := range known {
		if !slices.Contains(recipes, r) {
			return bad("unknown recipe %q", r).Hintf("recipes here: %s", strings.Join(recipes, ", "))
		}
	}
	for _, v := range append(slices.Clone(s.Axes.ROCm), rocmOf(s.Include)...) {
		if s.Images[v] == "" {
			return bad("rocm %q has no image", v).Hintf("add it under images, by digest")
		}
	}
	return nil
}

func rocmOf(cells []Cell) (versions []string) {
	for _, c := range cells {
		if c.ROCm != "" {
			versions = append(versions, c.ROCm)
		}
	}
	return versions
}

// Expand gives the jobs in a stable order: the product of the axes, less what
// an exclude rule matches, then the includes. A rule without effect is an
// error, since it is a sign that an axis changed under it.
func (s *Spec) Expand() (*Matrix, error) {
	var jobs []Job
	used := make([]bool, len(s.Exclude))
	for _, up := range s.Axes.Upstream {
		for _, recipe := range s.Axes.Recipe {
			for _, rocm := range s.Axes.ROCm {
				for _, target := range s.Axes.Target {
					c := Cell{up, rocm, target, recipe}
					excluded := false
					for i, x := range s.Exclude {
						if x.matches(c) {
							used[i], excluded = true, true
						}
					}
					if !excluded {
						jobs = append(jobs, s.job(c))
					}
				}
			}
		}
	}
	for i, u := range used {
		if !u {
			return nil, fault.New(fault.Usage, "exclude rule %d matches no job: %+v", i+1, s.Exclude[i]).
				Hintf("remove it, or mend the value that no axis has")
		}
	}
	for _, c := range s.Include {
		j := s.job(c)
		if slices.Contains(jobs, j) {
			return nil, fault.New(fault.Usage, "include rule repeats the job %s", j.Name).Hintf("remove it")
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return nil, fault.New(fault.Usage, "the matrix has no job").Hintf("an exclude rule matches everything")
	}
	if len(jobs) > MaxJobs {
		return nil, fault.New(fault.Usage, "the matrix has %d jobs, more than the %d that GitHub runs", len(jobs), MaxJobs).
			Hintf("exclude some combinations")
	}
	return &Matrix{Include: jobs}, nil
}

func (x Cell) matches(c Cell) bool {
	ok := func(rule, value string) bool { return rule == "" || rule == value }
	return ok(x.Upstream, c.Upstream) && ok(x.ROCm, c.ROCm) && ok(x.Target, c.Target) && ok(x.Recipe, c.Recipe)
}

func (s *Spec) job(c Cell) Job {
	name := fmt.Sprintf("%s-%s", c.Recipe, c.Upstream)
	if c.ROCm != "" {
		name += fmt.Sprintf("-%s-rocm%s", c.Target, c.ROCm)
	}
	return Job{Name: name, Upstream: c.Upstream, ROCm: c.ROCm, Image: s.Images[c.ROCm], Target: c.Target, Recipe: c.Recipe}
}

// Filter says which jobs to keep. The values given for one axis are
// alternatives, "" meaning a job without a value there; the axes go together.
type Filter map[string][]string

// ParseFilter reads "axis=value" words.
func ParseFilter(words []string) (Filter, error) {
	f := Filter{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || !slices.Contains(axisNames, key) {
			return nil, fault.New(fault.Usage, "%q does not choose jobs", w).
				Hintf("write axis=value with one of the axes %s; target= is a job without a target", strings.Join(axisNames, ", "))
		}
		f[key] = append(f[key], value)
	}
	return f, nil
}

var axisNames = []string{"upstream", "rocm", "target", "recipe"}

// Only keeps the jobs that f chooses. A value that no job has is an error: a
// filter with a slip in it would build nothing and look green.
func (m *Matrix) Only(f Filter) (*Matrix, error) {
	for _, axis := range axisNames {
		for _, v := range f[axis] {
			if !slices.ContainsFunc(m.Include, func(j Job) bool { return j.axis(axis) == v }) {
				return nil, fault.New(fault.Usage, "no job has the %s %q", axis, v).
					Hintf("`dot4fa ci matrix` prints all jobs")
			}
		}
	}
	kept := &Matrix{Include: []Job{}}
	for _, j := range m.Include {
		if f.keeps(j) {
			kept.Include = append(kept.Include, j)
		}
	}
	if len(kept.Include) == 0 {
		return nil, fault.New(fault.Usage, "no job has all of these values together").Hintf("`dot4fa ci matrix` prints all jobs")
	}
	return kept, nil
}

func (f Filter) keeps(j Job) bool {
	for axis, values := range f {
		if !slices.Contains(values, j.axis(axis)) {
			return false
		}
	}
	return true
}

func (j Job) axis(name string) string {
	switch name {
	case "upstream":
		return j.Upstream
	case "rocm":
		return j.ROCm
	case "target":
		return j.Target
	}
	return j.Recipe
}
