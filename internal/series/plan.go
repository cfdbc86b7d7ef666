package series

import (
	"bytes"
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
		return nil, fault.New(fault.Failure, "%w", err)
	}
	if err := report(s, v.results); err != nil {
		return nil, err
	}
	p := &Plan{Results: v.results, Members: s.Members}
	for _, name := range sortedKeys(v.places) {
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
	lines := dedent(text)
	f := file.file()
	if p.lines {
		return f.Lines(p.at, lines), nil
	}
	return f.Inline(p.start, lines), nil
}

func (e *Edit) render(data any) (string, error) {
	where := e.Where
	if e.Template != "" {
		where = "templates/" + e.Template
	}
	t, err := template.New(e.ID).Option("missingkey=error").Parse(strings.ReplaceAll(e.Text, "\r\n", "\n"))
	if err != nil {
		return "", fault.New(fault.Usage, "the text of edit %s is not a template: %w", e.ID, err).At("%s", where).
			Hintf("in C++ text write { { with a blank, or {{\"{{\"}}")
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", fault.New(fault.Usage, "cannot render edit %s: %w", e.ID, err).At("%s", where).
			Hintf("the data of a text is the recipe; `dot4fa recipe show` prints its names")
	}
	return b.String(), nil
}

// dedent splits text into lines and strips the indentation they share. Blank
// lines and preprocessor lines in column 1 do not count.
func dedent(text string) []string {
	lines := strings.Split(text, "\n")
	common, any := "", false
	for _, l := range lines {
		body := strings.TrimLeft(l, " \t")
		if body == "" || strings.HasPrefix(l, "#") {
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
