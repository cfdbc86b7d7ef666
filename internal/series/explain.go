package series

import "bytes"

// Origin says where a line of an edited file comes from.
type Origin struct {
	ID     string `json:"id"`
	Member string `json:"member"`
	Title  string `json:"title"`
	Why    string `json:"why"`
	Where  string `json:"where"` // file:line:col of the edit
	Place  string `json:"place"`
	First  int    `json:"first"` // lines of the edited file that it produced
	Last   int    `json:"last"`
}

// Explain says which edits produced a 1-based line of an edited file. It answers
// nothing for a line of upstream's own.
func (p *Plan) Explain(path string, line int) []Origin {
	f := p.File(path)
	if f == nil {
		return nil
	}
	var found []Origin
	f.eachEdit(func(e *Edit, first, last int) {
		if first <= line && line <= last {
			m := p.Members[e.Member]
			found = append(found, Origin{ID: e.ID, Member: m.File, Title: m.Title, Why: e.Why,
				Where: e.Where, Place: e.Place(), First: first, Last: last})
		}
	})
	return found
}

// EditAt returns the first edit that made 1-based line n of the edited file, or
// nil when the line is upstream's or there is none.
func (f *FilePlan) EditAt(n int) *Edit {
	var found *Edit
	f.eachEdit(func(e *Edit, first, last int) {
		if found == nil && first <= n && n <= last {
			found = e
		}
	})
	return found
}

// eachEdit reports the lines of the edited file that each splice produced.
func (f *FilePlan) eachEdit(fn func(e *Edit, first, last int)) {
	line, at := 1, 0
	for _, s := range f.splices {
		line += bytes.Count(f.Pre[at:s.start], []byte("\n"))
		at = s.end
		first := line
		line += bytes.Count(s.text, []byte("\n"))
		last := line
		if bytes.HasSuffix(s.text, []byte("\n")) {
			last-- // the next line is not its
		}
		if text := bytes.TrimPrefix(s.text, []byte("\r")); bytes.HasPrefix(text, []byte("\n")) && last > first {
			first++ // it only ends the line before
		}
		if len(s.text) > 0 {
			fn(s.edit, first, last)
		}
	}
}
