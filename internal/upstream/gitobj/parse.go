package gitobj

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The modes of a tree entry.
const (
	ModeFile   = "100644"
	ModeExec   = "100755"
	ModeLink   = "120000"
	ModeDir    = "40000"
	ModeModule = "160000"
)

// Entry is one entry of a tree.
type Entry struct {
	Mode string
	Name string
	ID   string
}

// CommitInfo is what a commit says about itself.
type CommitInfo struct {
	ID      string
	Tree    string
	Parents []string
	Date    time.Time // the committer's, UTC
	Subject string
}

// ReadTree returns the entries of a tree in git's order.
func (s *Store) ReadTree(ctx context.Context, id string) ([]Entry, error) {
	typ, data, err := s.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if typ != Tree {
		return nil, fmt.Errorf("%w: %s is a %s, not a tree", ErrType, id, typ)
	}
	return parseTree(id, data)
}

func parseTree(id string, data []byte) ([]Entry, error) {
	var out []Entry
	for len(data) > 0 {
		mode, rest, ok1 := bytes.Cut(data, []byte{' '})
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok1 || !ok2 || len(rest) < 20 {
			return nil, fmt.Errorf("%w: tree %s ends early", ErrDamaged, id)
		}
		e := Entry{strings.TrimLeft(string(mode), "0"), string(name), hex.EncodeToString(rest[:20])}
		// Never let a tree write outside its directory or into a repository.
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\\") || strings.EqualFold(e.Name, ".git") {
			return nil, fmt.Errorf("tree %s has an entry called %q", id, e.Name)
		}
		if e.Mode == "100664" { // written by very old git; checked out as a plain file
			e.Mode = ModeFile
		}
		out = append(out, e)
		data = rest[20:]
	}
	return out, nil
}

// ReadCommit returns a commit. id may be an annotated tag, which is followed.
func (s *Store) ReadCommit(ctx context.Context, id string) (CommitInfo, error) {
	for range 10 {
		typ, data, err := s.Read(ctx, id)
		if err != nil {
			return CommitInfo{}, err
		}
		switch typ {
		case Commit:
			return parseCommit(id, data)
		case Tag:
			to := header(data, "object")
			if len(to) != 1 || !IsID(to[0]) {
				return CommitInfo{}, fmt.Errorf("%w: tag %s names no object", ErrDamaged, id)
			}
			id = to[0]
		default:
			return CommitInfo{}, fmt.Errorf("%w: %s is a %s, not a commit", ErrType, id, typ)
		}
	}
	return CommitInfo{}, fmt.Errorf("tag %s is a tag of a tag of a tag", id)
}

// header returns the values of one header field.
func header(data []byte, name string) []string {
	head, _, _ := strings.Cut(string(data), "\n\n")
	var out []string
	for line := range strings.SplitSeq(head, "\n") {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			out = append(out, v)
		}
	}
	return out
}

func parseCommit(id string, data []byte) (CommitInfo, error) {
	c := CommitInfo{ID: id, Parents: header(data, "parent")}
	if t := header(data, "tree"); len(t) == 1 && IsID(t[0]) {
		c.Tree = t[0]
	} else {
		return c, fmt.Errorf("%w: commit %s has no tree", ErrDamaged, id)
	}
	if who := header(data, "committer"); len(who) == 1 {
		if f := strings.Fields(who[0]); len(f) >= 2 {
			if sec, err := strconv.ParseInt(f[len(f)-2], 10, 64); err == nil {
				c.Date = time.Unix(sec, 0).UTC()
			}
		}
	}
	_, msg, _ := strings.Cut(string(data), "\n\n")
	c.Subject, _, _ = strings.Cut(strings.TrimLeft(msg, "\n"), "\n")
	return c, nil
}

// HashTree returns the id of the tree with these entries, sorting them as git
// does: a directory as if its name ended in a slash.
func HashTree(entries []Entry) string {
	sorted := append([]Entry(nil), entries...)
	key := func(e Entry) string {
		if e.Mode == ModeDir {
			return e.Name + "/"
		}
		return e.Name
	}
	sort.Slice(sorted, func(i, j int) bool { return key(sorted[i]) < key(sorted[j]) })
	var b bytes.Buffer
	for _, e := range sorted {
		b.WriteString(e.Mode + " " + e.Name + "\x00")
		raw, _ := hex.DecodeString(e.ID)
		b.Write(raw)
	}
	return Hash(Tree, b.Bytes())
}
