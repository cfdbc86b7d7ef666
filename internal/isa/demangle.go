package isa

import (
	"strconv"
	"strings"
)

// Demangle turns the symbol of a kernel into its name with template arguments,
// "packed16_decode<256, packed16_v_q4_0, 6>", without its parameters. A symbol
// with anything richer in it comes back as it is.
func Demangle(symbol string) string {
	d := demangler{rest: strings.TrimPrefix(symbol, "_Z")}
	if d.rest == symbol {
		return symbol
	}
	name := d.name()
	if d.failed {
		return symbol
	}
	return name
}

type demangler struct {
	rest   string
	failed bool
}

func (d *demangler) eat(prefix string) bool {
	after, ok := strings.CutPrefix(d.rest, prefix)
	d.rest = after
	return ok
}

// name reads [N] [L] <length><identifier> … [I <arguments> E] [E].
func (d *demangler) name() string {
	if d.eat("N") {
		var parts []string
		for !d.failed && !d.eat("E") {
			parts = append(parts, d.name())
		}
		return strings.Join(parts, "::")
	}
	d.eat("L") // internal linkage
	digits := 0
	for digits < len(d.rest) && d.rest[digits] >= '0' && d.rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(d.rest[:digits])
	if err != nil || n == 0 || digits+n > len(d.rest) {
		d.failed = true
		return ""
	}
	name := d.rest[digits : digits+n]
	d.rest = d.rest[digits+n:]
	if d.eat("I") {
		var args []string
		for !d.failed && !d.eat("E") {
			args = append(args, d.argument())
		}
		name += "<" + strings.Join(args, ", ") + ">"
	}
	return name
}

var builtinTypes = map[byte]string{
	'b': "bool", 'c': "char", 'a': "int8_t", 'h': "uint8_t", 's': "short", 't': "uint16_t",
	'i': "int", 'j': "unsigned", 'l': "long", 'm': "unsigned long", 'f': "float", 'd': "double",
}

// argument reads a literal or a type.
func (d *demangler) argument() string {
	if d.rest == "" {
		d.failed = true
		return ""
	}
	if d.rest[0] == 'L' && len(d.rest) > 1 { // L <type> <value> E
		d.rest = d.rest[1:]
		isBool := d.rest[0] == 'b'
		if _, ok := builtinTypes[d.rest[0]]; ok {
			d.rest = d.rest[1:]
		} else {
			d.name() // an enumeration
		}
		value, rest, ok := strings.Cut(d.rest, "E")
		if !ok {
			d.failed = true
		}
		d.rest = rest
		value = strings.Replace(value, "n", "-", 1)
		if isBool {
			value = map[string]string{"0": "false", "1": "true"}[value]
		}
		return value
	}
	if name, ok := builtinTypes[d.rest[0]]; ok {
		d.rest = d.rest[1:]
		return name
	}
	return d.name()
}
