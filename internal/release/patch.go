package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"strings"
	"time"

	"dot4fa/internal/fault"
	"dot4fa/internal/series"
	"dot4fa/internal/upstream/gitobj"
)

// change is what one patch does to one file.
type change struct {
	path     string
	old, new string // blob ids, old is empty for a file that was not there
	mode     string
	diff     []byte // with the index line
}

// part is one patch before it is written.
type part struct {
	member  series.Member
	edits   []series.Result
	changes []change
}

const noBlob = "0000000000000000000000000000000000000000"

// memberChanges takes member n's diff apart and completes it with index lines;
// now are the files as the members before it left them.
func memberChanges(p *series.Plan, n int, now map[string]gitobj.Entry) ([]change, error) {
	sections := sections(p.MemberDiff(n))
	var out []change
	for i := range p.Files {
		f := &p.Files[i]
		before, had := f.Image(n)
		after, has := f.Image(n + 1)
		if !has || had && bytes.Equal(before, after) {
			continue
		}
		if len(sections) == 0 {
			return nil, fault.New(fault.Failure, "member %d of the series has no diff for %s", n, f.Path).Hintf("%s", fault.Ours)
		}
		c := change{path: f.Path, new: gitobj.Hash(gitobj.Blob, after), mode: gitobj.ModeFile}
		if had {
			c.old, c.mode = gitobj.Hash(gitobj.Blob, before), now[f.Path].Mode
			if c.old != now[f.Path].ID {
				return nil, fault.New(fault.Failure, "%s is %.10s in the base commit and %.10s in the plan", f.Path, now[f.Path].ID, c.old).
					Hintf("run the command again: upstream changed in between")
			}
		}
		c.diff = c.indexed(sections[0])
		sections = sections[1:]
		out = append(out, c)
	}
	if len(sections) > 0 {
		return nil, fault.New(fault.Failure, "member %d of the series changes files it does not list", n).Hintf("%s", fault.Ours)
	}
	return out, nil
}

// sections splits a diff into those of its files. No line of a hunk can look
// like the first line of a section: it begins with a mark.
func sections(diff []byte) [][]byte {
	var out [][]byte
	for line := range bytes.SplitAfterSeq(diff, []byte{'\n'}) {
		if bytes.HasPrefix(line, []byte("diff --git ")) {
			out = append(out, nil)
		}
		if len(out) > 0 {
			out[len(out)-1] = append(out[len(out)-1], line...)
		}
	}
	return out
}

// indexed puts the index line, with full ids, where git has it.
func (c *change) indexed(section []byte) []byte {
	at := bytes.IndexByte(section, '\n') + 1
	line := fmt.Sprintf("index %s..%s %s\n", c.old, c.new, c.mode)
	if c.old == "" {
		at += bytes.IndexByte(section[at:], '\n') + 1 // "new file mode"
		line = fmt.Sprintf("index %s..%s\n", noBlob, c.new)
	}
	return append(append(append([]byte{}, section[:at]...), line...), section[at:]...)
}

// added is the change that brings a whole file.
func added(name string, data []byte) change {
	c := change{path: name, new: gitobj.Hash(gitobj.Blob, data), mode: gitobj.ModeFile}
	f := series.FilePlan{Path: name, Post: data, New: true}
	c.diff = c.indexed(f.AddDiff())
	return c
}

// mail writes patch n of total in the form of git format-patch.
func (p *part) mail(n, total int, date time.Time) []byte {
	var b bytes.Buffer
	digits := len(fmt.Sprint(total))
	fmt.Fprintf(&b, "From %s Mon Sep 17 00:00:00 2001\n", noBlob) // the date by which git knows its own mails
	fmt.Fprintf(&b, "From: dot4fa <dot4fa@example.invalid>\n")
	fmt.Fprintf(&b, "Date: %s\n", date.UTC().Format("Mon, 2 Jan 2006 15:04:05 -0700"))
	subject := strings.Join(strings.Fields(p.member.Title), " ")
	fmt.Fprintf(&b, "Subject: [PATCH %0*d/%d] %s\n", digits, n, total, strings.ReplaceAll(mime.QEncoding.Encode("utf-8", subject), "\r\n", "\n"))
	b.WriteString("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n")

	b.WriteString(paragraph(p.member.Why, ""))
	b.WriteString("\n" + paragraph("Can go when: "+p.member.RemoveWhen, ""))
	first := true
	for _, r := range p.edits {
		if r.Status != series.OK || r.Member != p.member.File {
			continue
		}
		if first {
			b.WriteString("\n")
			first = false
		}
		for _, e := range p.member.Edits {
			if e.ID == r.ID {
				b.WriteString(paragraph("- "+e.ID+" ("+e.File+"): "+e.Why, "  "))
			}
		}
	}
	b.WriteString("---\n")
	for _, c := range p.changes {
		b.Write(c.diff)
	}
	b.WriteString("-- \ndot4fa\n\n")
	return b.Bytes()
}

// paragraph breaks text into lines of 72 characters. A line that git would take
// for the end of the message, or for a header inside it, is moved in by a blank.
func paragraph(text, indent string) string {
	var b strings.Builder
	line := ""
	flush := func() {
		for _, p := range []string{"---", "-- ", "diff ", "Index:", "From ", ">From ", "From:", "Subject:", "Date:", "[PATCH"} {
			if strings.HasPrefix(line, p) || line == "--" {
				line = " " + line
				break
			}
		}
		b.WriteString(line + "\n")
	}
	for _, w := range strings.Fields(text) {
		switch {
		case line == "":
			line = w
		case len([]rune(line))+1+len([]rune(w)) > 72:
			flush()
			line = indent + w
		default:
			line += " " + w
		}
	}
	if line != "" {
		flush()
	}
	return b.String()
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
