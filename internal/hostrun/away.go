package hostrun

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

// Away is a launch that a program compiled with KernelOptions.Away asks for: harness/away.h.
type Away struct {
	Symbol      string // of the kernel, mangled as the host's compiler mangles it
	Grid, Block [3]int
	Shared      int      // bytes of dynamic shared memory
	Args        [][]byte // explicit arguments in order
	Buffers     []AwayBuffer
}

// AwayBuffer is one buffer of the program. A handler changes Data in place and says so.
type AwayBuffer struct {
	Addr    uint64
	Data    []byte
	Changed bool
}

// WithAway is the same program with its launches handled by handle; it must have been compiled with KernelOptions.Away.
func (p *Program) WithAway(handle func(*Away) error) *Program {
	q := *p
	q.away = handle
	return &q
}

// awayPipes connects a program's launches to its handler.
type awayPipes struct {
	requests, replies *os.File // the program's ends
	in                *os.File
	out               *os.File
	done              chan struct{}
}

func openAway(program string, handle func(*Away) error) (*awayPipes, error) {
	symbols, err := functions(program)
	if err != nil {
		return nil, err
	}
	in, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	replies, out, err := os.Pipe()
	if err != nil {
		in.Close()
		requests.Close()
		return nil, err
	}
	p := &awayPipes{requests: requests, replies: replies, in: in, out: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer p.in.Close()
		defer p.out.Close()
		r, w := bufio.NewReaderSize(p.in, 1<<16), bufio.NewWriterSize(p.out, 1<<16)
		for {
			a, err := readAway(r, symbols)
			if err != nil { // the program has ended
				return
			}
			if err := answer(w, a, handle(a)); err != nil {
				return
			}
		}
	}()
	return p, nil
}

// started closes the program's ends in this process.
func (p *awayPipes) started() {
	p.requests.Close()
	p.replies.Close()
}

// functions are the names of a program's functions by address; it is linked to run where it is linked.
func functions(program string) (map[uint64]string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	out := map[uint64]string{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			out[s.Value] = s.Name
		}
	}
	return out, nil
}

func readAway(r io.Reader, symbols map[uint64]string) (*Away, error) {
	var err error
	number := func() int {
		var b [8]byte
		if err == nil {
			_, err = io.ReadFull(r, b[:])
		}
		return int(binary.LittleEndian.Uint64(b[:]))
	}
	take := func(n int) []byte {
		if err != nil {
			return nil
		}
		b := make([]byte, n)
		_, err = io.ReadFull(r, b)
		return b
	}
	a := &Away{Symbol: symbols[uint64(number())]}
	for i := range 3 {
		a.Grid[i], a.Block[i] = number(), number()
	}
	a.Shared = number()
	for range number() {
		a.Args = append(a.Args, take(number()))
	}
	for range number() {
		addr := number()
		a.Buffers = append(a.Buffers, AwayBuffer{Addr: uint64(addr), Data: take(number())})
	}
	return a, err
}

// answer sends an error's text, or nothing and the buffers that changed.
func answer(w *bufio.Writer, a *Away, failed error) error {
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		w.Write(b[:])
	}
	if failed != nil {
		number(len(failed.Error()))
		w.WriteString(failed.Error())
		return w.Flush()
	}
	number(0)
	for _, b := range a.Buffers {
		if !b.Changed {
			number(0)
			continue
		}
		number(1)
		w.Write(b.Data)
	}
	return w.Flush()
}

// leave turns the launches of the kernels and of the harness into ones that leave the program.
func (o *KernelOptions) leave(kernels, harness string, names []string) error {
	var files []string
	for _, name := range names {
		files = append(files, filepath.Join(kernels, name))
	}
	for _, file := range append(files, filepath.Join(harness, "main.cpp")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(launchSyntax.ReplaceAll(text, launcher), []byte("hostrun::launch"), []byte("hostrun::away::launch"))
		if filepath.Dir(file) == harness {
			text = append([]byte("#define HOSTRUN_MAIN\n#include \"away_launch.h\"\n"), text...)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	o.Bare = true
	o.Defines = append(o.Defines, "HARNESS_AWAY")
	o.Plain = append(o.Plain, filepath.Join(harness, "away.cpp"))
	return nil
}
