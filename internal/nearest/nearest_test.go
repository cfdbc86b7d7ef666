package nearest

import "testing"

func TestName(t *testing.T) {
	keys := []string{"commit", "exclude", "tag", "url", "split_size", "splitk_threshold", "GGML_HIP", "gfx1100", "gfx1101"}
	for word, want := range map[string]string{
		"comit":        "commit",
		"Commit":       "commit",
		"split-size":   "split_size",
		"splitsize":    "split_size",
		"exlcude":      "exclude", // a swap of neighbours
		"splitk":       "splitk_threshold",
		"tga":          "tag",
		"gfx110":       "gfx1100",
		"GGML_HIPBLAS": "GGML_HIP",
		"weather":      "",
		"":             "",
		"π":            "",
	} {
		if got := Name(word, keys); got != want {
			t.Errorf("Name(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Hint("weather", keys); got != "" {
		t.Errorf("Hint of a far word = %q", got)
	}
	if got := Hint("comit", keys); got != "did you mean commit" {
		t.Errorf("Hint = %q", got)
	}
}
