package mcp

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl/internal/procgroup"
	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// given lists the variables that every program gets, because few programs start without them. All
// others are named in Server.Env.
var given = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}

// environment returns the environment of the program.
func (s *Server) environment(getenv func(string) string) []string {
	env := []string{}
	for _, name := range given {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for _, e := range s.Env {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else if v := getenv(e); v != "" {
			env = append(env, e+"="+v)
		}
	}
	return env
}

// process is a server that was started here. It has its own process group, which is ended with it.
type process struct {
	group  *procgroup.Group
	in     io.WriteCloser
	said   *tail         // standard error
	ended  chan struct{} // closed when the program has ended
	finish sync.Once
}

// patience is the time that a program has to end after its input is closed, and again after
// SIGTERM.
const patience = 2 * time.Second

// start starts the program of s.
func (s *Server) start(getenv func(string) string) (*process, io.ReadCloser, error) {
	cmd := exec.Command(s.Command, s.Args...)
	p := &process{group: procgroup.New(cmd), said: &tail{limit: 8 << 10}, ended: make(chan struct{})}
	cmd.Env, cmd.Dir, cmd.Stderr = s.environment(getenv), s.Dir, p.said
	cmd.WaitDelay = patience // its child processes may hold its output open
	var err error
	p.in, err = cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}

	// Not by StdoutPipe, which Wait closes with unread output in it: the last message of a program
	// that ends must arrive.
	r, w := io.Pipe()
	cmd.Stdout = w
	if err := p.group.Start(); err != nil {
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	go func() {
		_ = p.group.Wait()
		close(p.ended)
		w.CloseWithError(io.EOF)
	}()
	return p, r, nil
}

// Write writes to the program.
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program with all processes that it started: it closes the input, then sends
// SIGTERM, then kills the group. It returns when the program has ended.
func (p *process) Close() error {
	p.finish.Do(func() {
		_ = p.in.Close()
		for _, next := range []func() error{p.group.Terminate, p.group.Kill} {
			select {
			case <-p.ended:
			case <-time.After(patience):
				_ = next()
			}
		}
		<-p.ended
	})
	return nil
}

// transport returns the SDK transport for the program.
func (p *process) transport(out io.ReadCloser, m *repairer) sdk.Transport {
	return &sdk.IOTransport{
		Reader:        m.reader(wire.Source{}).Lines(out),
		Writer:        &recorded{p, m.sent},
		MaxLineLength: 2 * maxMessage,
	}
}

// tail stores the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	b     []byte
}

// Write stores b and drops older bytes.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = slices.Delete(t.b, 0, max(0, len(t.b)-t.limit))
	return len(b), nil
}

// String returns the stored bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// waitWords waits a moment for the last output of a program that has just ended, and returns the
// end of it for an error text. It is empty if there is none.
func (p *process) waitWords(ctx context.Context) string {
	if p == nil {
		return ""
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
	lines := strings.Split(strings.TrimSpace(clean(p.said.String())), "\n")
	words := clip(strings.Join(lines[max(0, len(lines)-3):], "\n"), 600)
	if words == "" {
		return ""
	}
	return "its last words: " + words
}
