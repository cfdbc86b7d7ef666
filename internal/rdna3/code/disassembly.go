package code

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"dot4fa/internal/fault"
)

// Line is one instruction: "v_add_f32_e32", "v1, v2, v3", its address from the
// kernel's first instruction, and its words.
type Line struct {
	Op, Args string
	Addr     int
	Words    []uint32
}

// Disassembly gives o's kernels their instructions from what llvm-objdump -d printed
// for the same file. Every word is compared with the file's, so that a text of
// another file, or a text that leaves something out, is refused.
func (o *Object) Disassembly(text []byte) error {
	bySymbol := map[string]*Kernel{}
	for _, k := range o.Kernels {
		k.Code = nil
		bySymbol[k.Symbol] = k
	}
	var kernel *Kernel
	base := 0
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		bad := func(format string, args ...any) error {
			return fault.New(fault.VerifyFailed, format, args...).At("disassembly:%d", n).
				Hintf("disassemble with the llvm-objdump that belongs to the compiler")
		}
		if strings.HasSuffix(line, ">:") { // 0000000000001700 <symbol>:
			address, symbol, ok := strings.Cut(strings.TrimSuffix(line, ">:"), " <")
			start, err := strconv.ParseUint(address, 16, 64)
			if !ok || err != nil {
				return bad("cannot read %q", line)
			}
			kernel, base = bySymbol[symbol], int(start)
			continue
		}
		if kernel == nil || !strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == "..." { // zeros; a gap in a kernel shows below
			continue
		}
		in, err := parseLine(line)
		if err != nil {
			return bad("%w", err)
		}
		in.Addr -= base
		if in.Addr >= len(kernel.text) {
			kernel = nil // padding behind it
			continue
		}
		for i, w := range in.Words {
			at := in.Addr + 4*i
			if at < 0 || at+4 > len(kernel.text) || binary.LittleEndian.Uint32(kernel.text[at:]) != w {
				return bad("%s+%#x is not what the code object has there", kernel.Symbol, at)
			}
		}
		if want := kernel.end(); in.Addr != want {
			return bad("%s: the instruction at %#x is missing", kernel.Symbol, want)
		}
		kernel.Code = append(kernel.Code, in)
	}
	for _, k := range o.Kernels {
		if k.end() != len(k.text) || len(k.Code) == 0 {
			return fault.New(fault.VerifyFailed, "the disassembly has %d of the %d bytes of %s", k.end(), len(k.text), k.Symbol).
				Hintf("disassemble the whole file with llvm-objdump -d")
		}
	}
	return nil
}

// end is the address behind the last instruction so far.
func (k *Kernel) end() int {
	if len(k.Code) == 0 {
		return 0
	}
	last := k.Code[len(k.Code)-1]
	return last.Addr + 4*len(last.Words)
}

// parseLine reads "\tv_mov_b32_e32 v0, 1.0    // 000000001700: 7E0002F2 <comment>".
func parseLine(line string) (Line, error) {
	body, comment, ok := strings.Cut(line, "//")
	if !ok {
		return Line{}, fmt.Errorf("no address and words in %q", strings.TrimSpace(line))
	}
	body = strings.TrimSpace(body)
	if at := strings.Index(body, "/*"); at >= 0 {
		return Line{}, fmt.Errorf("the disassembler does not understand an operand of %q: it is older than the compiler", body)
	}
	var in Line
	in.Op, in.Args, _ = strings.Cut(body, " ")
	in.Args = strings.TrimSpace(in.Args)
	address, words, ok := strings.Cut(strings.TrimSpace(comment), ":")
	at, err := strconv.ParseUint(address, 16, 64)
	if !ok || err != nil {
		return Line{}, fmt.Errorf("no address in %q", strings.TrimSpace(line))
	}
	in.Addr = int(at)
	for word := range strings.FieldsSeq(words) {
		if strings.HasPrefix(word, "<") {
			break
		}
		w, err := strconv.ParseUint(word, 16, 32)
		if err != nil || len(word) != 8 {
			return Line{}, fmt.Errorf("%q is not a word in %q", word, strings.TrimSpace(line))
		}
		in.Words = append(in.Words, uint32(w))
	}
	if len(in.Words) == 0 {
		return Line{}, fmt.Errorf("no words in %q", strings.TrimSpace(line))
	}
	if strings.HasPrefix(in.Op, ".") || strings.HasPrefix(in.Op, "<") {
		return Line{}, fmt.Errorf("the disassembler does not know the instruction %08X at %#x", in.Words[0], in.Addr)
	}
	return in, nil
}
