// Package pgtest starts database servers for tests: PostgreSQL as a private cluster on loopback, in
// a directory of its own that goes with it, and PGlite, which has pgvector where the system has
// none. A test binary starts one of each at most, when the first test asks, and stops it at its
// end:
//
//	var server = pgtest.Postgres()
//
//	func TestMain(m *testing.M) { code := m.Run(); server.Stop(); os.Exit(code) }
//	func TestStore(t *testing.T) { db := open(t, server.URL(t)) … }
//
// If the binary dies without stopping a server, the server's input ends and the server stops.
package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// Server is a server that starts when it is first needed. Its methods may be called concurrently.
type Server struct {
	start func(s *Server) error

	once sync.Once
	url  string
	err  error
	dir  string // removed at the end; may be ""
	in   io.Closer
	done chan struct{} // closed when the process has ended
}

// ErrAbsent is in the error tree if the server is not installed on this machine, or -short asks for
// Go alone.
var ErrAbsent = errors.New("absent")

// URL returns the address of the server, as postgres://…, and skips the test if the server is not
// installed. A server that exists and does not start fails the test.
func (s *Server) URL(t testing.TB) string {
	t.Helper()
	url, err := s.Start()
	if errors.Is(err, ErrAbsent) {
		t.Skip(err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Start is URL outside of a test. The error is ErrAbsent if no server is installed.
func (s *Server) Start() (string, error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("short: PostgreSQL is more than Go: %w", ErrAbsent)
		if !parts.Alone() {
			s.err = s.start(s)
		}
	})
	return s.url, s.err
}

// Stop ends the server, if it was started, and waits for it.
func (s *Server) Stop() {
	if s.in != nil {
		s.in.Close()
		<-s.done
		s.in = nil
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// guarded runs a server and sends it the signal INT when the input ends.
const guarded = `"$@" </dev/null & pid=$!; (read x; kill -INT $pid) <&3 3<&- & wait $pid; kill $! 2>/dev/null`

// run starts a program and waits until it has printed the words ready.
func (s *Server) run(ready string, in string, command ...string) error {
	cmd := exec.Command("sh", append([]string{"-c", guarded, "sh"}, command...)...)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	out, told, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stdout, cmd.Stderr = told, told
	err = cmd.Start()
	read.Close()
	told.Close()
	if err != nil {
		write.Close()
		out.Close()
		return err
	}
	s.in, s.done = write, make(chan struct{})
	up := make(chan string, 1)
	go func() {
		defer close(s.done)
		defer out.Close()
		var said strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if said.Len() < 1<<16 {
				fmt.Fprintln(&said, lines.Text())
			}
			if strings.Contains(lines.Text(), ready) {
				select {
				case up <- "":
				default:
				}
			}
		}
		cmd.Wait()
		select {
		case up <- said.String():
		default:
		}
	}()
	select {
	case said := <-up:
		if said != "" {
			return fmt.Errorf("%s ended: %s", command[0], said)
		}
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("%s is not ready after two minutes", command[0])
	}
}

// Postgres is a private cluster of the newest PostgreSQL that is installed. Its one role is test,
// without a password. Under root it runs as the unprivileged system user, because it refuses root.
func Postgres() *Server {
	return &Server{start: func(s *Server) error {
		initdb, server := program("initdb"), program("postgres")
		if initdb == "" || server == "" {
			return fmt.Errorf("PostgreSQL is not installed, Debian's package postgresql has it: %w", ErrAbsent)
		}
		var err error
		if s.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
			return err
		}
		var as []string
		if os.Getuid() == 0 {
			const nobody = 65534
			if err := os.Chown(s.dir, nobody, nobody); err != nil {
				return err
			}
			as = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
		}
		data := filepath.Join(s.dir, "data")
		make := exec.Command("env", slices.Concat(as, []string{initdb, "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"})...)
		make.Dir = s.dir
		if out, err := make.CombinedOutput(); err != nil {
			return fmt.Errorf("initdb: %v\n%s", err, out)
		}
		port, err := parts.Port()
		if err != nil {
			return err
		}
		s.url = "postgres://test@127.0.0.1:" + port + "/postgres"
		return s.run("ready to accept connections", s.dir, slices.Concat(as, []string{server, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=" + s.dir, "-c", "fsync=off", "-c", "shared_buffers=256MB", "-c", "max_connections=200"})...)
	}}
}

// program finds a program of PostgreSQL. Debian keeps most of them out of the path, one directory a
// version.
func program(name string) string {
	if all, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err == nil && len(all) > 0 {
		return slices.MaxFunc(all, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		})
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// PGlite is PostgreSQL with pgvector in Node, from the packages of dir/package.json, which must be
// installed. All its connections share one session. A client therefore keeps one connection
// (pool_max_conns) and prepares no named statements; the address says both.
func PGlite(dir string) *Server {
	return &Server{start: func(s *Server) error {
		script := filepath.Join("node_modules", "@electric-sql", "pglite-socket", "dist", "scripts", "server.js")
		node, err := exec.LookPath("node")
		if err != nil {
			return fmt.Errorf("PGlite needs node: %w", ErrAbsent)
		}
		if _, err := os.Stat(filepath.Join(dir, script)); err != nil {
			return fmt.Errorf("PGlite is not installed, make test installs it: %w", ErrAbsent)
		}
		port, err := parts.Port()
		if err != nil {
			return err
		}
		s.url = "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable&pool_max_conns=1&default_query_exec_mode=cache_describe"
		return s.run("listening", dir, node, script, "--port="+port, "--max-connections=20", "--extensions=@electric-sql/pglite-pgvector:vector")
	}}
}
