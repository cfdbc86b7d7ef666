// Package anchor finds places in C and C++ source text: a named scope, a
// sequence of tokens inside it, and the line or byte an edit goes to.
//
// It is not a parser. It knows comments, literals, preprocessor lines and
// brackets, never fails on any input, and reports what it cannot find instead
// of guessing.
package anchor

import "bytes"

// Kind classifies a token.
type Kind uint8

// Token kinds. Comments and white space are not tokens.
const (
	Ident  Kind = iota // identifier or keyword; bytes above 0x7f count as letters
	Number             // pp-number, digit separators included
	String             // string literal with its prefix, raw ones included
	Char               // character literal with its prefix
	Punct              // operator, bracket, or any other single byte
)

// Token is one lexical element of a File.
type Token struct {
	Kind       Kind
	Start, End int // byte offsets into the source, End exclusive
	Dir        int // number of the preprocessor directive it belongs to, 0 for none
}

type span struct{ start, end int }

// lexer walks src once. Every step consumes at least one byte.
type lexer struct {
	src      []byte
	pos      int
	toks     []Token
	comments []span
	bol      bool // only white space and comments so far on this line
	dir      int  // current directive, 0 outside one
	dirs     int  // directives seen
	lang     lang
}

func lex(src []byte, lang lang) ([]Token, []span) {
	l := &lexer{src: src, bol: true, lang: lang}
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		l.pos = 3
	}
	for l.pos < len(src) {
		l.step()
	}
	return l.toks, l.comments
}

func (l *lexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

// splice returns the length of a line continuation at i, or 0. Blanks between
// the backslash and the newline are accepted, as compilers do.
func (l *lexer) splice(i int) int {
	if l.at(i) != '\\' || l.lang != langC {
		return 0
	}
	j := i + 1
	for l.at(j) == ' ' || l.at(j) == '\t' || l.at(j) == '\r' {
		j++
	}
	if l.at(j) == '\n' {
		return j + 1 - i
	}
	return 0
}

func (l *lexer) step() {
	c := l.src[l.pos]
	if l.lang != langC && l.hashStep(c) {
		return
	}
	switch {
	case c == '\n':
		l.pos++
		l.bol, l.dir = true, 0
	case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
		l.pos++
	case l.splice(l.pos) > 0:
		l.pos += l.splice(l.pos)
	case c == '/' && l.at(l.pos+1) == '/':
		l.lineComment()
	case c == '/' && l.at(l.pos+1) == '*':
		l.blockComment()
	case c == '#' && l.bol:
		l.dirs++
		l.dir = l.dirs
		l.emit(Punct, l.pos+1)
	case isDigit(c) || c == '.' && isDigit(l.at(l.pos+1)):
		l.emit(Number, l.number())
	case isLetter(c):
		l.word()
	case c == '"':
		l.emit(String, l.quoted(l.pos, '"'))
	case c == '\'':
		l.emit(Char, l.quoted(l.pos, '\''))
	default:
		l.emit(Punct, l.pos+punctLen(l.src[l.pos:]))
	}
}

func (l *lexer) emit(k Kind, end int) {
	l.toks = append(l.toks, Token{Kind: k, Start: l.pos, End: end, Dir: l.dir})
	l.pos = end
	l.bol = false
}

func (l *lexer) lineComment() {
	start := l.pos
	for l.pos < len(l.src) && l.src[l.pos] != '\n' {
		if n := l.splice(l.pos); n > 0 {
			l.pos += n
			continue
		}
		l.pos++
	}
	l.comments = append(l.comments, span{start, l.pos})
}

func (l *lexer) blockComment() {
	start := l.pos
	if n := bytes.Index(l.src[l.pos+2:], []byte("*/")); n >= 0 {
		l.pos += n + 4
	} else {
		l.pos = len(l.src)
	}
	l.comments = append(l.comments, span{start, l.pos})
}

func (l *lexer) number() int {
	i := l.pos
	for i < len(l.src) {
		c := l.src[i]
		switch {
		case (c == '+' || c == '-') && i > l.pos && isExponent(l.src[l.pos:i]):
			i++
		case c == '\'' && isWordByte(l.at(i+1)):
			i += 2
		case isWordByte(c) || c == '.':
			i++
		case l.splice(i) > 0 && isWordByte(l.at(i+l.splice(i))):
			i += l.splice(i)
		default:
			return i
		}
	}
	return i
}

// isExponent reports whether num ends in the letter that lets a sign follow:
// e in a decimal number, p in a hexadecimal one.
func isExponent(num []byte) bool {
	hex := len(num) > 1 && num[0] == '0' && (num[1] == 'x' || num[1] == 'X')
	switch num[len(num)-1] {
	case 'e', 'E':
		return !hex
	case 'p', 'P':
		return true
	}
	return false
}

// word lexes an identifier, or a literal that begins with a prefix.
func (l *lexer) word() {
	i := l.pos
	for i < len(l.src) {
		if isWordByte(l.src[i]) {
			i++
		} else if n := l.splice(i); n > 0 && isWordByte(l.at(i+n)) {
			i += n
		} else {
			break
		}
	}
	if l.lang != langC {
		l.emit(Ident, i)
		return
	}
	switch string(l.src[l.pos:i]) {
	case "R", "LR", "uR", "UR", "u8R":
		if l.at(i) == '"' {
			if end := l.raw(i); end > 0 {
				l.emit(String, end)
				return
			}
			l.emit(String, l.quoted(i, '"'))
			return
		}
	case "L", "u", "U", "u8":
		if q := l.at(i); q == '"' {
			l.emit(String, l.quoted(i, q))
			return
		} else if q == '\'' {
			l.emit(Char, l.quoted(i, q))
			return
		}
	}
	l.emit(Ident, i)
}

// quoted returns the end of a literal whose opening quote is at i. One that is
// not closed ends with its line.
func (l *lexer) quoted(i int, q byte) int {
	for i++; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == q:
			return i + 1
		case c == '\n':
			if l.src[i-1] == '\r' {
				return i - 1
			}
			return i
		case c == '\\':
			if n := l.splice(i); n > 0 {
				i += n - 1
			} else if l.at(i+1) != '\n' && l.at(i+1) != '\r' {
				i++
			}
		}
	}
	return len(l.src)
}

// raw returns the end of a raw string whose quote is at i, or 0 when it is not
// one or is never closed.
func (l *lexer) raw(i int) int {
	body := l.src[i+1:]
	open := bytes.IndexAny(body, "( )\\\t\v\f\r\n")
	if open < 0 || open > 16 || body[open] != '(' {
		return 0
	}
	closer := append([]byte{')'}, body[:open]...)
	closer = append(closer, '"')
	n := bytes.Index(body[open+1:], closer)
	if n < 0 {
		return 0
	}
	return i + 1 + open + 1 + n + len(closer)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c >= 0x80
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) }

// punctLen returns the length of the operator s begins with. Shifts are two
// tokens, so that nested template lists close one by one.
func punctLen(s []byte) int {
	if len(s) >= 3 && s[0] == '.' && s[1] == '.' && s[2] == '.' {
		return 3
	}
	if len(s) < 2 {
		return 1
	}
	switch string(s[:2]) {
	case "::", "->", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
		"==", "!=", "<=", ">=", "&&", "||", "##":
		return 2
	}
	return 1
}
