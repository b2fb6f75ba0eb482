package tui

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
)

// printer prints a run as plain lines: each line of a view once it is permanent.
type printer struct {
	w      io.Writer
	on     bool // colours
	starts bool // a line for each call that starts, and for the progress of calls
	view   *view
}

// Printing returns a function that prints the events of a run of short calls, with its answer, as
// plain lines.
func Printing(sys *cli.System, w io.Writer, style cli.Style) func(pawl.Event) {
	return (&printer{w, style.On, false, newView(sys.Width, true)}).event
}

func (p *printer) print(lines ...term.Line) {
	for _, l := range lines {
		fmt.Fprintln(p.w, l.Render(p.on))
	}
}

func (p *printer) event(e pawl.Event) {
	now := time.Now()
	// without the answer, the text of a reply is shown when it is complete, before its calls
	if p.view.answer || e.Kind != pawl.EventCallDelta && e.Kind != pawl.EventCallReady {
		p.view.event(e, now)
	}
	p.print(p.view.drain(now)...)
	c := p.view.calls[e.Path]
	switch {
	case !p.starts || c == nil || c.done():
	case e.Kind == pawl.EventCallStarted:
		begun := term.Text(term.Dim, "→ "+cli.Line(c.call.Name, 40))
		if args := c.args(p.view.width - begun.Width() - 1); args != "" {
			begun = begun.Add(term.Dim, " "+args)
		}
		p.print(append(p.view.separator(c), begun)...)
	case e.Kind == pawl.EventProgress:
		p.print(term.Text(term.Dim, "  ⎿ "+cli.Line(e.Text, p.view.width-4)))
	}
	if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
		p.view.begin(now) // the next run has calls of its own
	}
}

// display shows a run: on the console, or as plain lines.
type display struct {
	Show func(pawl.Event)

	sys *cli.System
	// the answer is shown as it arrives, because events and answers go to the same terminal
	live      bool
	plain     *printer
	console   *console // nil means plain lines
	json      bool     // events are printed as JSON, and nothing else
	unwritten error    // the error of writing an event as JSON
	started   time.Time
}

// NewDisplay returns a display on the console of sys. Without a console, it returns a PlainDisplay
// that shows the answer, if all goes to the same terminal.
func NewDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := PlainDisplay(sys, out, asJSON)
	d.live, d.console = sys.OutTerm && sys.ErrTerm, consoleOf(sys)
	d.plain.view.answer = d.live
	if d.console != nil && !asJSON {
		d.Show = d.console.show
	}
	return d
}

// PlainDisplay returns a display that writes plain lines to out, without the answer. asJSON says
// that it writes the events as JSON, and nothing else.
func PlainDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := &display{sys: sys, json: asJSON, started: time.Now(),
		plain: &printer{out, sys.Colours(sys.ErrTerm).On, true, newView(sys.Width, false)}}
	d.Show = d.plain.event
	if asJSON {
		d.Show = assemble.EventLines(sys.Out, &d.unwritten)
	}
	return d
}

// End saves the result of a run to the file save and prints it: the usage, and the answer or the
// open calls. An empty save means no file. End returns ended, the failure of the run, or else an
// error of its own.
func (d *display) End(res *pawl.Result, open []assemble.OpenCall, save string, ended error) error {
	sys, saved := d.sys, assemble.SaveTranscript(save, res)
	if !d.json {
		d.totals(res.Spent)
		sys = sys.Plain()
		if err := assemble.PrintEnd(sys, res, open, d.live); err != nil {
			return errors.Join(err, saved)
		}
	}
	if saved != nil {
		cli.Report(sys.Err, saved)
		saved = cli.Silent(cli.StatusFailed)
	}
	return cmp.Or(ended, saved, d.unwritten)
}

// totals shows the usage of a run.
func (d *display) totals(s pawl.Spent) {
	took := time.Since(d.started)
	switch {
	case s.Requests == 0:
	case d.console != nil:
		d.console.wrapped("totals", term.Text(term.Dim, cli.Totals(s, took)))
	default:
		d.plain.print(nil, term.Text(term.Dim, cli.Totals(s, took)))
	}
}

// cutReply stands before the error of a request that ended within its reply.
const cutReply = "the reply is incomplete: "

// partial returns the part of a reply that arrived before its request failed. nil means none.
func partial(e pawl.Event) *llm.Response {
	if e.Error == "" || e.Completed == nil {
		return nil
	}
	return e.Completed.Response
}

// direct reports whether the call at path belongs to the run that is shown, and is not nested.
func direct(path llm.Key) bool { return strings.Count(string(path), "/") == 2 }

// summary returns the first line of a result in width columns, and the number of further lines.
func summary(text string, width int) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return cli.Line(first, width)
	}
	tail := fmt.Sprintf(" (+%s)", cli.Count(strings.Count(rest, "\n")+1, "line"))
	return cli.Line(first, width-utf8.RuneCountInString(tail)) + tail
}

// Screen is a writer that can be held, so that no output comes between a question and its answer.
type Screen struct {
	mu sync.Mutex
	w  io.Writer
}

// NewScreen returns a screen that writes to w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Write waits while the screen is held.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// hold blocks Write until the returned function is called.
func (s *Screen) hold() func() {
	s.mu.Lock()
	return s.mu.Unlock
}

// outcomeMark is the mark before a call, in its colour.
type outcomeMark struct {
	mark   string
	colour term.Style
}

// outcomeMarks holds the mark of each outcome of a call. Both displays use it.
var outcomeMarks = map[pawl.Outcome]outcomeMark{
	pawl.OutcomeOK:          {"✓", term.Green},
	pawl.OutcomePending:     {"?", term.Yellow},
	pawl.OutcomeUnknown:     {"?", term.Yellow},
	pawl.OutcomeSkipped:     {"–", term.Yellow},
	pawl.OutcomeCancelled:   {"–", term.Yellow},
	pawl.OutcomeDenied:      {"–", term.Yellow},
	pawl.OutcomeBlocked:     {"–", term.Yellow},
	pawl.OutcomeError:       {"✗", term.Red},
	pawl.OutcomeInvalid:     {"✗", term.Red},
	pawl.OutcomeUnknownTool: {"✗", term.Red},
	pawl.OutcomeTimeout:     {"✗", term.Red},
	pawl.OutcomePanicked:    {"✗", term.Red},
}

// markOf returns the mark of an outcome. An outcome of a later version is marked as an error.
func markOf(o pawl.Outcome) outcomeMark {
	return cmp.Or(outcomeMarks[o], outcomeMark{"✗", term.Red})
}
