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

func (f *File) findDefs() []Def {
	var defs []Def
	for i, t := range f.toks {
		if t.Dir != 0 || t.Kind != Ident && !f.is(i, "~") {
			continue
		}
		var d Def
		var ok bool
		switch text := f.Text(i); {
		case typeWords[text]:
			d, ok = f.typeDef(i, text)
		case controlWords[text]:
			d, ok = f.control(i, text)
		case !f.isAny(i-1, "::", ".", "->", "~", "operator"):
			d, ok = f.funcOrTable(i)
		}
		if ok && f.pair[d.Open] > d.Open {
			d.Head, d.Close = i, f.pair[d.Open]
			defs = append(defs, d)
		}
	}
	return defs
}

// typeDef reads: key [class] [attributes] name [final] [: bases] {
// and typedef key { … } name.
func (f *File) typeDef(i int, key string) (Def, bool) {
	d := Def{Kind: key, argOpen: -1}
	if f.is(f.prev(i), "enum") || f.isAny(f.prev(i), "<", ",") { // enum class; template parameter
		return d, false
	}
	j := f.next(i)
	if key == "enum" && f.isAny(j, "class", "struct") {
		j = f.next(j)
	}
	for j < min(len(f.toks), i+reach) {
		switch {
		case f.is(j, "{"):
			if d.Name == "" { // typedef struct { … } name;
				if c := f.pair[j]; c > j && f.kind(f.next(c), Ident) {
					d.Name = f.Text(f.next(c))
				}
			}
			d.Open = j
			return d, d.Name != ""
		case f.is(j, "["):
			j = f.after(j)
		case f.is(j, ":") && d.Name != "":
			for j = f.next(j); j < min(len(f.toks), i+reach) && !f.isAny(j, "{", ";", ")", "}"); j = f.next(j) {
			}
			d.Open = j
			return d, f.is(j, "{")
		case f.is(j, "final") && d.Name != "":
			j = f.next(j)
		case f.kind(j, Ident) && f.is(f.next(j), "(") && (d.Name == "" || notNames[f.Text(j)]):
			j = f.after(f.next(j)) // alignas(16), __attribute__((…))
		default: // a macro before the name is a name until the next one
			name, k, ok := f.name(j)
			if !ok {
				return d, false
			}
			d.Name, j = name, k
		}
	}
	return d, false
}

// control reads: keyword [constexpr] [( condition )] {
func (f *File) control(i int, word string) (Def, bool) {
	d := Def{Kind: word, argOpen: -1}
	j := f.next(i)
	if f.is(j, "constexpr") {
		j = f.next(j)
	}
	if f.is(j, "(") && f.pair[j] > j {
		d.argOpen, d.argClose = j, f.pair[j]
		j = f.next(f.pair[j])
	}
	d.Open = j
	return d, f.is(j, "{")
}

func (f *File) funcOrTable(i int) (Def, bool) {
	d := Def{argOpen: -1}
	name, j, ok := f.name(i)
	if !ok || notNames[name] {
		return d, false
	}
	d.Name = name
	if f.is(j, "(") && f.pair[j] > j {
		if p := f.prev(i); f.is(p, ",") || f.is(p, ":") && !f.label(p) { // a constructor's initialiser
			return d, false
		}
		d.Kind, d.argOpen, d.argClose = "func", j, f.pair[j]
		d.Open, ok = f.body(f.next(f.pair[j]))
		return d, ok
	}
	d.Kind = "table"
	if p := f.prev(i); f.is(j, "{") && (f.isAny(p, ">", "*", "&") || f.kind(p, Ident) && !notNames[f.Text(p)]) {
		d.Open = j // std::vector<T> name {
		return d, true
	}
	for f.is(j, "[") && f.pair[j] > j {
		j = f.after(j)
	}
	if !f.is(j, "=") {
		return d, false
	}
	j = f.next(j)
	if f.is(j, "[") && f.pair[j] > j { // name = [captures](parameters) {
		j = f.after(j)
		if f.is(j, "(") && f.pair[j] > j {
			d.argOpen, d.argClose = j, f.pair[j]
			j = f.after(j)
		}
		d.Kind = "func"
		d.Open, ok = f.body(j)
		return d, ok
	}
	if f.is(j, "(") && f.pair[j] > j { // compound literal
		j = f.after(j)
	}
	d.Open = j
	return d, f.is(j, "{")
}

// after returns the token after the bracket pair that opens at i.
func (f *File) after(i int) int {
	if f.pair[i] > i {
		return f.next(f.pair[i])
	}
	return f.next(i)
}

// name reads a qualified name at token i and returns the token after it.
func (f *File) name(i int) (name string, next int, ok bool) {
	for end := min(len(f.toks), i+64); i < end; {
		switch {
		case f.is(i, "~") && f.kind(f.next(i), Ident):
			name += "~"
			i = f.next(i)
			continue
		case f.is(i, "operator"):
			return f.operator(name, i)
		case !f.kind(i, Ident):
			return name, i, false
		}
		name += f.Text(i)
		i = f.next(i)
		if f.is(i, "<") {
			if args, j := f.templateArgs(i); j == len(f.toks) || j > 0 && f.isAny(j, "::", "(", "{", ":") {
				name += args
				i = j
			}
		}
		if !f.is(i, "::") {
			return name, i, true
		}
		name += "::"
		i = f.next(i)
	}
	return name, i, false
}

// operator reads operator==, operator(), operator bool and the like at i.
func (f *File) operator(name string, i int) (string, int, bool) {
	name += "operator"
	j := f.next(i)
	if f.is(j, "(") && f.is(f.next(j), ")") {
		name += "()"
		j = f.next(f.next(j))
	}
	for n := 0; j < len(f.toks) && !f.isAny(j, "(", ";", "{", "}") && n < 8; n++ {
		name += f.Text(j)
		j = f.next(j)
	}
	return name, j, true
}

// templateArgs reads < … > at i; the second result is 0 when it is none.
func (f *File) templateArgs(i int) (string, int) {
	var text strings.Builder
	for depth, n := 0, 0; i < len(f.toks) && n < 64; n++ {
		switch {
		case f.is(i, "<"):
			depth++
		case f.is(i, ">"):
			depth--
		case f.isAny(i, ";", "{", "}", "&&", "||"):
			return "", 0
		}
		text.WriteString(f.Text(i))
		i = f.next(i)
		if depth == 0 {
			return text.String(), i
		}
	}
	return "", 0
}

// body finds the { of a function definition from the token after its parameter
// list: qualifiers, a trailing return type, a constructor's initialisers.
func (f *File) body(i int) (int, bool) {
	loose := false // after -> or requires anything but a brace or ; may stand
	for end := min(len(f.toks), i+reach); i < end; {
		switch {
		case f.is(i, "{"):
			return i, true
		case f.isAny(i, ";", "}", ")", "="):
			return 0, false
		case f.is(i, "->"), f.is(i, "requires"):
			loose = true
			i = f.next(i)
		case f.is(i, "(") || f.is(i, "["):
			if f.pair[i] < i {
				return 0, false
			}
			i = f.after(i)
		case f.is(i, ":") && !loose:
			return f.initialisers(f.next(i))
		case loose, f.isAny(i, "&", "&&"):
			i = f.next(i)
		case f.kind(i, Ident) && (!controlWords[f.Text(i)] || f.is(i, "try")):
			i = f.next(i)
		default:
			return 0, false
		}
	}
	return 0, false
}

// initialisers reads a(…), b{…}, C<T>(…) and returns the { after them.
func (f *File) initialisers(i int) (int, bool) {
	for end := min(len(f.toks), i+reach); i < end; {
		_, j, ok := f.name(i)
		if !ok {
			return 0, false
		}
		if f.is(j, "<") {
			if _, k := f.templateArgs(j); k > 0 {
				j = k
			}
		}
		if !f.isAny(j, "(", "{") || f.pair[j] < j {
			return 0, false
		}
		j = f.after(j)
		if f.is(j, "...") {
			j = f.next(j)
		}
		if !f.is(j, ",") {
			return j, f.is(j, "{")
		}
		i = f.next(j)
	}
	return 0, false
}
