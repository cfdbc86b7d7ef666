package anchor

// begins reports whether token i, first on its line, begins a statement or an
// element of a list, judging by the token before it.
func (f *File) begins(i int) bool {
	if i == 0 || f.toks[i-1].Dir != 0 {
		p := f.prev(i)
		return p < 0 || f.ends(p)
	}
	return f.ends(i - 1)
}

func (f *File) ends(i int) bool {
	return f.isAny(i, ";", "{", "}", ",", "(", "[") || f.is(i, ":") && f.label(i)
}

// statement returns the first token of the statement, list element or directive
// token i belongs to.
func (f *File) statement(i int) int {
	if d := f.toks[i].Dir; d != 0 {
		for i > 0 && f.toks[i-1].Dir == d {
			i--
		}
		return i
	}
	b := f.up[i]
	for b >= 0 && f.isAny(b, "(", "[") {
		i, b = b, f.up[b]
	}
	list := b >= 0 && f.isList(b)
	for p := f.prev(i); p >= 0 && p != b; p = f.prev(i) {
		switch {
		case f.isAny(p, ")", "]") && f.pair[p] >= 0:
			p = f.pair[p]
		case f.is(p, "}") && f.pair[p] >= 0 && f.isList(f.pair[p]) && !f.isEnum(f.pair[p]):
			p = f.pair[p]
		case f.isAny(p, ";", "{", "}"), list && f.is(p, ","), f.is(p, ":") && f.label(p):
			return i
		}
		i = p
	}
	return i
}

// label reports whether the colon at token i ends case X, default, a goto label
// or an access specifier.
func (f *File) label(i int) bool { return f.labelAfter(i, 8) }

// labelAfter is label where at most colons colons before the one at i may be
// labels themselves.
func (f *File) labelAfter(i, colons int) bool {
	first := i
	for p := f.prev(i); p >= 0 && i-p < 32; p = f.prev(p) {
		if f.isAny(p, "case", "default", "public", "private", "protected") {
			return true
		}
		if f.is(p, "?") || f.is(p, ":") && (colons == 0 || !f.labelAfter(p, colons-1)) {
			return false
		}
		if f.isAny(p, ";", "{", "}", ":") {
			break
		}
		first = p
	}
	return f.kind(first, Ident) && f.next(first) == i
}

// isList reports whether the { at token i begins a list of values or of
// enumerators and not of statements or members.
func (f *File) isList(i int) bool {
	if !f.is(i, "{") {
		return false
	}
	p := f.prev(i)
	if f.isAny(p, "=", "(", ",", "[", "]", "return", "{") {
		return !f.is(p, "{") || f.isList(p)
	}
	if f.kind(p, Ident) && !notNames[f.Text(p)] { // T{1} in an expression
		for f.is(f.prev(p), "::") {
			p = f.prev(f.prev(p))
		}
		if f.isAny(f.prev(p), "=", "(", "[", "return", "?", "+", "-", "*", "/", "&&", "||", "==", "!=") {
			return true
		}
	}
	return f.isEnum(i)
}

func (f *File) isEnum(i int) bool {
	for p, n := f.prev(i), 0; p >= 0 && n < 12; p, n = f.prev(p), n+1 {
		if f.is(p, "enum") {
			return true
		}
		if !f.kind(p, Ident) && !f.isAny(p, "::", ":") {
			return false
		}
	}
	return false
}

var (
	// A line that ends in one of these goes on.
	goesOn = wordSet(`return else do static inline const constexpr extern virtual typedef
		unsigned case struct class enum union = + - * / % & | ^ ! < > ? == != <= >= && ||
		+= -= *= /= %= &= |= ^= -> :: . (`)
	// A line that begins with one of these continues the one before.
	continues = wordSet(`. -> + - / % | ^ < > ? : && || == != <= >= = += -= *= /= %= &= |= ^= { ( ::`)
)

// unfinished reports whether the statement goes on after token i, the last one
// on its line.
func (f *File) unfinished(i int) bool {
	n := f.next(i)
	if n >= len(f.toks) || f.lang != langC {
		return false
	}
	switch {
	case f.is(i, "}"):
		return f.isAny(n, "else", "catch")
	case f.isAny(i, ";", ",", "{", ":"):
		return false
	case goesOn[f.Text(i)]:
		return true
	case f.is(i, ")") && f.pair[i] >= 0 && f.isAny(f.prev(f.pair[i]), "if", "for", "while", "switch", "constexpr"):
		return true
	case f.kind(i, String) && f.kind(n, String):
		return true
	}
	return continues[f.Text(n)] || f.isAny(n, "*", "&") && !f.is(i, ")")
}
