// Package browser drives a Chromium over its DevTools protocol, so that tests can walk pages as
// people do.
//
//	b, err := browser.Start(ctx, path)
//	p, err := b.Page(ctx)
//	err = p.Open(ctx, url)
//	err = p.Press(ctx, "Tab")
//	err = p.Eval(ctx, `document.title`, &title)
//
// Messages go over two pipes, NUL-terminated JSON each, so no port is opened. The browser resolves
// no name and reaches only this machine. A page records all its events; tests read them with
// Page.Events at the end.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/test/machine"
	"github.com/pawl-go/pawl/internal/test/parts"
)

// Need returns the path of a Chromium on this machine, and skips the test if there is none.
func Need(t testing.TB) string {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			return parts.Program(t, name, "chromium")
		}
	}
	return parts.Program(t, names[0], "chromium")
}

// names are the programs that are a Chromium.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// Browser is a running browser. Close it.
type Browser struct {
	cmd *exec.Cmd
	to  *os.File
	dir string

	mu     sync.Mutex
	last   int
	waits  map[int]chan message
	pages  map[string]*Page // by session
	broken error
	read   sync.WaitGroup
}

// message is what goes over the pipes.
type message struct {
	ID        int             `json:"id,omitzero"`
	Method    string          `json:"method,omitzero"`
	Params    json.RawMessage `json:"params,omitzero"`
	SessionID string          `json:"sessionId,omitzero"`
	Result    json.RawMessage `json:"result,omitzero"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitzero"`
}

// Start starts the browser at path, without a window, with a profile of its own that Close removes.
func Start(ctx context.Context, path string) (*Browser, error) {
	dir, err := os.MkdirTemp("", "pawl-browser-")
	if err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + dir, "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--mute-audio", "--force-color-profile=srgb",
		"--password-store=basic", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--lang=en-US", "about:blank"}
	if os.Getuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // Chromium's own sandbox refuses root
	}
	b := &Browser{cmd: exec.Command(path, args...), to: to, dir: dir, waits: map[int]chan message{},
		pages: map[string]*Page{}}
	b.cmd.ExtraFiles = []*os.File{in, out}
	machine.Grouped(b.cmd)
	b.cmd.Env = append(os.Environ(), "TZ=UTC")
	err = b.cmd.Start()
	in.Close()
	out.Close()
	if err != nil {
		from.Close()
		to.Close()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.read.Go(func() { b.receive(from) })
	if err := b.call(ctx, "", "Browser.getVersion", nil, nil); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close ends the browser and all its processes.
func (b *Browser) Close() error {
	b.to.Close()
	_ = machine.KillGroup(b.cmd)
	_ = b.cmd.Wait() // it was killed
	b.read.Wait()
	return os.RemoveAll(b.dir)
}

// receive reads messages until the pipe ends.
func (b *Browser) receive(from *os.File) {
	defer from.Close()
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			b.fail(err)
			return
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			b.fail(err)
			return
		}
		b.mu.Lock()
		wait, page := b.waits[m.ID], b.pages[m.SessionID]
		delete(b.waits, m.ID)
		b.mu.Unlock()
		switch {
		case wait != nil:
			wait <- m
		case page != nil && m.Method != "":
			page.took(Event{m.Method, m.Params})
		}
	}
}

func (b *Browser) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = errors.New("the browser has ended")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
	for id, wait := range b.waits {
		close(wait)
		delete(b.waits, id)
	}
}

// call sends a command and waits for its answer.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	m := message{Method: method, SessionID: session}
	if params != nil {
		p, err := json.Marshal(params)
		if err != nil {
			return err
		}
		m.Params = p
	}
	wait := make(chan message, 1)
	b.mu.Lock()
	if b.broken != nil {
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", method, b.broken)
	}
	b.last++
	m.ID = b.last
	b.waits[m.ID] = wait
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case got, ok := <-wait:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, b.broken)
		case got.Error != nil:
			return fmt.Errorf("%s: %s", method, got.Error.Message)
		case result != nil:
			return json.Unmarshal(got.Result, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// Page opens an empty page.
func (b *Browser) Page(ctx context.Context) (*Page, error) {
	var target struct{ TargetID, SessionID string }
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target); err != nil {
		return nil, err
	}
	p := &Page{b: b, target: target.TargetID, session: target.SessionID, more: make(chan struct{})}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "Accessibility"} {
		if err := p.Call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// short is text for messages.
func short(s string) string {
	if s = strings.Join(strings.Fields(s), " "); len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}
