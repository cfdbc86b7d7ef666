package packed16

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const header = "../../templates/packed16-quantize.h"

// compilers are the C++ compilers at hand, by what they are and not by name.
func compilers(t *testing.T) []string {
	seen := map[string]bool{}
	var found []string
	for _, name := range []string{"c++", "g++", "clang++", "clang++-19"} {
		version, err := exec.Command(name, "--version").Output()
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimPrefix(string(version), name), "\n")
		if !seen[line] {
			seen[line] = true
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		t.Skip("no host C++ compiler")
	}
	return found
}

// check compiles testdata/check.cpp with the header of dir and returns what it
// says about the vectors; the error is that of the run.
func check(t *testing.T, dir, compiler string, flags ...string) (string, error) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "check")
	args := append([]string{"-std=c++17", "-Wall", "-Wextra", "-I", dir, "testdata/check.cpp", "-o", exe}, flags...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, out)
	}
	var vectors []string
	for _, line := range strings.Split(VectorText, "\n") {
		if !strings.HasPrefix(line, "#") {
			vectors = append(vectors, line)
		}
	}
	cmd := exec.Command(exe)
	cmd.Stdin = strings.NewReader(strings.Join(vectors, "\n"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestCpp holds the C++ quantiser of the CPU backend to the vectors, under the
// flags that would let a compiler change them.
func TestCpp(t *testing.T) {
	for _, compiler := range compilers(t) {
		for _, flags := range []string{
			"-O0 -fsanitize=undefined -fno-sanitize-recover",
			"-O2",
			"-O3 -march=native -ffp-contract=fast",
			"-O3 -march=native -ffast-math",
		} {
			t.Run(compiler+" "+flags, func(t *testing.T) {
				out, err := check(t, filepath.Dir(header), compiler, strings.Fields(flags)...)
				t.Log(strings.TrimSpace(out))
				if err != nil || !strings.HasSuffix(out, " 0 different\n") {
					t.Errorf("C++ and Go disagree: %v", err)
				}
			})
		}
	}
}

// TestCppC: the header is C as well, ggml's language.
func TestCppC(t *testing.T) {
	for _, compiler := range compilers(t) {
		cmd := exec.Command(compiler, "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", header)
		// the pragma once of a main file is worth a warning to some
		cmd.Args = append(cmd.Args, "-Wno-unused-function", "-Wno-pragma-once-outside-header")
		if out, err := cmd.CombinedOutput(); err != nil && !bytes.Contains(out, []byte("pragma once in main file")) {
			t.Errorf("%s as C: %v\n%s", compiler, err, out)
		}
	}
}

// TestCppMutants breaks the header in ways that matter; a vector must show
// every one of them.
func TestCppMutants(t *testing.T) {
	source, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	compiler := compilers(t)[0]
	for _, m := range []struct{ name, from, to string }{
		{"truncates", "rintf(x[i]*r)", "truncf(x[i]*r)"},
		{"rounds half away", "rintf(x[i]*r)", "roundf(x[i]*r)"},
		{"keeps 128", "v >  127.0f ?  127.0f", "v >  128.0f ?  127.0f"},
		{"no lower clamp", "v < -127.0f ? -127.0f", "v < -128.0f ? -128.0f"},
		{"full range", "divisor = 127.0f", "divisor = 127.5f"},
		{"no refit", "mode == PACKED16_MSE", "false && mode == PACKED16_MSE"},
		{"no second rounding", "s = packed16_f32_to_f16(packed16_refit(x, q));", "return packed16_f32_to_f16(packed16_refit(x, q));"},
		{"f16 truncates", "rebiased + 0xFFFu + ((rebiased >> 13) & 1)", "rebiased"},
		{"f16 rounds half up", "0xFFFu + ((rebiased >> 13) & 1)", "0x1000u"},
		{"overflow wraps", "u >= 0x477FF000u", "u >= 0xFFFFFFFFu"},
		{"sum runs downwards", "float product = x[i]*(float) q[i]", "float product = x[31 - i]*(float) q[31 - i]"},
		{"fault is infinity", "PACKED16_SCALE_NAN 0x7E00", "PACKED16_SCALE_NAN 0x7C00"},
		{"faulty values stay", "memset(q, 0, PACKED16_BLOCK);\n    return PACKED16_SCALE_NAN", "memset(q, 1, PACKED16_BLOCK);\n    return PACKED16_SCALE_NAN"},
	} {
		t.Run(m.name, func(t *testing.T) {
			mutant := strings.Replace(string(source), m.from, m.to, 1)
			if mutant == string(source) {
				t.Fatalf("the header has no %q", m.from)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(header)), []byte(mutant), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := check(t, dir, compiler, "-O0")
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "differs in") {
				t.Errorf("no vector shows it: %v\n%s", err, out)
			}
		})
	}
}
