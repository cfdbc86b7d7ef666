package routes

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"dot4fa/internal/fault"
	"dot4fa/internal/recipe"
)

// Formats are the ways PrintEnv writes variables.
var Formats = []string{"shell", "json", "systemd"}

type pair struct{ name, value string }

type format func(out, warn io.Writer, vars []pair, remarks []string) error

func formatter(name string) (format, error) {
	switch name {
	case "", "shell":
		return lines("# ", func(p pair) string { return "export " + p.name + "=" + shellQuote(p.value) }), nil
	case "systemd":
		return lines("# ", func(p pair) string { return `Environment="` + p.name + "=" + systemdEscape.Replace(p.value) + `"` }), nil
	case "json":
		return func(out, warn io.Writer, vars []pair, remarks []string) error {
			for _, r := range remarks {
				fmt.Fprintln(warn, "note: "+r)
			}
			m := map[string]string{}
			for _, p := range vars {
				m[p.name] = p.value
			}
			return writeJSON(out, m)
		}, nil
	}
	return nil, fault.New(fault.Usage, "unknown format %q", name).Hintf("use one of %s", strings.Join(Formats, ", "))
}

func lines(comment string, line func(pair) string) format {
	return func(out, _ io.Writer, vars []pair, remarks []string) error {
		var b strings.Builder
		for _, r := range remarks {
			b.WriteString(comment + r + "\n")
		}
		for _, p := range vars {
			b.WriteString(line(p) + "\n")
		}
		_, err := io.WriteString(out, b.String())
		return err
	}
}

// order sorts vars: flags as in the table, then the others by name.
func order(k recipe.Kernel, vars map[string]string) []pair {
	rank := map[string]int{}
	for i, f := range Flags(k) {
		rank[f.Name] = i - len(Flags(k))
	}
	var ps []pair
	for n, v := range vars {
		ps = append(ps, pair{n, v})
	}
	sort.Slice(ps, func(i, j int) bool {
		if a, b := rank[ps[i].name], rank[ps[j].name]; a != b {
			return a < b
		}
		return ps[i].name < ps[j].name
	})
	return ps
}

// shellQuote quotes s for a POSIX shell where it has to be.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-./:=,+@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// systemdEscape escapes a value inside the quotes of an Environment= line.
var systemdEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%")
