package anchor

import "strings"

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
