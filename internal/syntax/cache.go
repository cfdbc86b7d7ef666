package syntax

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"dot4fa/internal/fault"
)

// cache keeps verdicts as a compiler cache with manifests does. One shelf is one
// command line of one compiler, so one unit. It has the sets of files that the
// unit was seen to read, and verdicts by the digest of such a set in a commit.
type cache struct {
	dir   string // "": in memory only
	mu    sync.Mutex
	byKey map[string]*shelf
	tools map[string]string // path to identity
}

type shelf struct {
	Format   int                `json:"format"`
	Sets     [][]string         `json:"sets"` // the latest first
	Verdicts map[string]verdict `json:"verdicts"`
	dirty    bool
}

type verdict struct {
	Status  Status  `json:"status"`
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

const (
	shelfFormat = 1
	shelfMax    = 4000 // verdicts; a fuller shelf is begun anew
)

func newCache(dir string) *cache {
	return &cache{dir: dir, byKey: map[string]*shelf{}, tools: map[string]string{}}
}

// key names the shelf of some command lines. Headers of the system and of HIP are
// taken to change with the compiler or with HIP's version.
func (c *cache) key(commands [][]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := sha256.New()
	fmt.Fprintf(h, "%d %q", shelfFormat, commands)
	for _, args := range commands {
		fmt.Fprintf(h, " %s", c.identity(args[0]))
		for _, a := range args {
			if root, ok := strings.CutPrefix(a, "--rocm-path="); ok {
				fmt.Fprintf(h, " %s", c.identity(filepath.Join(root, "include", "hip", "hip_version.h")))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// identity changes with the file.
func (c *cache) identity(file string) string {
	if id, ok := c.tools[file]; ok {
		return id
	}
	id := file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		if info, err := os.Stat(real); err == nil {
			id = fmt.Sprintf("%s %d %d", real, info.Size(), info.ModTime().UnixNano())
		}
	}
	c.tools[file] = id
	return id
}

func (c *cache) shelf(key string) *shelf {
	s := c.byKey[key]
	if s == nil {
		s = c.load(key)
		c.byKey[key] = s
	}
	return s
}

// load reads a shelf; one that is missing, damaged or of another format is empty.
func (c *cache) load(key string) *shelf {
	s := &shelf{}
	if c.dir != "" {
		if data, err := os.ReadFile(c.file(key)); err == nil && json.Unmarshal(data, s) == nil && s.Format == shelfFormat && s.Verdicts != nil {
			return s
		}
	}
	return &shelf{Format: shelfFormat, Verdicts: map[string]verdict{}}
}

func (c *cache) file(key string) string { return filepath.Join(c.dir, key+".json") }

// find sets the verdict on u when it is known for what u reads in img.
func (c *cache) find(key string, img *image, u *Unit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelf(key)
	for _, set := range s.Sets {
		if v, ok := s.Verdicts[img.digest(set)]; ok {
			u.Status, u.Detail, u.Seconds, u.Cached = v.Status, v.Detail, v.Seconds, true
			return true
		}
	}
	return false
}

// put keeps the verdict on u, which read the files of img. Where the compiler
// could not say what it read, every file counts.
func (c *cache) put(key string, img *image, u *Unit, read []string) {
	if read == nil {
		read = []string{anything}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelf(key)
	if len(s.Verdicts) >= shelfMax {
		s.Verdicts = map[string]verdict{}
	}
	i := slices.IndexFunc(s.Sets, func(set []string) bool { return slices.Equal(set, read) })
	if i > 0 {
		s.Sets = slices.Delete(s.Sets, i, i+1)
	}
	if i != 0 {
		s.Sets = slices.Insert(s.Sets, 0, read)
	}
	s.Verdicts[img.digest(read)] = verdict{u.Status, u.Detail, u.Seconds}
	s.dirty = true
}

// anything stands for all files of an image.
const anything = "*"

// digest identifies the content of a set of files in img. Files elsewhere that
// are called like one of them belong to it: a new one could be found first.
func (img *image) digest(set []string) string {
	h := sha256.New()
	if len(set) == 1 && set[0] == anything {
		set = set[:0:0]
		for name := range img.files {
			set = append(set, name)
		}
		slices.Sort(set)
	}
	for _, name := range set {
		fmt.Fprintf(h, "%s %s %q\n", name, img.files[name].id, img.byBase[path.Base(name)])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// save writes the shelves that changed, with what another run put there meanwhile.
func (c *cache) save() error {
	if c.dir == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, s := range c.byKey {
		if !s.dirty {
			continue
		}
		for digest, v := range c.load(key).Verdicts {
			if _, have := s.Verdicts[digest]; !have && len(s.Verdicts) < shelfMax {
				s.Verdicts[digest] = v
			}
		}
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if err = os.MkdirAll(c.dir, 0o755); err == nil {
			err = renameio.WriteFile(c.file(key), data, 0o644)
		}
		if err != nil {
			return fault.New(fault.Environment, "cannot keep the compilers' verdicts: %w", err).At("%s", c.dir).
				Hintf("set DOT4FA_CACHE to a directory that can be written")
		}
		s.dirty = false
	}
	return nil
}
