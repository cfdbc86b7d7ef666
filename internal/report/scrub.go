package report

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// Scrubber takes out of texts what says whose machine it is.
type Scrubber struct {
	places []place
	words  *regexp.Regexp // user and host name, as words
}

type place struct{ from, to string }

// homes are the directories of any user, on the systems there are.
var homes = regexp.MustCompile(`(/home/|/Users/|/root\b|(?i:[A-Z]:(?:\\\\|\\|/)Users(?:\\\\|\\|/)))([^/\\\s"':;,)]*)`)

// spaced are those of users whose directory has a blank in its name. Text between
// two paths may go with it, which is better than half of a name left.
var spaced = regexp.MustCompile(`(?:/home/|/Users/|(?i:[A-Z]:(?:\\\\|\\|/)Users(?:\\\\|\\|/)))[^/\\\s"':;,)]+(?: [^/\\\s"':;,)]+){1,3}([/\\])`)

// absolute is a path of at least two names, from the root on.
var absolute = regexp.MustCompile(`(^|[\s"'=(,:\[])(/[\w.+@~-]+){2,}`)

// system are the directories below the root that are alike on every machine. Of
// other paths only the last name is kept.
var system = map[string]bool{"usr": true, "opt": true, "etc": true, "dev": true, "sys": true, "proc": true, "lib": true, "lib64": true, "bin": true, "sbin": true, "boot": true, "System": true, "Library": true, "Applications": true}

// common are user and host names that say nothing of anyone, and are words too.
var common = map[string]bool{"root": true, "user": true, "localhost": true, "build": true, "runner": true, "main": true, "home": true}

// NewScrubber knows the user, the machine and the home directory, and gives the
// directories in names what they are called instead.
func NewScrubber(names map[string]string) *Scrubber {
	s := &Scrubber{}
	add := func(from, to string) {
		if from = filepath.Clean(from); len(from) < 2 || from == string(filepath.Separator) {
			return
		}
		s.places = append(s.places, place{from, to})
		if real, err := filepath.EvalSymlinks(from); err == nil && real != from {
			s.places = append(s.places, place{real, to})
		}
	}
	for dir, name := range names {
		add(dir, name)
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(home, "~")
	}
	add(os.TempDir(), "TMP")
	// the longest first: a work tree in a home directory is a work tree
	sort.SliceStable(s.places, func(i, j int) bool { return len(s.places[i].from) > len(s.places[j].from) })
	var words []string
	word := func(w string) {
		if len(w) > 2 && !common[strings.ToLower(w)] {
			words = append(words, regexp.QuoteMeta(w))
		}
	}
	if u, err := user.Current(); err == nil {
		word(filepath.Base(u.Username))
		word(u.Name)
	}
	word(os.Getenv("USER"))
	word(os.Getenv("LOGNAME"))
	if host, err := os.Hostname(); err == nil {
		word(host)
		word(strings.SplitN(host, ".", 2)[0])
	}
	if len(words) > 0 {
		s.words = regexp.MustCompile(`\b(?:` + strings.Join(words, "|") + `)\b`)
	}
	return s
}

// Text scrubs a text.
func (s *Scrubber) Text(t string) string {
	for _, p := range s.places {
		t = replacePath(t, p.from, p.to)
	}
	t = spaced.ReplaceAllString(t, "~$1")
	t = homes.ReplaceAllString(t, "~")
	t = absolute.ReplaceAllStringFunc(t, func(m string) string {
		i := strings.IndexByte(m, '/')
		parts := strings.Split(m[i+1:], "/")
		if system[parts[0]] {
			return m
		}
		return m[:i] + "…/" + parts[len(parts)-1]
	})
	if s.words != nil {
		t = s.words.ReplaceAllString(t, "NAME")
	}
	return t
}

// option is what may stand before a path without a space, as -I does.
var option = regexp.MustCompile(`(?:^|[\s"'])-[A-Za-z]+$`)

// replacePath replaces a directory where it is one: not /tmp in /tmpfs.
func replacePath(t, from, to string) string {
	var b strings.Builder
	for {
		i := strings.Index(t, from)
		if i < 0 {
			b.WriteString(t)
			return b.String()
		}
		end := i + len(from)
		whole := end == len(t) || !isName(t[end])
		if i > 0 && (isName(t[i-1]) || t[i-1] == '/') && !option.MatchString(t[:i]) {
			whole = false // the end of a longer path
		}
		b.WriteString(t[:i])
		if whole {
			b.WriteString(to)
		} else {
			b.WriteString(from)
		}
		t = t[end:]
	}
}

func isName(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// JSON scrubs every string in a value, keys too.
func (s *Scrubber) JSON(data []byte) (json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s.value(v))
	return json.RawMessage(strings.TrimSpace(b.String())), err
}

func (s *Scrubber) value(v any) any {
	switch v := v.(type) {
	case string:
		return s.Text(v)
	case []any:
		for i := range v {
			v[i] = s.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[s.Text(k)] = s.value(e)
		}
		return out
	}
	return v
}
