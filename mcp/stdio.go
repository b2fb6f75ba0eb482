package mcp

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// given are the variables that every program gets: without them few start. All others are named in Server.Env.
var given = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"}

// environment is what a program gets.
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

// process is a server that was started here. It has a process group of its own, which is ended with it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   *tail         // on standard error
	ended  chan struct{} // closed when the program has ended
	finish sync.Once
}

// patience is how long a program may take to end once its input is closed, and again once it was asked to.
const patience = 2 * time.Second

// start starts the program of s.
func (s *Server) start(getenv func(string) string) (*process, io.ReadCloser, error) {
	cmd := exec.Command(s.Command, s.Args...)
	p := &process{cmd: cmd, said: &tail{limit: 8 << 10}, ended: make(chan struct{})}
	cmd.Env, cmd.Dir, cmd.Stderr = s.environment(getenv), s.Dir, p.said
	cmd.WaitDelay = patience // what it started may hold its output open
	group(cmd)
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		killGroup(cmd) // what is left of it
		close(p.ended)
		w.CloseWithError(io.EOF)
	}()
	return p, r, nil
}

// Write writes to the program.
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program with all it has started: its input is closed, then it is asked to end, then it is killed. It returns when it has ended.
func (p *process) Close() error {
	p.finish.Do(func() {
		_ = p.in.Close()
		for _, next := range []func(*exec.Cmd){endGroup, killGroup} {
			select {
			case <-p.ended:
			case <-time.After(patience):
				next(p.cmd)
			}
		}
		<-p.ended
	})
	return nil
}

// transport speaks with the program.
func (p *process) transport(out io.ReadCloser, m *mender) sdk.Transport {
	return &sdk.IOTransport{Reader: m.lines(out, false), Writer: p, MaxLineLength: 2 * maxMessage}
}

// words returns the end of what the program wrote on standard error, for whoever started it.
func (p *process) words() string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(clean(p.said.String()))
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	b     []byte
}

// Write keeps b as far as there is room.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > t.limit {
		b = b[len(b)-t.limit:]
	}
	if over := len(t.b) + len(b) - t.limit; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	t.b = append(t.b, b...)
	return n, nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// waitWords gives a program that has just ended the time to say why.
func (p *process) waitWords(ctx context.Context) string {
	if p == nil {
		return ""
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
	return p.words()
}
