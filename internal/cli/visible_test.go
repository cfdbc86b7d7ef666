package cli

import "testing"

func TestVisible(t *testing.T) {
	const in, want = "a\x1b[31mb\rc\n\td\u009be é", `a\x1b[31mb\rc` + "\n\td" + `\u009be é`
	if got := visible(in); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
