package tui

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// display shows a run: on the console, or as plain lines.
type display struct {
	Show func(pawl.Event)

	sys *cli.System
	// the answer is shown as it arrives, because events and answers go to the same terminal
	live      bool
	plain     *show.Printer
	console   *console // nil means plain lines
	json      bool     // events are printed as JSON, and nothing else
	unwritten error    // the error of writing an event as JSON
	started   time.Time
}

// NewDisplay returns a display on the console of sys. Without a console, it returns a PlainDisplay
// that shows the answer, if all goes to the same terminal.
func NewDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := PlainDisplay(sys, out, asJSON)
	d.live = sys.OutTerm && sys.ErrTerm
	d.console = consoleOf(sys)
	d.plain.View.Answer = d.live
	if d.console != nil && !asJSON {
		d.Show = withoutDriver(d.console.show)
	}
	return d
}

// PlainDisplay returns a display that writes plain lines to out, without the answer. asJSON says
// that it writes the events as JSON, and nothing else.
func PlainDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := &display{
		sys:     sys,
		json:    asJSON,
		started: time.Now(),
		plain: &show.Printer{
			Out:    out,
			Colour: sys.Colours(sys.ErrTerm).On,
			Starts: true,
			View:   show.NewView(sys.Width, false),
		},
	}
	d.Show = withoutDriver(d.plain.Handle)
	if asJSON {
		d.Show = assemble.EventLines(sys.Out, &d.unwritten)
	}
	return d
}

// withoutDriver passes on all events but the notice about the driver of the model, which the
// command has reported before the run.
func withoutDriver(next func(pawl.Event)) func(pawl.Event) {
	return func(e pawl.Event) {
		if e.Kind != pawl.EventNotice || e.Code != agentfile.NoticeDriver {
			next(e)
		}
	}
}

// End saves the result of a run to the file save and prints it: the usage, and the answer or the
// open calls. An empty save means no file. End returns ended, the failure of the run, or else an
// error of its own.
func (d *display) End(res *pawl.Result, open []assemble.OpenCall, save string, ended error) error {
	// The file comes first: a reader that has closed the output must not cost the result.
	saved := assemble.SaveTranscript(save, res)
	sys := d.sys
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
		d.plain.Print(nil, term.Text(term.Dim, cli.Totals(s, took)))
	}
}

// Screen is a writer that can be held, so that no output comes between a question and its answer.
type Screen struct {
	mu       sync.Mutex
	terminal io.Writer
}

// NewScreen returns a screen that writes to w.
func NewScreen(w io.Writer) *Screen { return &Screen{terminal: w} }

// Write waits while the screen is held.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminal.Write(b)
}

// hold blocks Write until the returned function is called.
func (s *Screen) hold() func() {
	s.mu.Lock()
	return s.mu.Unlock
}
