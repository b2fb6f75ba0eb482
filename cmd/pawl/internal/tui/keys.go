package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/store"
)

// key handles a key.
func (c *console) key(k term.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.touch()

	// These keys have one meaning, also while a question is open.
	switch k.Name {
	case "":
		return
	case "ctrl-c", "stop":
		c.stop(k.Name == "stop")
		return
	case "hangup":
		c.hangUp()
		return
	case "ctrl-z":
		c.mu.Unlock()
		c.suspend(func() { _ = c.dev.Suspend() })
		c.mu.Lock()
		return
	case "ctrl-l":
		c.repaintAll()
		return
	}

	switch {
	case c.picker != nil:
		c.picker.key(k)
	case c.ask != nil:
		if c.ask.premature(c.typed, time.Now()) {
			return // it belongs to other text
		}
		if done := c.ask.key(k, c); done {
			c.ask = nil
		}
	default:
		c.edited(k)
	}
}

// repaintAll paints all live lines again, for a terminal on which another program has written. The
// screen forgets what it has painted when its size changes.
func (c *console) repaintAll() {
	width := c.screen.Width() + 1
	height := c.screen.Height()
	c.screen.Resize(width+1, height)
	c.screen.Resize(width, height)
}

// edited handles a key for the editor.
func (c *console) edited(k term.Key) {
	if !c.typing && c.steer == nil {
		return
	}

	// Only letters are typed without looking: see card.premature.
	c.typed = time.Time{}
	switch k.Name {
	case "paste":
		c.pasted.add(k.Text)
		c.editor.Key(k)
	case "text":
		c.typed = time.Now()
		c.editor.Key(k)
	case "enter":
		if text, more := strings.CutSuffix(c.editor.Text(), `\`); more {
			c.editor.Set(text + "\n")
			return
		}
		c.enter()

	// As in a shell: at an empty prompt it ends the input, elsewhere it deletes a letter.
	case "ctrl-d":
		if c.editor.Text() == "" && c.interrupt == nil {
			c.eof = io.EOF
			c.wakeReader()
			return
		}
		c.editor.Key(k)
	case "ctrl-g", "ctrl-x":
		c.editMessage()
	case "esc":
	default:
		c.editor.Key(k)
	}
}

// editMessage opens the message in the person's editor. c.mu is unlocked while that runs.
func (c *console) editMessage() {
	text := c.editor.Text()
	c.mu.Unlock()
	edited, err := c.edit(text, "message.md")
	c.mu.Lock()
	if err != nil {
		c.notice(err.Error())
		return
	}
	c.editor.Set(strings.TrimRight(edited, "\n"))
}

// enter handles the entered line: a message for the active run, or a line for next.
func (c *console) enter() {
	text := c.editor.Text()
	if strings.TrimSpace(text) == "" {
		return
	}
	if c.interrupt == nil {
		c.editor.Take()
		c.lines = append(c.lines, text)
		c.wakeReader()
		return
	}

	if c.command != nil && strings.HasPrefix(text, "/") {
		c.editor.Take()
		c.mu.Unlock() // the command prints
		known := c.command(text)
		c.mu.Lock()
		if !known {
			c.notice(strings.Fields(text)[0] + " has to wait until the run has ended")
			c.editor.Set(text)
		}
		return
	}
	// The text stays in the line if the run has just ended and takes no more messages.
	if c.steer != nil && c.steer(text) {
		c.editor.Take()
		c.queue = append(c.queue, text)
	}
}

func (c *console) wakeReader() { signalOnce(c.wake) }

// stop handles Ctrl-C. During a run it cancels the run, and the second time it ends the program. At
// the prompt it clears the text, or ends the chat if there is none.
func (c *console) stop(signal bool) {
	switch {
	case c.picker != nil:
		c.picker.reply(-1)
	case c.interrupt != nil:
		c.pressed++
		// The run may hang in a tool that does not look at its context.
		if c.pressed > 1 {
			c.exit(cli.StatusInterrupted)
		}
		c.dropQuestion()
		c.interrupt()
	case c.ask != nil:
		c.dropQuestion()
	case !signal && c.editor.Text() != "":
		c.editor.Set("")
	default:
		c.eof = pawl.ErrCancelled
		c.wakeReader()
	}
}

// hangUp handles the loss of the terminal.
func (c *console) hangUp() {
	c.eof = io.EOF
	c.wakeReader()
	if c.picker != nil {
		c.picker.reply(-1)
	}
	if c.interrupt != nil {
		c.interrupt()
	}
	c.dropQuestion()
}

// dropQuestion removes the open question without an answer. The lock is held.
func (c *console) dropQuestion() {
	if c.ask != nil {
		c.ask.cancel()
		c.ask = nil
	}
}

// exit restores the terminal and ends the program.
func (c *console) exit(status int) {
	_ = c.screen.Close()
	c.dev.Close()
	os.Exit(status)
}

// next returns the next entered line. The error is io.EOF at the end, or pawl.ErrCancelled.
func (c *console) next() (string, error) {
	for {
		c.mu.Lock()
		if len(c.lines) > 0 {
			l := c.lines[0]
			c.lines = c.lines[1:]
			c.mu.Unlock()
			return l, nil
		}
		if err := c.eof; err != nil {
			c.mu.Unlock()
			return "", err
		}
		c.mu.Unlock()
		<-c.wake
	}
}

// picker is a list from which the person chooses a row.
type picker struct {
	title  string
	rows   []string
	at     int
	answer chan int // -1 means none of the rows
}

// pick asks the person to choose one of the rows. The error is pawl.ErrCancelled.
func (c *console) pick(title string, rows []string) (int, error) {
	p := &picker{title: title, rows: rows, answer: make(chan int, 1)}
	c.update(func() { c.picker = p })
	n := <-p.answer
	c.update(func() { c.picker = nil })
	if n < 0 {
		return 0, pawl.ErrCancelled
	}
	return n, nil
}

// show returns the rows around the selected one.
func (p *picker) show(rows int) []term.Line {
	out := []term.Line{term.Text(term.Bold, p.title).Add(term.Dim, "  up, down, Enter, Esc")}
	rows = max(rows-1, 3)
	from := max(0, min(p.at-rows/2, len(p.rows)-rows))
	for i := from; i < min(len(p.rows), from+rows); i++ {
		if i == p.at {
			out = append(out, term.Text(term.Cyan|term.Bold, "> "+p.rows[i]))
		} else {
			out = append(out, term.Text(0, "  "+p.rows[i]))
		}
	}
	return out
}

func (p *picker) key(k term.Key) {
	switch k.Name {
	case "up", "ctrl-p":
		p.at = max(0, p.at-1)
	case "down", "ctrl-n", "tab":
		p.at = min(len(p.rows)-1, p.at+1)
	case "pageup":
		p.at = max(0, p.at-10)
	case "pagedown":
		p.at = min(len(p.rows)-1, p.at+10)
	case "enter":
		p.reply(p.at)
	case "esc", "ctrl-d":
		p.reply(-1)
	}
}

func (p *picker) reply(n int) {
	select {
	case p.answer <- n:
	default: // the first answer counts
	}
}

// choose returns the conversation to continue: the choice of the person, or the last conversation
// if there is no console.
func choose(sys *cli.System, db store.Threads, s store.Scope) (string, error) {
	all, err := assemble.Threads(context.Background(), db, s)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", cli.Usage("pawl chat starts one", "--resume: there is no conversation yet")
	case len(all) == 1 || consoleOf(sys) == nil:
		return all[0].ID, nil
	}
	rows := make([]string, len(all))
	for i, t := range all {
		rows[i] = fmt.Sprintf("%s %4d  %s", ago(time.Since(t.Updated)), t.Messages,
			cli.Line(t.Title, max(sys.Width-20, 20)))
	}
	n, err := consoleOf(sys).pick("Continue", rows)
	if err != nil {
		return "", cli.Silent(cli.StatusInterrupted)
	}
	return all[n].ID, nil
}
