package anchor

import (
	"fmt"
	"strings"
)

// Def is a braced region with a name: a type, a function, a table or a control
// statement.
type Def struct {
	Kind string // "enum", "struct", "class", "union", "namespace", "func", "table", or a control keyword
	Name string // as written, without blanks: "A::b", "f<int>"; empty for a control statement

	Head        int // token its name or keyword begins at
	Open, Close int // tokens of { and }
	argOpen     int // token of the ( of a parameter list or condition, or -1
	argClose    int
}

// Scope names a Def inside a File.
type Scope struct {
	text string
	kind string // of Def; "" is a function or a table
	name string
	args []string // first tokens of the parameter list, or the whole condition
	end  bool     // args are the whole list
	has  bool     // args were given
}

// String returns the scope as it was written.
func (s Scope) String() string { return s.text }

var (
	typeWords    = wordSet("enum struct class union namespace")
	controlWords = wordSet("if for while switch catch else do try")
	// Words that stand before a ( or { and name nothing.
	notNames = wordSet(`if for while switch catch else do try return sizeof alignof alignas decltype
		noexcept throw static_assert requires case default goto new delete const override final
		enum struct class union namespace typedef template typename using public private protected
		operator __attribute__ __declspec co_return co_await co_yield`)
)

// reach is how many tokens may stand between a name and the brace of its
// definition. It bounds the time that text which is no C++ can cost.
const reach = 2048

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// ParseScope reads the scope syntax:
//
//	enum X   struct X   class X   union X   namespace X
//	f   A::b   A::~A   operator==   f(T * x)   f()      definition of a function
//	NAME                                                table: NAME[…] = {
//	switch (expr)   if (expr)   switch                  braced statement
//
// The tokens in the parentheses of a function are the first ones of its
// parameter list; a final $ stands for the end of the list, and () is an empty
// list. Those of a statement are its whole condition.
func ParseScope(text string) (Scope, error) {
	s := Scope{text: text}
	bad := func(format string, args ...any) (Scope, error) {
		return Scope{}, fmt.Errorf("scope %q: "+format, append([]any{text}, args...)...)
	}
	f := Parse([]byte(text))
	n := f.Len()
	if n == 0 {
		return bad("it is empty")
	}
	i := 0
	switch first := f.Text(0); {
	case typeWords[first]:
		s.kind = first
		i++
		if first == "enum" && f.isAny(i, "class", "struct") {
			i++
		}
		if i == n {
			return bad("%s needs a name", first)
		}
		var ok bool
		if s.name, i, ok = f.name(i); !ok || i < n {
			return bad("expected a name after %s, and nothing else", first)
		}
		return s, nil
	case controlWords[first]:
		s.kind = first
		i++
		if f.is(i, "constexpr") {
			i++
		}
	default:
		var ok bool
		if s.name, i, ok = f.name(0); !ok {
			return bad("expected a name")
		}
	}
	if i == n {
		return s, nil
	}
	if !f.is(i, "(") || !f.is(n-1, ")") {
		return bad("expected ( … ) after %s", strings.TrimSpace(string(f.src[:f.toks[i].Start])))
	}
	s.has = true
	for i++; i < n-1; i++ {
		s.args = append(s.args, f.Text(i))
	}
	switch last := len(s.args) - 1; {
	case s.kind != "" || last < 0:
		s.end = true
	case s.args[last] == "$":
		s.end, s.args = true, s.args[:last]
	}
	return s, nil
}

// Defs returns every named region of the file, in the order of their names.
func (f *File) Defs() []Def { return f.defs }

// Scopes returns the definitions inside region r that s names. Definitions that
// share one body, as in the branches of a conditional, count once.
func (f *File) Scopes(s Scope, r Region) []Def {
	var found []Def
	for _, d := range f.defs {
		if d.Head < r.First || d.Close > r.Last || !f.named(d, s) {
			continue
		}
		shared := false
		for _, e := range found {
			shared = shared || e.Close == d.Close
		}
		if !shared {
			found = append(found, d)
		}
	}
	return found
}

func (f *File) named(d Def, s Scope) bool {
	if s.kind == "" {
		if d.Kind != "func" && (d.Kind != "table" || s.has) {
			return false
		}
	} else if d.Kind != s.kind {
		return false
	}
	if d.Name != s.name {
		return false
	}
	if !s.has {
		return true
	}
	if d.argOpen < 0 {
		return false
	}
	i := d.argOpen + 1
	for _, a := range s.args {
		for i < d.argClose && f.toks[i].Dir != f.toks[d.argOpen].Dir {
			i++
		}
		if i >= d.argClose || f.Text(i) != a {
			return false
		}
		i++
	}
	return !s.end || i == d.argClose
}

// Title is the definition in scope syntax.
func (f *File) Title(d Def) string {
	t := d.Name
	if d.Kind != "func" && d.Kind != "table" {
		t = strings.TrimSpace(d.Kind + " " + d.Name)
	}
	if d.argOpen >= 0 {
		args := string(f.src[f.toks[d.argOpen].End:f.toks[d.argClose].Start])
		if d.Kind != "func" {
			t += " "
		}
		t += "(" + strings.Join(strings.Fields(args), " ") + ")"
	}
	return t
}
