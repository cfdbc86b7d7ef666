package verify

import (
	"testing"

	"dot4fa/internal/fault"
)

// What is no report says what to do.
func TestParseDamaged(t *testing.T) {
	for _, text := range []string{"", "null", "[]", `{"format":1`, `{"format":2}`} {
		if _, err := Parse([]byte(text)); err == nil || fault.Hint(err) == "" {
			t.Errorf("%q: %v, hint %q", text, err, fault.Hint(err))
		}
	}
}
