package series

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"dot4fa/internal/fault"
)

// Plan is what a series does to one tree: every edited file before and after.
// It holds no reference to the tree.
type Plan struct {
	Files   []FilePlan // sorted by path; files that no edit changes are left out
	Results []Result   // every edit, in series order
	Members []Member
}

// EditSum identifies what an edit does to a tree.
type EditSum struct {
	ID     string
	SHA256 string // of its place, technique and rendered text
}

// Sums returns the digest of every edit that was made, in series order.
func (p *Plan) Sums() []EditSum {
	sums := []EditSum{}
	for _, r := range p.Results {
		if r.Status != OK {
			continue
		}
		e := r.edit
		h := sha256.New()
		fmt.Fprintf(h, "%q %q %q %q %q", e.File, e.Scope, e.Anchor, e.Count, e.Do)
		if f := p.File(e.File); f != nil {
			for _, s := range f.splices {
				if s.edit == e {
					fmt.Fprintf(h, " %d %d %q", s.start, s.end, s.text)
				}
			}
		}
		sums = append(sums, EditSum{e.ID, hex.EncodeToString(h.Sum(nil))})
	}
	return sums
}

// FilePlan is one file before and after the edits.
type FilePlan struct {
	Path string
	Pre  []byte // nil when New
	Post []byte
	New  bool

	splices []splice
}

// splice replaces bytes [start, end) of the pristine file.
type splice struct {
	start, end int
	text       []byte
	edit       *Edit
}

// Plan locates every edit on the pristine tree that read shows and renders its
// text with data. When an edit does not apply, the error is a *fault.Error with
// exit code 3 that wraps a *Report.
func (s *Series) Plan(read ReadFunc, data any) (*Plan, error) {
	v, err := s.survey(read)
	if err != nil {
		return nil, err
	}
	if err := report(s, v.results); err != nil {
		return nil, err
	}
	p := &Plan{Results: v.results, Members: s.Members}
	for _, name := range slices.Sorted(maps.Keys(v.places)) {
		file := v.files[name]
		fp := FilePlan{Path: name, Pre: file.src, New: file.absent}
		for _, at := range v.places[name] {
			text, err := at.render(file, data)
			if err != nil {
				return nil, err
			}
			if len(text) > 0 || at.end > at.start || fp.New {
				fp.splices = append(fp.splices, splice{at.start, at.end, text, at.edit})
			}
		}
		fp.Post = fp.image(len(s.Members))
		if fp.New || !bytes.Equal(fp.Pre, fp.Post) {
			p.Files = append(p.Files, fp)
		}
	}
	return p, nil
}

// File returns the plan of one path, or nil.
func (p *Plan) File(path string) *FilePlan {
	for i := range p.Files {
		if p.Files[i].Path == path {
			return &p.Files[i]
		}
	}
	return nil
}

// Image returns a file as it is after the first n members of the series; ok is
// false when it does not exist then.
func (f *FilePlan) Image(n int) (data []byte, ok bool) {
	if f.New && f.splices[0].edit.Member >= n {
		return nil, false
	}
	return f.image(n), true
}

func (f *FilePlan) image(n int) []byte {
	var b bytes.Buffer
	at := 0
	for _, s := range f.splices {
		if s.edit.Member >= n {
			continue
		}
		b.Write(f.Pre[at:s.start])
		b.Write(s.text)
		at = s.end
	}
	b.Write(f.Pre[at:])
	return b.Bytes()
}

// render is the text of a place as it stands in the file.
func (p *place) render(file *pristine, data any) ([]byte, error) {
	if p.fixed != "" {
		return []byte(p.fixed), nil
	}
	text, err := p.edit.render(data)
	if err != nil {
		return nil, err
	}
	if p.edit.Do == NewFile {
		return []byte(strings.TrimRight(text, "\n") + "\n"), nil
	}
	text = strings.TrimSuffix(text, "\n")
	if strings.TrimSpace(text) == "" && p.lines {
		return nil, nil
	}
	f := file.file()
	lines := dedent(text, f.Directives())
	if p.lines {
		return f.Lines(p.at, lines), nil
	}
	return f.Inline(p.start, lines), nil
}

func (e *Edit) render(data any) (string, error) {
	t, err := template.New("text").Option("missingkey=error").Parse(strings.ReplaceAll(e.Text, "\r\n", "\n"))
	if err != nil {
		return "", e.textFault(err, "the text of edit %s is not a template").
			Hintf("in C++ text write { { with a blank, or {{\"{{\"}}")
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", e.textFault(err, "cannot render the text of edit %s").
			Hintf("the data of a text is the recipe; `dot4fa recipe show` prints its names")
	}
	return b.String(), nil
}

var templateLine = regexp.MustCompile(`^template: text:(\d+)(?::(\d+))?: (?:executing "text" )?`)

// textFault places an error of text/template in the file the text stands in.
func (e *Edit) textFault(err error, what string) *fault.Error {
	text := err.Error()
	m := templateLine.FindStringSubmatch(text)
	if m == nil {
		return fault.New(fault.Usage, what+": %w", e.ID, err).At("%s", e.Where)
	}
	line, _ := strconv.Atoi(m[1])
	first := max(e.textLine, 1)
	return fault.New(fault.Usage, what+": %s", e.ID, strings.TrimPrefix(text, m[0])).At("%s:%d", e.textAt, first+line-1)
}

// dedent splits text into lines and strips the indentation they share. Blank
// lines do not count, nor do preprocessor lines in column 1 where there are any.
func dedent(text string, directives bool) []string {
	lines := strings.Split(text, "\n")
	common, any := "", false
	for _, l := range lines {
		body := strings.TrimLeft(l, " \t")
		if body == "" || directives && strings.HasPrefix(l, "#") {
			continue
		}
		indent := l[:len(l)-len(body)]
		if !any {
			common, any = indent, true
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			lines[i] = ""
		} else {
			lines[i] = strings.TrimPrefix(l, common)
		}
	}
	return lines
}
