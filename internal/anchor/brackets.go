package anchor

import (
	"slices"
	"strings"
)

// open is a node of the stack of open brackets. The stack is a linked list, so
// that each branch of a conditional continues from the same one.
type open struct {
	tok   int
	depth int
	below *open
}

// branchState is what an #if must remember until its #endif.
type branchState struct {
	entry  *open // stack before the #if
	chosen *open // stack after the branch that counts
	done   bool  // chosen is set
	zero   bool  // the current branch is an #if 0: a later one counts
	inAlt  bool
	alt    int // alternative around the #if
	cond   int
	others []*open // stacks after the branches that do not count

	what string // the condition, without negation
	not  bool   // it is negated
	more bool   // there is another branch
}

// pairing is the state of pairBrackets.
type pairing struct {
	stack *open
	nest  []*branchState
	alt   int
	alias map[int]int  // bracket -> the one it stands for
	last  *branchState // the last finished #if without #else that changed the stack
}

// pairBrackets pairs ( ) [ ] { }. Of the branches of a conditional the first one
// that is not #if 0 decides the balance of what follows; brackets of the others
// pair within their branch, or share the partner of the bracket they stand for.
func (f *File) pairBrackets() {
	n := len(f.toks)
	f.pair, f.up, f.alt = make([]int, n), make([]int, n), make([]int, n)
	f.altUp = []int{0}
	for i := range f.pair {
		f.pair[i] = -1
	}
	p := &pairing{alias: map[int]int{}}
	for i := 0; i < n; {
		f.alt[i], f.up[i] = p.alt, p.stack.index()
		if d := f.toks[i].Dir; d != 0 {
			end := i + 1
			for end < n && f.toks[end].Dir == d {
				end++
			}
			f.directive(i, end, p)
			var local *open // brackets of a directive pair within it
			for j := i; j < end; j++ {
				f.alt[j], f.up[j] = p.alt, local.index()
				local = f.bracket(j, local)
			}
			i = end
			continue
		}
		p.stack = f.bracket(i, p.stack)
		i++
	}
	for _, b := range p.nest { // an #if without #endif reaches the end
		f.conds[b.cond].last = n - 1
	}
	for a, b := range p.alias {
		for c, ok := p.alias[b]; ok; c, ok = p.alias[b] {
			b = c
		}
		if f.pair[a] < 0 {
			f.pair[a] = f.pair[b]
		}
	}
}

func (o *open) index() int {
	if o == nil {
		return -1
	}
	return o.tok
}

func (o *open) size() int {
	if o == nil {
		return 0
	}
	return o.depth
}

// bracket pushes or pops token i. A closer without a partner is ignored; a } or
// ) closes whatever was left open inside its pair.
func (f *File) bracket(i int, stack *open) *open {
	if f.toks[i].Kind != Punct {
		return stack
	}
	var want byte
	switch c := f.src[f.toks[i].Start]; c {
	case '(', '[', '{':
		return &open{tok: i, depth: stack.size() + 1, below: stack}
	case ')':
		want = '('
	case ']':
		want = '['
	case '}':
		want = '{'
	default:
		return stack
	}
	o := stack
	for o != nil && f.src[f.toks[o.tok].Start] != want {
		if want != '{' && f.src[f.toks[o.tok].Start] == '{' {
			return stack
		}
		o = o.below
	}
	if o == nil {
		return stack
	}
	f.pair[i] = o.tok
	if f.pair[o.tok] < 0 {
		f.pair[o.tok] = i
	}
	f.up[i] = o.below.index()
	return o.below
}

// directive handles the conditional directives at tokens [i, end).
func (f *File) directive(i, end int, p *pairing) {
	if i+1 >= end {
		return
	}
	word := f.Text(i + 1)
	switch word {
	case "if", "ifdef", "ifndef":
		b := &branchState{entry: p.stack, alt: p.alt, cond: len(f.conds)}
		b.what, b.not = f.condition(word, i+2, end)
		f.conds = append(f.conds, cond{first: i})
		if l := p.last; l != nil && l.what == b.what && l.not != b.not && l.chosen == p.stack {
			// The #else of an earlier #if, written as a conditional of its own.
			b.entry, b.chosen, b.done, b.inAlt, b.more = l.entry, l.chosen, true, true, true
			p.stack = l.entry
		}
		b.zero = b.what == "0" && !b.not
		if b.zero || b.inAlt {
			p.alt = f.newAlt(p.alt)
		}
		p.nest = append(p.nest, b)
		return
	case "else", "elif", "elifdef", "elifndef", "endif":
	default:
		return
	}
	if len(p.nest) == 0 {
		return
	}
	b := p.nest[len(p.nest)-1]
	b.leave(p.stack)
	p.alt = b.alt
	if word != "endif" {
		b.more = true
		if b.done {
			b.inAlt = true
			p.alt = f.newAlt(p.alt)
		}
		p.stack = b.entry
		return
	}
	if !b.done {
		b.chosen = b.entry
	}
	f.conds[b.cond].last = end - 1
	for _, o := range b.others {
		f.alias(o, b, p.alias)
	}
	p.stack, p.nest = b.chosen, p.nest[:len(p.nest)-1]
	if !b.more && b.chosen != b.entry {
		p.last = b
	}
}

// condition is the text of the condition at tokens [i, end) without negation and
// outer parentheses, and whether it was negated.
func (f *File) condition(word string, i, end int) (what string, not bool) {
	if word != "if" {
		not = word == "ifndef"
		what = "defined "
	}
	toks := []string{}
	for ; i < end; i++ {
		toks = append(toks, f.Text(i))
	}
	for n := len(toks) - 1; n > 0; n = len(toks) - 1 {
		whole := func(i int) bool { return toks[i] == "(" && toks[n] == ")" && !slices.Contains(toks[i+1:n], ")") }
		if whole(0) {
			toks = toks[1:n]
		} else if toks[0] == "!" && (n == 1 || whole(1) || toks[1] == "defined" && (n == 2 || n == 4)) {
			toks, not = toks[1:], !not
		} else {
			break
		}
	}
	if len(toks) == 4 && toks[0] == "defined" && toks[1] == "(" {
		toks = []string{"defined", toks[2]}
	}
	return what + strings.Join(toks, " "), not
}

func (f *File) newAlt(up int) int {
	f.altUp = append(f.altUp, up)
	return len(f.altUp) - 1
}

func (b *branchState) leave(stack *open) {
	if b.zero || b.inAlt {
		b.others = append(b.others, stack)
	} else {
		b.chosen, b.done = stack, true
	}
	b.zero, b.inAlt = false, false
}

// alias notes that the brackets left open by a branch that does not count stand
// for those left open by the one that does.
func (f *File) alias(o *open, b *branchState, alias map[int]int) {
	c := b.chosen
	if o.size() != c.size() {
		return
	}
	for ; o != c; o, c = o.below, c.below {
		if f.src[f.toks[o.tok].Start] == f.src[f.toks[c.tok].Start] {
			alias[o.tok] = c.tok
		}
	}
}
