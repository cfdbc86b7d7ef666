package bench

import "testing"

// One timing has no spread; rows of several runs may differ in their repetitions.
func TestRepetitionsInWords(t *testing.T) {
	one, three := Row{Repeat: 1}, Row{Repeat: 3, Spread: 0.012}
	if got := one.spreadText(); got != "–" {
		t.Errorf("spread of one repetition: %q", got)
	}
	if got := three.spreadText(); got != "1.2 %" {
		t.Errorf("spread: %q", got)
	}
	for want, r := range map[string]*Result{
		"2 repetitions interleaved":      {Repeat: 2},
		"3 repetitions interleaved":      {Repeat: 2, Rows: []Row{three}},
		"1 to 3 repetitions interleaved": {Repeat: 2, Rows: []Row{three, one}},
	} {
		if got := r.repeatText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
