package anchor

import (
	"bytes"
	"path"
	"strings"
)

// lang is how a file is lexed.
type lang uint8

const (
	langC     lang = iota // C, C++, CUDA, and whatever is not known
	langHash              // # begins a comment: Python, shell, YAML, make
	langCMake             // the same, with CMake's strings and bracket comments
)

func langOf(name string) lang {
	base := strings.ToLower(path.Base(name))
	switch ext := path.Ext(base); {
	case base == "cmakelists.txt" || ext == ".cmake":
		return langCMake
	case base == "makefile", ext == ".py", ext == ".sh", ext == ".yml", ext == ".yaml", ext == ".toml", ext == ".mk":
		return langHash
	}
	return langC
}

// hashStep lexes what differs from C in a language with # comments. There are no
// directives, no statements and no line continuations: places are lines.
func (l *lexer) hashStep(c byte) bool {
	switch {
	case c == '#':
		start := l.pos
		l.pos = l.lineEnd()
		if n := l.bracketArg(start + 1); n > 0 && l.lang == langCMake {
			l.pos = n
		}
		l.comments = append(l.comments, span{start, l.pos})
	case c == '/' || c == '\\':
		l.emit(Punct, l.pos+1)
	case c == '[' && l.lang == langCMake && l.bracketArg(l.pos) > 0:
		l.emit(String, l.bracketArg(l.pos))
	case c == '"' && l.lang == langCMake:
		l.emit(String, l.closing(l.pos+1, []byte{c}))
	case c == '\'' && l.lang == langCMake:
		l.emit(Punct, l.pos+1)
	case (c == '"' || c == '\'') && l.at(l.pos+1) == c && l.at(l.pos+2) == c:
		l.emit(String, l.closing(l.pos+3, []byte{c, c, c}))
	default:
		return false
	}
	return true
}

func (l *lexer) lineEnd() int {
	if n := bytes.IndexByte(l.src[l.pos:], '\n'); n >= 0 {
		return l.pos + n
	}
	return len(l.src)
}

// closing returns the end of a literal that may hold newlines and ends in quote.
func (l *lexer) closing(i int, quote []byte) int {
	for ; i < len(l.src); i++ {
		if l.src[i] == '\\' {
			i++
		} else if bytes.HasPrefix(l.src[i:], quote) {
			return i + len(quote)
		}
	}
	return len(l.src)
}

// bracketArg returns the end of [[ … ]] or [=[ … ]=] at i, or 0.
func (l *lexer) bracketArg(i int) int {
	if l.at(i) != '[' {
		return 0
	}
	n := i + 1
	for l.at(n) == '=' {
		n++
	}
	if l.at(n) != '[' {
		return 0
	}
	end := "]" + strings.Repeat("=", n-i-1) + "]"
	if k := bytes.Index(l.src[n:], []byte(end)); k >= 0 {
		return n + k + len(end)
	}
	return 0
}
