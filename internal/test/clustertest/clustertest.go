// Package clustertest starts Temporal's dev server for tests, on loopback, from the binary that
// scripts/temporal builds into .bin. A test binary starts at most one shared server, when the first
// test needs it, and stops it at its end:
//
//	var cluster clustertest.Shared
//
//	func TestMain(m *testing.M) { code := m.Run(); cluster.Stop(); os.Exit(code) }
//	func TestRun(t *testing.T) { addr := cluster.Address(t); … }
//
// Tests that kill a server Start one of their own.
package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// ErrAbsent is in the error tree if the server was not built, or -short asks for Go alone.
var ErrAbsent = errors.New("the server of Temporal is not built: make soak builds it")

// Shared is a server that starts when it is first needed. The zero value is ready; it may be used
// concurrently.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Address returns HOST:PORT of the server, and skips the test if the server was not built. A server
// that exists and does not start fails the test.
func (s *Shared) Address(t testing.TB) string {
	t.Helper()
	addr, err := s.Start()
	if errors.Is(err, ErrAbsent) {
		t.Skip(err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Start is Address outside of a test. The error is ErrAbsent if the server was not built.
func (s *Shared) Start() (string, error) {
	s.once.Do(func() { s.server, s.err = Start("") })
	if s.err != nil {
		return "", s.err
	}
	return s.server.Addr, nil
}

// Stop ends the server, if it was started, and waits for it.
func (s *Shared) Stop() {
	if s.server != nil {
		s.server.Kill()
	}
}

// Server is a dev server.
type Server struct {
	Addr string // HOST:PORT

	binary, db string
	cmd        *exec.Cmd
	in         io.Closer
	said       *bytes.Buffer
}

// guarded runs a server and kills it with SIGKILL when the input ends: the test program closes the
// other end, or dies.
const guarded = `"$@" </dev/null & pid=$!; read x; kill -9 $pid; wait $pid 2>/dev/null`

// Start starts a server that stores its data in the file db. An empty db means in memory. It
// returns when the server answers.
func Start(db string) (*Server, error) {
	binary, ok := parts.Find("temporal")
	if !ok || parts.Alone() {
		return nil, ErrAbsent
	}
	port, err := parts.Port()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), binary: binary, db: db}
	return s, s.Again()
}

// Again restarts a killed server at the same address with the same file.
func (s *Server) Again() error {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	args := []string{"server", "start-dev", "--ip", "127.0.0.1", "--port", port, "--headless", "--log-level", "error"}
	if s.db != "" {
		args = append(args, "--db-filename", s.db)
	}
	s.said = new(bytes.Buffer)
	s.cmd = exec.Command("sh", append([]string{"-c", guarded, "sh", s.binary}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		ask := exec.CommandContext(ctx, s.binary, "operator", "namespace", "describe", "-n", "default", "--address", s.Addr)
		said, err := ask.CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			s.Kill()
			return fmt.Errorf("temporal does not answer at %s: %s\n%s", s.Addr, said, s.said)
		}
	}
}

// Kill ends the server with SIGKILL and waits for its end.
func (s *Server) Kill() {
	if s.in != nil {
		_ = s.in.Close()
		_ = s.cmd.Wait() // it was killed
		s.in = nil
	}
}
