package ci

import (
	"os"
	"strings"
	"testing"

	"dot4fa/internal/fault"
)

var recipes = []string{"base", "cpu", "cuda", "rdna3"}

const small = `
axes:
  upstream: [pin, latest]
  rocm: ["6.4.4", "7.2.1"]
  target: [gfx1100, gfx1201]
  recipe: [rdna3]
images:
  "6.4.4": docker.io/rocm/dev@sha256:` + "0000000000000000000000000000000000000000000000000000000000000000" + `
  "7.2.1": docker.io/rocm/dev@sha256:` + "1111111111111111111111111111111111111111111111111111111111111111" + `
`

func TestExpand(t *testing.T) {
	spec, err := Load([]byte(small+`
exclude:
  - {upstream: latest, rocm: "6.4.4"}
include:
  - {upstream: pin, recipe: cpu}
`), "m.yaml", recipes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := spec.Expand()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range m.Include {
		names = append(names, j.Name)
	}
	want := "rdna3-pin-gfx1100-rocm6.4.4 rdna3-pin-gfx1201-rocm6.4.4 rdna3-pin-gfx1100-rocm7.2.1 rdna3-pin-gfx1201-rocm7.2.1 " +
		"rdna3-latest-gfx1100-rocm7.2.1 rdna3-latest-gfx1201-rocm7.2.1 cpu-pin"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("jobs\n got %s\nwant %s", got, want)
	}
	for _, c := range []struct {
		words string
		jobs  int
		fault string
	}{
		{"", 7, ""},
		{"recipe=cpu", 1, ""},
		{"target=gfx1100 target=", 4, ""},
		{"target=gfx1100 target= upstream=pin", 3, ""},
		{"target=gfx1100 upstream=latest rocm=7.2.1", 1, ""},
		{"recipe=cpu target=gfx1100", 0, "together"},
		{"target=gfx110", 0, `no job has the target "gfx110"`},
		{"gpu=gfx1100", 0, "does not choose jobs"},
		{"gfx1100", 0, "does not choose jobs"},
	} {
		f, err := ParseFilter(strings.Fields(c.words))
		var got *Matrix
		if err == nil {
			got, err = m.Only(f)
		}
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) || fault.Code(err) != fault.Usage {
				t.Errorf("%q: error %v, want one with %q", c.words, err, c.fault)
			}
		case err != nil:
			t.Errorf("%q: %v", c.words, err)
		case len(got.Include) != c.jobs:
			t.Errorf("%q: %d jobs, want %d", c.words, len(got.Include), c.jobs)
		}
	}
}

func TestBadMatrix(t *testing.T) {
	for name, c := range map[string]struct{ add, want string }{
		"unknown key":      {"axis: 1", "axis"},
		"stale exclude":    {"exclude: [{target: gfx906}]", "matches no job"},
		"unknown recipe":   {"include: [{upstream: pin, recipe: cpuu}]", `unknown recipe "cpuu"`},
		"no image":         {`include: [{upstream: pin, recipe: rdna3, rocm: "9.9", target: gfx1100}]`, "no image"},
		"half a ROCm job":  {`include: [{upstream: pin, recipe: rdna3, target: gfx1100}]`, "without a target, or the reverse"},
		"repeated job":     {`include: [{upstream: pin, recipe: rdna3, rocm: "7.2.1", target: gfx1100}]`, "repeats the job"},
		"excluded all":     {"exclude: [{recipe: rdna3}]", "no job"},
		"shell in a value": {`include: [{upstream: "pin; rm -rf /", recipe: cpu}]`, "impossible value"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := Load([]byte(small+c.add), "m.yaml", recipes)
			if err == nil {
				_, err = spec.Expand()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
				t.Errorf("code %d hint %q", fault.Code(err), fault.Hint(err))
			}
		})
	}
	if _, err := Load([]byte(strings.Replace(small, "@sha256:0", ":latest", 1)), "m.yaml", recipes); err == nil {
		t.Error("an image by tag is accepted")
	}
}

func TestOwnMatrix(t *testing.T) {
	data, err := os.ReadFile("../../ci/matrix.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := Load(data, "ci/matrix.yaml", recipes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Expand(); err != nil {
		t.Fatal(err)
	}
}
