package build

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"dot4fa/internal/recipe"
	"dot4fa/internal/toolchain"
)

// PresetsFile is where CMake looks for a user's presets. They have what dot4fa
// configures with, for cmake --preset and for editors.
const PresetsFile = "CMakeUserPresets.json"

// presetName is the one configure and build preset.
const presetName = "dot4fa"

// ErrOwnPresets is the error of presets that somebody else has written.
var ErrOwnPresets = errors.New("the presets are not dot4fa's")

// presets follows CMake's format, version 3: CMake 3.21.
type presets struct {
	Version   int                          `json:"version"`
	Vendor    map[string]map[string]string `json:"vendor"`
	Configure []configurePreset            `json:"configurePresets"`
	Build     []buildPreset                `json:"buildPresets"`
}

type configurePreset struct {
	Name        string            `json:"name"`
	Display     string            `json:"displayName"`
	Generator   string            `json:"generator"`
	Dir         string            `json:"binaryDir"`
	CMake       string            `json:"cmakeExecutable,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Cache       map[string]string `json:"cacheVariables"`
}

type buildPreset struct {
	Name      string   `json:"name"`
	Configure string   `json:"configurePreset"`
	Jobs      int      `json:"jobs"`
	Targets   []string `json:"targets,omitempty"`
}

// literal keeps CMake from expanding macros in a value.
func literal(v string) string { return strings.ReplaceAll(v, "$", "${dollar}") }

func literals(values map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		out[k] = literal(v)
	}
	return out
}

// Presets returns the presets that configure t as ConfigureCommand does, in the
// same directory, and build the recipe's targets.
func (t Tree) Presets(r *recipe.Recipe, tools toolchain.Set, jobs Jobs) ([]byte, error) {
	rel, err := filepath.Rel(t.Source, t.Dir)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, e := range environment(r, tools) {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	p := presets{
		Version: 3,
		Vendor:  map[string]map[string]string{presetName: {"recipe": r.Name, "written": "by dot4fa configure, which writes it again"}},
		Configure: []configurePreset{{
			Name: presetName, Display: "dot4fa " + r.Name, Generator: generator, CMake: literal(tools.CMake.Path),
			Dir: "${sourceDir}/" + filepath.ToSlash(rel), Environment: literals(env), Cache: literals(cacheEntries(r, tools)),
		}},
		Build: []buildPreset{{Name: presetName, Configure: presetName, Jobs: jobs.N, Targets: r.Targets}},
	}
	data, err := json.MarshalIndent(p, "", "  ")
	return append(data, '\n'), err
}

// WritePresets writes the presets into the work tree. A file there that dot4fa
// did not write is left alone: ErrOwnPresets.
func (t Tree) WritePresets(r *recipe.Recipe, tools toolchain.Set, jobs Jobs) error {
	name := filepath.Join(t.Source, PresetsFile)
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) && !t.OwnsPresets() {
		return ErrOwnPresets
	}
	data, err := t.Presets(r, tools, jobs)
	if err != nil {
		return err
	}
	return renameio.WriteFile(name, data, 0o644)
}

// OwnsPresets reports whether the presets in the work tree are dot4fa's.
func (t Tree) OwnsPresets() bool {
	data, err := os.ReadFile(filepath.Join(t.Source, PresetsFile))
	var p presets
	return err == nil && json.Unmarshal(data, &p) == nil && p.Vendor[presetName] != nil
}
