package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dot4fa/internal/recipe"
	"dot4fa/internal/toolchain"
)

// presetTree is a project that any C compiler builds, in a directory whose name
// CMake could read as a macro.
func presetTree(t *testing.T) (Tree, *recipe.Recipe, toolchain.Set) {
	t.Helper()
	cmake, err := exec.LookPath("cmake")
	if err != nil {
		t.Skip("no cmake on PATH")
	}
	if _, err := exec.LookPath("ninja"); err != nil {
		t.Skip("no ninja on PATH")
	}
	dir := filepath.Join(t.TempDir(), "a b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	project := "cmake_minimum_required(VERSION 3.21)\nproject(p LANGUAGES NONE)\n" +
		"message(STATUS \"word is ${WORD}\")\nadd_custom_target(one COMMAND echo made one)\nadd_custom_target(two COMMAND echo made two)\n"
	if err := os.WriteFile(filepath.Join(dir, "CMakeLists.txt"), []byte(project), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &recipe.Recipe{Name: "p", Backend: recipe.CPU, CMake: map[string]string{"WORD": "$env{HOME};x"}, Targets: []string{"two"}}
	return TreeOf(dir), r, toolchain.Set{CMake: toolchain.Tool{Path: cmake}}
}

func cmakeIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("cmake", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cmake %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPresetsDriveCMake(t *testing.T) {
	tree, r, tools := presetTree(t)
	if err := tree.WritePresets(r, tools, Jobs{N: 2}); err != nil {
		t.Fatal(err)
	}
	if out := cmakeIn(t, tree.Source, "--list-presets"); !strings.Contains(out, `"dot4fa"`) {
		t.Errorf("cmake --list-presets:\n%s", out)
	}
	if out := cmakeIn(t, tree.Source, "--preset", "dot4fa"); !strings.Contains(out, "word is $env{HOME};x") {
		t.Errorf("a value did not come through as it is:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(tree.Dir, "build.ninja")); err != nil {
		t.Errorf("the preset configures elsewhere: %v", err)
	}
	if out := cmakeIn(t, tree.Source, "--build", "--preset", "dot4fa"); !strings.Contains(out, "made two") || strings.Contains(out, "made one") {
		t.Errorf("the build preset builds not the recipe's targets:\n%s", out)
	}
}

func TestPresetsOfSomebodyElse(t *testing.T) {
	tree, r, tools := presetTree(t)
	name := filepath.Join(tree.Source, PresetsFile)
	theirs := []byte(`{"version": 3, "configurePresets": [{"name": "mine"}]}`)
	if err := os.WriteFile(name, theirs, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := tree.WritePresets(r, tools, Jobs{N: 2}); !errors.Is(err, ErrOwnPresets) {
		t.Errorf("presets of somebody else: %v", err)
	}
	if data, err := os.ReadFile(name); err != nil || !bytes.Equal(data, theirs) || tree.OwnsPresets() {
		t.Errorf("they were written over: %v\n%s", err, data)
	}
}
