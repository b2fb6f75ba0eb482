package tui

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/store"
)

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
