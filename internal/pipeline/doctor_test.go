package pipeline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/machine"
	"dot4fa/internal/progress"
	"dot4fa/internal/recipe"
)

// A build says which GPUs there are, what it builds for and why, and of one that
// it does not build for with which flag it would.
func TestSayGPUs(t *testing.T) {
	for _, c := range []struct {
		name    string
		version string // the kernel's number of the GPU; "" for none
		vars    string
		given   []string
		want    []string
	}{
		{"named", "110000", "", nil, []string{"gpu       building for gfx1100 (recipe rdna3); found gfx1100 (96 CUs) by kfd"}},
		{"other", "110001", "", nil, []string{
			"gpu       building for gfx1100 (recipe rdna3); found gfx1101 (96 CUs) by kfd",
			"dot4fa: note: recipe rdna3 names gfx1100, and the GPU here is gfx1101 (96 CUs): it would find no code for it",
			"dot4fa: hint: dot4fa build --gpu-targets gfx1101"}},
		{"given", "110001", "", []string{"gfx1101"}, []string{"gpu       building for gfx1101 (--gpu-targets); found gfx1101 (96 CUs) by kfd"}},
		{"ci", "110001", "CI=true", nil, []string{"gpu       building for gfx1100 (recipe rdna3); GPUs are not looked for in a CI job (CI=true)"}},
		{"none", "", "", nil, []string{"gpu       building for gfx1100 (recipe rdna3); no GPU here (absent)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := machine.System{Root: t.TempDir(), Vars: []string{"PATH=/bin", c.vars}, Devices: map[string]machine.Device{
				"/dev/kfd": {Mode: 0o666}, "/dev/dri/renderD128": {Mode: 0o666}}}
			if c.version != "" {
				file := filepath.Join(on.Root, "sys/class/kfd/kfd/topology/nodes/1/properties")
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				text := "simd_count 192\nsimd_per_cu 2\ngfx_target_version " + c.version + "\ndrm_render_minor 128\n"
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			rdna3, err := recipe.Load(os.DirFS("../.."), "rdna3")
			if err == nil && c.given != nil {
				err = rdna3.SetGPUTargets(c.given)
			}
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			r := New(Options{Recipe: rdna3, Machine: on, TargetsGiven: c.given != nil, Report: progress.New(&said, nil)})
			r.sayGPUs(context.Background())
			if got := strings.Split(strings.TrimSpace(said.String()), "\n"); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("it says\n%s\nwant\n%s", said.String(), strings.Join(c.want, "\n"))
			}
		})
	}
}
