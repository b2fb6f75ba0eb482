package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
)

// Printer prints a run as plain lines: each line of a view once it is permanent.
type Printer struct {
	Out    io.Writer
	Colour bool
	Starts bool // a line for each call that starts, and for the progress of calls
	View   *View
}

// Printing returns a function that prints the events of a run of short calls, with its answer, as
// plain lines.
func Printing(sys *cli.System, w io.Writer, style cli.Style) func(pawl.Event) {
	return (&Printer{Out: w, Colour: style.On, View: NewView(sys.Width, true)}).Handle
}

// Print prints lines.
func (p *Printer) Print(lines ...term.Line) {
	for _, l := range lines {
		fmt.Fprintln(p.Out, l.Render(p.Colour))
	}
}

// Handle prints the lines that become permanent with an event.
func (p *Printer) Handle(e pawl.Event) {
	now := time.Now()
	// Without the answer, the text of a reply is shown when it is complete, before its calls.
	if p.View.Answer || e.Kind != pawl.EventCallDelta && e.Kind != pawl.EventCallReady {
		p.View.Handle(e, now)
	}
	p.Print(p.View.Drain(now)...)

	// Where nothing is repainted, a long call would look like a run that hangs.
	c := p.View.calls[e.Path]
	switch {
	case !p.Starts || c == nil || c.done():
	case e.Kind == pawl.EventCallStarted:
		begun := term.Text(term.Dim, "→ "+cli.Line(c.call.Name, 40))
		if args := c.args(p.View.Width - begun.Width() - 1); args != "" {
			begun = begun.Add(term.Dim, " "+args)
		}
		p.Print(append(p.View.separator(c), begun)...)
	case e.Kind == pawl.EventProgress:
		p.Print(term.Text(term.Dim, "  └ "+cli.Line(e.Text, p.View.Width-4)))
	}

	if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
		p.View.Begin(now) // the next run has calls of its own
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

// Direct reports whether the call at path belongs to the run that is shown, and is not nested.
func Direct(path llm.Key) bool { return strings.Count(string(path), "/") == 2 }

// summary returns the first line of a result in width columns, and the number of further lines.
func summary(text string, width int) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return cli.Line(first, width)
	}
	tail := fmt.Sprintf(" (+%s)", cli.Count(strings.Count(rest, "\n")+1, "line"))
	return cli.Line(first, width-utf8.RuneCountInString(tail)) + tail
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
