package bench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"dot4fa/internal/vram"
)

// timing is one line of `test-backend-ops perf --output sql`.
type timing struct {
	op        string
	params    map[string]string
	supported bool
	us        float64
	runs      int
	commit    string
}

// parseSQL reads what `test-backend-ops perf --output sql` prints. A line that is
// cut, or that does not hold what it should, is an error, after those before it: its figure would be
// missing without a word.
func parseSQL(out string) ([]timing, error) {
	const intro = "INSERT INTO test_backend_ops ("
	var list []timing
	for n, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "INSERT") && !strings.HasPrefix(intro, line) || line == "" {
			continue
		}
		bad := func(why string) error { return fmt.Errorf("line %d of its output %s: %.100q", n+1, why, line) }
		rest, ok := strings.CutPrefix(line, intro)
		names, values, found := strings.Cut(rest, ") VALUES ('")
		values, whole := strings.CutSuffix(values, "');")
		if !ok || !found || !whole {
			return list, bad("is cut")
		}
		fields, data := strings.Split(names, ", "), strings.Split(values, "', '")
		if len(fields) != len(data) {
			return list, bad(fmt.Sprintf("has %d names and %d values", len(fields), len(data)))
		}
		row := map[string]string{}
		for i, f := range fields {
			row[f] = data[i]
		}
		t := timing{op: row["op_name"], params: parseParams(row["op_params"]), supported: row["supported"] == "1", commit: row["build_commit"]}
		var err, err2 error
		t.us, err = strconv.ParseFloat(row["time_us"], 64)
		t.runs, err2 = strconv.Atoi(row["n_runs"])
		if err != nil || err2 != nil || t.op == "" {
			return list, bad("lacks op_name, time_us or n_runs")
		}
		if t.supported && (t.us <= 0 || t.runs <= 0) {
			return list, bad("has no time")
		}
		list = append(list, t)
	}
	return list, nil
}

// parseParams reads "K=packed16,V=q4_0,hs=256,...". A list in brackets is one value.
func parseParams(text string) map[string]string {
	out := map[string]string{}
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == '[' {
			depth++
		} else if i < len(text) && text[i] == ']' {
			depth--
		} else if i == len(text) || text[i] == ',' && depth == 0 {
			if k, v, ok := strings.Cut(text[start:i], "="); ok {
				out[k] = v
			}
			start = i + 1
		}
	}
	return out
}

// attention returns which of our cases a timing is of.
func (t timing) attention() (Shape, vram.Pair, bool) {
	n := func(key string) int { v, _ := strconv.Atoi(t.params[key]); return v }
	s := Shape{D: n("hs"), KVHeads: n("nh"), GQA: n("gqa"), NK: n("kv"), NQ: n("nb")}
	p := vram.Pair{K: t.params["K"], V: t.params["V"]}
	return s, p, t.op == "FLASH_ATTN_EXT" && s.D > 0 && s.NK > 0 && p.K != ""
}

// device is one that a program of the build offers.
type device struct{ name, description string }

var (
	escapes     = regexp.MustCompile("\x1b\\[[0-9;]*m")
	backendLine = regexp.MustCompile(`^Backend \d+/\d+: (.+)$`)
)

// parseDevices reads the console output of test-backend-ops. A device that it
// skips has no description.
func parseDevices(out string) []device {
	var list []device
	for _, line := range strings.Split(escapes.ReplaceAllString(out, ""), "\n") {
		line = strings.TrimRight(line, "\r")
		if m := backendLine.FindStringSubmatch(line); m != nil {
			list = append(list, device{name: m[1]})
		} else if d, ok := strings.CutPrefix(line, "  Device description: "); ok && len(list) > 0 {
			list[len(list)-1].description = strings.TrimSpace(d)
		}
	}
	return list
}
