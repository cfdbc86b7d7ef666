package verify

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// llama-perplexity saves what a model predicts with --kl-divergence-base: an
// 8-byte mark, context, vocabulary and chunks as int32, the chunks' tokens, and
// for each chunk and each position of its second half one row. A row is a float32
// step, the float32 logarithm of the smallest probability, and a uint16 for each
// token of the vocabulary (padded to an even number): log p = smallest + step·n.
const logitsMark = "_logits_"

// logitsFile reads such a file.
type logitsFile struct {
	Ctx, Vocab, Chunks int
	tokens             []int32
	f                  *os.File
	r                  *bufio.Reader
	raw                []byte
}

// rows is how many positions of a chunk are judged: those of the second half that
// have a next token.
func rows(ctx int) int { return ctx - 1 - ctx/2 }

// openLogits opens a file and makes sure that it is whole.
func openLogits(name string) (*logitsFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	l := &logitsFile{f: f, r: bufio.NewReaderSize(f, 1<<20)}
	if err := l.head(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

func (l *logitsFile) Close() error { return l.f.Close() }

func (l *logitsFile) head() error {
	var h struct {
		Mark               [8]byte
		Ctx, Vocab, Chunks int32
	}
	if err := binary.Read(l.r, binary.LittleEndian, &h); err != nil {
		return errors.New("it is cut short")
	}
	if string(h.Mark[:]) != logitsMark || h.Ctx < 4 || h.Ctx > 1<<24 || h.Vocab < 1 || h.Vocab > 1<<24 || h.Chunks < 0 || h.Chunks > 1<<20 {
		return errors.New("it is no file of saved logits")
	}
	l.Ctx, l.Vocab, l.Chunks = int(h.Ctx), int(h.Vocab), int(h.Chunks)
	l.raw = make([]byte, 2*(2*((l.Vocab+1)/2)+4))
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	tokens := int64(l.Ctx) * int64(l.Chunks)
	if want := 20 + 4*tokens + int64(l.Chunks)*int64(rows(l.Ctx))*int64(len(l.raw)); info.Size() != want {
		return fmt.Errorf("it has %d bytes, not %d: it is cut short", info.Size(), want)
	}
	l.tokens = make([]int32, tokens)
	return binary.Read(l.r, binary.LittleEndian, l.tokens)
}

// row reads the next position's logarithms of probabilities into p, made to sum
// to one: their steps of 16/65535 leave the sum off by as much.
func (l *logitsFile) row(p []float64) error {
	if _, err := io.ReadFull(l.r, l.raw); err != nil {
		return err
	}
	step := float64(math.Float32frombits(binary.LittleEndian.Uint32(l.raw)))
	low := float64(math.Float32frombits(binary.LittleEndian.Uint32(l.raw[4:])))
	sum := 0.0
	for i := range p {
		p[i] = low + step*float64(binary.LittleEndian.Uint16(l.raw[8+2*i:]))
		sum += math.Exp(p[i])
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return errors.New("a row is not finite")
	}
	norm := math.Log(sum)
	for i := range p {
		p[i] -= norm
	}
	return nil
}

// Mean is a mean and its standard error.
type Mean struct {
	Mean float64 `json:"mean"`
	Err  float64 `json:"standard_error"`
	N    int     `json:"n"`
}

type sums struct {
	n       int
	x, xx   float64
	largest float64
}

func (s *sums) add(x float64) {
	s.n++
	s.x += x
	s.xx += x * x
	s.largest = max(s.largest, x)
}

func (s *sums) mean() Mean {
	if s.n == 0 {
		return Mean{}
	}
	m := Mean{Mean: s.x / float64(s.n), N: s.n}
	if s.n > 1 {
		m.Err = math.Sqrt(max(s.xx/float64(s.n)-m.Mean*m.Mean, 0) / float64(s.n-1))
	}
	return m
}

// Bin is the divergence over a range of positions in the context.
type Bin struct {
	From int  `json:"from"` // first position: so many cells lie before the query
	To   int  `json:"to"`   // last position
	KLD  Mean `json:"kld"`
}

// Compared is what two files of saved logits say of one another.
type Compared struct {
	KLD      Mean    `json:"kld"`
	Largest  float64 `json:"largest_kld"`
	PPL      Mean    `json:"ppl"`      // of the second file; N counts tokens
	BasePPL  Mean    `json:"base_ppl"` // of the first
	SameTop  float64 `json:"same_top"` // share of positions with the same likeliest token
	Bins     []Bin   `json:"by_position"`
	Chunks   int     `json:"chunks"`
	Position int     `json:"first_position"`
}

// errOther is the error of files that are not about the same text.
var errOther = errors.New("the two files are of different texts or contexts")

// compare reads two files of the same text side by side. KLD is that of other
// from base, in nats a token, at each position: sum of p (log p − log q).
func compare(base, other string, bins int) (*Compared, error) {
	a, err := openLogits(base)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := openLogits(other)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if a.Ctx != b.Ctx || a.Vocab != b.Vocab || a.Chunks != b.Chunks || !equal(a.tokens, b.tokens) {
		return nil, errOther
	}
	n, first := rows(a.Ctx), a.Ctx/2
	bins = max(1, min(bins, n))
	var kld, nll, baseNLL sums
	perBin := make([]sums, bins)
	same := 0
	p, q := make([]float64, a.Vocab), make([]float64, a.Vocab)
	for c := range a.Chunks {
		for i := range n {
			if err := a.row(p); err != nil {
				return nil, fmt.Errorf("%s: %w", base, err)
			}
			if err := b.row(q); err != nil {
				return nil, fmt.Errorf("%s: %w", other, err)
			}
			d, topP, topQ := 0.0, 0, 0
			for t := range p {
				d += math.Exp(p[t]) * (p[t] - q[t])
				if p[t] > p[topP] {
					topP = t
				}
				if q[t] > q[topQ] {
					topQ = t
				}
			}
			kld.add(d)
			perBin[i*bins/n].add(d)
			if topP == topQ {
				same++
			}
			next := a.tokens[c*a.Ctx+first+i+1]
			if next < 0 || int(next) >= a.Vocab {
				return nil, fmt.Errorf("%s: token %d is not in the vocabulary", base, next)
			}
			baseNLL.add(-p[next])
			nll.add(-q[next])
		}
	}
	out := &Compared{KLD: kld.mean(), Largest: kld.largest, PPL: perplexity(nll.mean()), BasePPL: perplexity(baseNLL.mean()), Chunks: a.Chunks, Position: first}
	if kld.n > 0 {
		out.SameTop = float64(same) / float64(kld.n)
	}
	for k := range perBin {
		// positions i with i*bins/n == k
		from, to := (k*n+bins-1)/bins, ((k+1)*n+bins-1)/bins-1
		out.Bins = append(out.Bins, Bin{From: first + from, To: first + to, KLD: perBin[k].mean()})
	}
	return out, nil
}

func perplexity(m Mean) Mean {
	ppl := math.Exp(m.Mean)
	return Mean{Mean: ppl, Err: ppl * m.Err, N: m.N}
}

func equal(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
