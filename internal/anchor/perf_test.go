package anchor

import (
	"strings"
	"testing"
	"time"
)

// TestTimeIsBounded feeds long runs of what a scanner could follow for ever.
func TestTimeIsBounded(t *testing.T) {
	p, _ := ParsePattern("case A: f(")
	for _, s := range []string{
		"{", "}", "a<", "f(", "f(){", "a:", "a::", "x={", "'", "/*", "R\"(", "\\\n", "~", "operator ", "struct a ",
		"f():a(b),", "f() -> a ", "f(a) g(b) ", "enum a : b ", "a ? b : ", "#else\n", "#if 0\n",
		"#if X\n{\n#else\n{\n#endif\n", "#ifdef X\n{\n#endif\n#ifndef X\n{\n#endif\n",
		"a \n#if X\nb\n#else\nc\n#endif\n", "f()\n#if X\nb\n#else\nc\n#endif\n",
	} {
		begin := time.Now()
		f := Parse([]byte(strings.Repeat(s, 60000/len(s))))
		if n := f.Len(); n > 0 {
			m := Match{n / 2, n / 2}
			_, _ = f.Before(m)
			_, _ = f.After(m)
			f.Nearest(p, f.All(), 3)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("%q repeated to 60 kB takes %v", s, d)
		} else if testing.Verbose() && d > 300*time.Millisecond {
			t.Logf("%q: %v", s, d)
		}
	}
}
