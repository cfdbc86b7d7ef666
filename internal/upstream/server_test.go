package upstream

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dot4fa/internal/upstream/gittest"
)

// said keeps what a user is told.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}
func (s *said) Status(string, ...any) {}
func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// server serves a repository over HTTP as a forge does, with faults on request.
type server struct {
	*httptest.Server
	hits  atomic.Int32 // requests
	cut   atomic.Int64 // answers with a pack end after so many bytes; 0: never
	stall atomic.Bool  // answers with a pack stop half way
	v0    atomic.Bool  // the server speaks the old protocol
	away  atomic.Bool  // connections are closed without an answer
}

func serve(t *testing.T, r *gittest.Repo) *server {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not installed")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git has no http-backend")
	}
	s := &server{}
	stop := make(chan struct{})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.hits.Add(1)
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		env := append(gittest.Env(), "GIT_PROJECT_ROOT="+filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1")
		if s.v0.Load() {
			req.Header.Del("Git-Protocol")
		} else if p := req.Header.Get("Git-Protocol"); p != "" {
			env = append(env, "GIT_PROTOCOL="+p)
		}
		// /x.git is the repository, whatever its directory is called.
		req.URL.Path = "/" + filepath.Base(r.Dir) + "/.git" + strings.TrimPrefix(req.URL.Path, "/x.git")
		h := &cgi.Handler{Path: backend, Env: env, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0)}
		if strings.HasSuffix(req.URL.Path, "git-upload-pack") && (s.cut.Load() > 0 || s.stall.Load()) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			body := rec.Body.Bytes()
			if strings.Contains(string(body), "PACK") {
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				half := len(body) / 2
				if n := int(s.cut.Load()); n > 0 && n < half {
					half = n
				}
				w.Write(body[:half])
				w.(http.Flusher).Flush()
				if s.stall.Load() {
					select {
					case <-req.Context().Done():
					case <-stop:
					}
				}
				panic(http.ErrAbortHandler)
			}
			for k, v := range rec.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(rec.Code)
			w.Write(body)
			return
		}
		h.ServeHTTP(w, req)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() { close(stop); s.Close() })
	return s
}

func (s *server) url() string { return s.URL + "/x.git" }

// each runs a test with the system's git and with go-git alone.
func each(t *testing.T, f func(t *testing.T, git string)) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HTTP_PROXY", "")
	t.Setenv("http_proxy", "")
	t.Setenv("NO_PROXY", "127.0.0.1,localhost")
	for name, git := range map[string]string{"git": "", "go-git": "none"} {
		t.Run(name, func(t *testing.T) { f(t, git) })
	}
}

func fileURL(dir string) string { return "file://" + dir }

// tidy checks that a cache holds nothing half-made.
func tidy(t *testing.T, cache string) {
	t.Helper()
	filepath.WalkDir(cache, func(p string, e os.DirEntry, err error) error {
		name := filepath.Base(p)
		if err == nil && (strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".new-") || strings.HasSuffix(name, ".damaged") ||
			strings.HasSuffix(name, ".lock") && strings.Contains(p, ".git"+string(filepath.Separator))) {
			t.Errorf("left in the cache: %s", p)
		}
		return nil
	})
}
