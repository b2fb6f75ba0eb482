package tui

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// console is the terminal of a person while agents run. It shows the events, the questions and the
// input at the same time.
//
// One goroutine handles keys and paints. Other goroutines change the state under the lock. Printed
// lines stay in the scrollback of the terminal and are never repainted.
type console struct {
	dev    *term.Device
	colour bool
	done   chan struct{} // closed when painting ends
	ended  chan struct{}
	dirty  chan struct{}

	mu       sync.Mutex
	screen   *term.Screen
	view     *show.View
	partial  string // an incomplete line of output
	editor   term.Editor
	pasted   pastes
	keys     bool // keys are read
	typing   bool // the editor is also visible when no run is active
	greeting term.Line
	queue    []string // messages for the run that the run has not accepted yet
	lines    []string // entered lines, for next
	wake     chan struct{}
	eof      error // the error of next when there are no more lines
	ask      *card
	picker   *picker
	// sends a message to the active run; nil means that the run accepts none
	steer func(text string) bool
	// executes a line during a run, and reports whether its command is possible then
	command   func(text string) bool
	interrupt func()    // cancels the active run; nil means that no run is active
	pressed   int       // number of interrupts
	typed     time.Time // time of the last key press, if it was a letter
	failed    bool      // a write to the terminal failed
}

// openConsole opens the terminal, and returns the console with a system whose output goes to it. A
// nil console means that the terminal is not suitable, and sys is returned unchanged. typing says
// that a person types at a prompt.
func openConsole(sys *cli.System, typing bool) (*console, *cli.System) {
	canType := sys.InTerm && sys.OutTerm
	if !sys.Interactive() || typing && !canType {
		return nil, sys
	}
	var in *os.File
	if sys.InTerm {
		in = sys.InFile
	}
	dev, err := term.Open(in, sys.ErrFile)
	if err != nil {
		return nil, sys
	}

	width, height := dev.Size()
	c := &console{
		dev:      dev,
		colour:   sys.Colours(true).On,
		keys:     in != nil,
		typing:   typing,
		greeting: term.Text(term.Dim, "getting ready"),
		done:     make(chan struct{}),
		ended:    make(chan struct{}),
		dirty:    make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
	}
	c.screen = term.NewScreen(sys.ErrFile, width, height, c.colour)
	c.view = show.NewView(c.screen.Width(), sys.OutTerm)
	go c.loop()

	// All other output to the terminal goes above the live lines. A pipe is left alone.
	own := *sys
	own.Err = c
	own.Console = c
	own.Under = sys
	if sys.OutTerm {
		own.Out = c
	}
	own.Width = min(c.screen.Width(), 120)
	return c, &own
}

// consoleOf returns the console that sys writes to. nil means plain streams.
func consoleOf(sys *cli.System) *console {
	c, _ := sys.Console.(*console)
	return c
}

// Attend opens the console for one run, if there is a terminal for it. plain means plain lines. The
// context is cancelled with cause when the person stops the run. Call stop at the end; it may be
// called more than once.
func Attend(ctx context.Context, sys *cli.System, cause error, plain bool) (_ context.Context, _ *cli.System,
	stop func()) {
	if !plain {
		if c, own := openConsole(sys, false); c != nil {
			ctx, stop := c.follow(ctx, cause, new(pawl.Steering))
			ctx, own.Under = cli.Attended(ctx, sys, cause)
			if !sys.OutTerm {
				own.Out = own.Under.Out
			}
			return ctx, own, func() { stop(); c.Close() }
		}
	}
	ctx, stop = cli.InterruptibleBy(ctx, sys.Err, cause)
	ctx, sys = cli.Attended(ctx, sys, cause)
	return ctx, sys, stop
}

// Write shows output of other code, line by line.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial += string(b)
	for {
		l, rest, more := strings.Cut(c.partial, "\n")
		if !more {
			break
		}
		c.partial = rest
		c.view.Add("output", outputLine(l).Wrap(c.view.Width)...)
	}
	c.touch()
	return len(b), nil
}

// outputLine returns a line of output, with the colours for lines of the command itself.
func outputLine(l string) term.Line {
	for _, p := range []struct {
		prefix string
		style  term.Style
	}{
		{"pawl: error: ", term.Red | term.Bold},
		{"pawl: hint: ", term.Cyan},
		{"pawl: ", term.Dim},
	} {
		if rest, ok := strings.CutPrefix(l, p.prefix); ok {
			return term.Text(p.style, p.prefix).Add(0, rest)
		}
	}
	return term.Text(0, l)
}

// notice shows a line of the command itself. The lock is held.
func (c *console) notice(text string) { c.view.Add("output", outputLine("pawl: "+text)) }

// wrapped shows a line, wrapped to the width.
func (c *console) wrapped(what string, l term.Line) {
	c.update(func() { c.view.Add(what, l.Wrap(c.view.Width)...) })
}

// touch requests a repaint. The lock is held.
func (c *console) touch() { signalOnce(c.dirty) }

// signalOnce sends on a channel with a buffer of 1, unless a signal is pending.
func signalOnce(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// update calls change under the lock and requests a repaint.
func (c *console) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.touch()
}

const fps = 25 * time.Millisecond // minimum time between frames

// loop handles keys and signals, and paints what has changed, until the console is closed.
func (c *console) loop() {
	defer close(c.ended)
	tick := time.NewTicker(show.Frame)
	defer tick.Stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	var soon <-chan time.Time // the next frame of a change that came too early; nil means none
	var painted time.Time
	c.paint()
	for {
		select {
		case <-c.done:
			return

		// A person must see each key at once.
		case k := <-c.dev.Keys():
			c.key(k)
			c.paint()
			continue

		case <-signals:
			c.key(term.Key{Name: "stop"})
		case <-c.dev.Resized():
			c.resize()

		case <-c.dirty:
			// A fast model changes the screen more often than a person, or a slow connection, can
			// follow.
			if wait := fps - time.Since(painted); wait > 0 {
				if soon == nil {
					soon = time.After(wait)
				}
				continue
			}
			c.paint()
		case <-soon:
			c.paint()

		// Only an active run has times and a spinner that move.
		case <-tick.C:
			c.mu.Lock()
			active := c.view.Active
			c.mu.Unlock()
			if !active {
				continue
			}
			c.paint()
		}
		soon = nil
		painted = time.Now()
	}
}

// paint paints a frame.
func (c *console) paint() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed {
		return
	}
	now := time.Now()
	print := c.view.Drain(now)
	live, at := c.below(now)
	if c.screen.Paint(print, live, at) != nil {
		c.failed = true // the terminal is closed
		c.hangUp()
	}
}

// below returns the live lines and the position of the cursor in them.
func (c *console) below(now time.Time) (live []term.Line, at *term.Cursor) {
	width := c.screen.Width()
	height := c.screen.Height()
	var foot []term.Line
	switch {
	case c.ask != nil:
		foot, at = c.ask.show(width, max(4, height-4))
	case c.picker != nil:
		return c.picker.show(height - 3), nil
	default:
		foot, at = c.foot(now, width)
	}

	live = c.view.Live(now, max(1, height-1-len(foot)))
	if c.ask != nil && len(live) > 0 {
		live = append(live, nil)
	}
	if at != nil {
		at.Row += len(live)
	}

	// The foot begins with an empty line that separates it from what is above. Nothing is.
	first := len(live) == 0 && c.view.Empty()
	if first && len(foot) > 0 && len(foot[0]) == 0 {
		foot = foot[1:]
		if at != nil {
			at.Row--
		}
	}
	return append(live, foot...), at
}

// foot returns the lines below the run: its status, the queued messages, and the line that the
// person types. The cursor is relative to them; nil means that the person cannot type.
func (c *console) foot(now time.Time, width int) (foot []term.Line, at *term.Cursor) {
	if status := c.view.Status(now, c.hint()); status != nil {
		foot = append(foot, nil, status)
	} else if c.typing {
		foot = append(foot, nil)
	}
	for _, q := range c.queue {
		foot = append(foot, term.Text(term.Dim, "↳ queued: "+cli.Line(q, width-10)))
	}

	steers := c.steer != nil && c.editor.Text() != ""
	if !c.typing && !steers {
		return foot, nil
	}
	lines, cursor := c.editor.View(term.Text(term.Cyan|term.Bold, "> "), width-1, 8)
	at = &term.Cursor{Row: len(foot) + cursor.Row, Column: cursor.Column}
	foot = append(foot, lines...)
	idle := c.editor.Text() == "" && !c.view.Active
	if c.greeting != nil && idle {
		foot = append(foot, c.greeting)
	}
	return foot, at
}

func (c *console) hint() string {
	switch {
	case c.pressed > 0:
		return "stopping; Ctrl-C ends at once"
	case c.steer != nil && c.screen.Width() >= 60:
		return "Ctrl-C stops, type to steer"
	}
	return "Ctrl-C stops"
}

// follow starts to show a run. The context is cancelled with cause when the person stops the run.
// Messages that are typed go to inbox; nil means that none are accepted. Call stop when the run has
// ended.
func (c *console) follow(ctx context.Context, cause error, inbox *pawl.Steering) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if !c.keys {
		inbox = nil // no keys are read
	}

	c.update(func() {
		c.view.Begin(time.Now())
		// Under the lock of update: a key that is pressed now must reach this run and not the one
		// before.
		c.interrupt = func() { cancel(cause) }
		c.pressed = 0
		if inbox != nil {
			c.steer = func(text string) bool { return inbox.Steer(ctx, c.pasted.message(text)) == nil }
		}
	})
	if inbox != nil {
		ctx = pawl.WithRunOptions(ctx, pawl.RunOptions{Messages: inbox})
	}

	return ctx, func() {
		cancel(nil)
		c.update(func() {
			c.interrupt = nil
			c.steer = nil
			c.pressed = 0
			c.view.Active = false
		})
	}
}

// show shows an event of the run.
func (c *console) show(e pawl.Event) {
	c.update(func() {
		if e.Kind == pawl.EventSteered && len(c.queue) > 0 {
			c.queue = c.queue[1:]
		}
		c.view.Handle(e, time.Now())
	})
}

// unqueue returns the messages that the last run did not accept.
func (c *console) unqueue() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue = nil
	return q
}

// suspend releases the screen while do runs.
func (c *console) suspend(do func()) {
	c.mu.Lock()
	_ = c.screen.Close()
	c.mu.Unlock()
	do()
	c.resize()
}

// resize adapts the screen to the size of the terminal.
func (c *console) resize() {
	w, h := c.dev.Size()
	c.update(func() {
		c.screen.Resize(w, h)
		c.view.Width = c.screen.Width()
	})
}

// edit opens text in the editor that EDITOR names. It is called from the loop, which does not paint
// in the meantime.
func (c *console) edit(text, name string) (edited string, err error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		return "", errors.New("no editor: set one in EDITOR")
	}
	dir, err := os.MkdirTemp("", "pawl-edit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)

	path := dir + "/" + name
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	// The editor needs the terminal for itself, in its usual mode.
	c.suspend(func() {
		c.dev.Release()
		err = runEditor(editor, path)
		seized := c.dev.Seize() // also after an error, because the chat goes on
		if err == nil {
			err = seized
		}
	})
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// runEditor opens a file in an editor, whose command may have arguments, as "code --wait" has.
func runEditor(command, path string) error {
	words := strings.Fields(command)
	cmd := exec.Command(words[0], append(slices.Clone(words[1:]), path)...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stderr // the standard output may be a pipe
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// Close paints the last frame and restores the terminal. It may be called more than once.
func (c *console) Close() {
	if c == nil {
		return
	}
	select {
	case <-c.done:
		return
	default:
	}
	close(c.done)
	<-c.ended

	// What is live now stays on the terminal as its last lines.
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.view.EndText()
	if c.partial != "" {
		c.view.Add("output", outputLine(c.partial))
	}
	_ = c.screen.Paint(append(c.view.Drain(now), c.view.Live(now, 0)...), nil, nil)
	_ = c.screen.Close()
	c.dev.Close()
}
