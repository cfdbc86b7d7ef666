package series

import "bytes"

// EditAt returns the edit that made line n (from 1) of the edited file, or nil
// when the line is upstream's or there is none.
func (f *FilePlan) EditAt(n int) *Edit {
	line, at := 1, 0
	for _, s := range f.splices {
		line += bytes.Count(f.Pre[at:s.start], []byte{'\n'})
		at = s.end
		added := bytes.Count(s.text, []byte{'\n'})
		last := line + added
		if bytes.HasSuffix(s.text, []byte{'\n'}) {
			last-- // ends with its line: the next one is not ours
		}
		if len(s.text) > 0 && n >= line && n <= last {
			return s.edit
		}
		line += added
	}
	return nil
}
