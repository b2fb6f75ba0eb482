package tui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/llm"
)

// Renderer writes the events of a run as lines for a person. Text of a model or a tool is written
// with control characters made visible.
//
//	step 2 ──────────────────────────
//	I read both files.
//	  → 2.1 file_read {"path":"a.csv"}
//	  → 2.2 file_read {"path":"b.csv"}
//	  ✓ 2.2 file_read  0.2 ms  id,amount (+11 lines)
//	  ✗ 2.1 file_read  0.3 ms  error
//	      a.csv: no such file; did you mean "A.csv"?
type Renderer struct {
	w     io.Writer
	style cli.Style
	width int
	// writes the text of a reply as it arrives; otherwise only the text next to calls, when the
	// reply is complete
	live bool

	open   bool // the last line is incomplete
	dim    bool // the incomplete line is reasoning
	step   int
	headed int               // the last step with a header
	calls  int               // number of calls shown in this step
	labels map[string]string // labels of the calls of this step, by ID
	// start times of the tools of this step; the time of a call in its record includes the wait for
	// a person
	started map[llm.Key]time.Time
}

// NewRenderer returns a renderer that writes to w. live says that the text of a reply is written as
// it arrives.
func NewRenderer(sys *cli.System, w io.Writer, style cli.Style, live bool) *Renderer {
	return &Renderer{w: w, style: style, width: sys.Width, live: live}
}

// display shows a run: on the console, or as plain lines.
type display struct {
	Show func(pawl.Event)

	sys *cli.System
	// the answer is shown as it arrives, because events and answers go to the same terminal
	live      bool
	plain     *Renderer
	console   *console // nil means plain lines
	json      bool     // events are printed as JSON, and nothing else
	unwritten error    // the error of writing an event as JSON
	started   time.Time
}

// NewDisplay returns a display on the console of sys. Without a console, it returns a PlainDisplay
// that shows text as it arrives, if all goes to the same terminal.
func NewDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := PlainDisplay(sys, out, asJSON)
	d.live, d.console = sys.OutTerm && sys.ErrTerm, consoleOf(sys)
	d.plain.live = d.live
	if d.console != nil && !asJSON {
		d.Show = d.console.show
	}
	return d
}

// PlainDisplay returns a display that writes plain lines to out, and text when it is complete.
// asJSON says that it writes the events as JSON, and nothing else.
func PlainDisplay(sys *cli.System, out *Screen, asJSON bool) *display {
	d := &display{sys: sys, json: asJSON, started: time.Now(),
		plain: NewRenderer(sys, out, sys.Colours(sys.ErrTerm), false)}
	d.Show = d.plain.Event
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
	switch took := time.Since(d.started); {
	case s.Requests == 0:
	case d.console != nil:
		d.console.wrapped("totals", term.Text(term.Dim, cli.Totals(s, took)))
	default:
		d.plain.Totals(s, took)
	}
}

// Totals writes the usage of a run.
func (r *Renderer) Totals(s pawl.Spent, took time.Duration) {
	fmt.Fprintf(r.w, "\n%s\n", r.style.Dim(cli.Totals(s, took)))
}

// Event writes the visible part of e.
func (r *Renderer) Event(e pawl.Event) {
	if e.Run != "" && strings.Contains(string(e.Run), "/") && e.Kind != pawl.EventCallCompleted {
		return // of nested runs only the results of calls are shown
	}
	switch e.Kind {
	case pawl.EventStepStarted:
		r.begin(e.Step)
	case pawl.EventText, pawl.EventReasoning:
		if r.live {
			r.text(e.Text, e.Kind == pawl.EventReasoning)
		}
	case pawl.EventTextRetracted:
		if r.live {
			r.line(r.style.Dim("(forget that: it was no answer but a call written as text)"))
		}
	case pawl.EventCallReady:
		if r.live {
			r.announce(e.Step, e.Call, "")
		}
	case pawl.EventResponseReceived:
		if !r.live {
			r.whole(e)
		}
		r.end()
	case pawl.EventCallStarted:
		if r.labels[e.Call.ID] == "" && direct(e.Path) {
			r.announce(e.Step, e.Call, e.Path)
		}
		if _, again := r.started[e.Path]; !again && r.started != nil {
			r.started[e.Path] = time.Now()
		}
		if e.Attempt > 1 {
			r.line(fmt.Sprintf("  → %s again, attempt %d", r.label(e.Path, e.Call), e.Attempt))
		}
	case pawl.EventProgress:
		r.line("      " + r.style.Dim(cli.Line(e.Text, r.width-6)))
	case pawl.EventNotice:
		if e.Code == config.NoticeDriver {
			return // the command has reported the driver already
		}
		mark := "  ! "
		for _, l := range cli.Folded(cli.Visible(e.Code+": "+e.Text), r.width-len(mark), 3) {
			r.line(r.style.Yellow(mark + l))
			mark = "    "
		}
	case pawl.EventCallCompleted:
		r.completed(e)
	case pawl.EventStep:
		r.broken(e)
	case pawl.EventRunEnded:
		r.end()
	}
}

// broken shows the step of a request that failed after a part of its reply had arrived. A request
// without such a part has no step here: the error of the run says everything.
func (r *Renderer) broken(e pawl.Event) {
	reply := partial(e)
	if reply == nil {
		return
	}
	r.begin(e.Step)
	if text := strings.TrimSpace(reply.Message.Text()); !r.live && text != "" {
		r.line(cli.Visible(text))
	}
	m := markOf(pawl.OutcomeError)
	r.line("  " + painted(r.style, m.colour, m.mark) + " " + cli.Line(cutReply+e.Error, r.width-4))
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

func (r *Renderer) begin(step int) {
	if step != r.step {
		r.step, r.calls, r.labels, r.started = step, 0, map[string]string{}, map[llm.Key]time.Time{}
	}
}

// header writes the header of the step, before its first line.
func (r *Renderer) header() {
	if r.headed == r.step {
		return
	}
	r.headed = r.step
	r.end()
	title := "step " + strconv.Itoa(r.step) + " "
	fmt.Fprintf(r.w, "\n%s%s\n", r.style.Bold(title), r.style.Dim(strings.Repeat("─", max(0, r.width-len(title)))))
}

// text writes a fragment of text. The line stays open.
func (r *Renderer) text(s string, dim bool) {
	if r.open && r.dim != dim {
		r.end()
	}
	s = cli.Visible(s)
	if s == "" {
		return
	}
	r.header()
	r.open, r.dim = !strings.HasSuffix(s, "\n"), dim
	if dim {
		s = r.style.Dim(s)
	}
	io.WriteString(r.w, s)
}

// whole shows a complete reply that was not shown as it arrived. The caller prints an answer.
func (r *Renderer) whole(e pawl.Event) {
	calls := e.Response.Message.Calls()
	if len(calls) == 0 {
		return
	}
	r.begin(e.Step)
	if t := strings.TrimSpace(e.Response.Message.Text()); t != "" {
		r.line(cli.Visible(t))
	}
	for i := range calls {
		r.announce(e.Step, &calls[i], "")
	}
}

// end ends an open line.
func (r *Renderer) end() {
	if r.open {
		io.WriteString(r.w, "\n")
		r.open = false
	}
}

func (r *Renderer) line(s string) {
	r.header()
	r.end()
	io.WriteString(r.w, s+"\n")
}

// announce shows a call of a reply. Its label counts the calls of the reply from 1. path names a
// call that an earlier run left open; "" means a new call.
func (r *Renderer) announce(step int, c *llm.ToolCall, path llm.Key) {
	r.begin(step)
	r.calls++
	label := fmt.Sprintf("%d.%d", step, r.calls)
	if _, place, ok := strings.Cut(strings.TrimPrefix(string(path), "run/"), "/"); ok {
		if n, err := strconv.Atoi(place); err == nil {
			label = fmt.Sprintf("%d.%d", step, n+1)
		}
	}
	if r.labels == nil {
		r.labels = map[string]string{}
	}
	r.labels[c.ID] = label
	head := "  → " + label + " " + cli.Line(c.Name, 40) + " "
	args := cli.Line(shortArgs(c.Args), r.width-utf8.RuneCountInString(head))
	r.line(head + r.style.Dim(args))
}

// longText matches a JSON string of more than 32 bytes, including escapes.
var longText = regexp.MustCompile(`"(?:[^"\\]|\\.){33,}"`)

// shortArgs returns arguments on one line with long strings cut, so that all arguments are visible.
// Arguments that are not JSON stay unchanged.
func shortArgs(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return string(args)
	}
	return longText.ReplaceAllStringFunc(b.String(), func(s string) string {
		n := 24
		for n > 0 && (!utf8.RuneStart(s[n]) || s[n-1] == '\\') {
			n--
		}
		return s[:n] + `…"`
	})
}

// direct reports whether the call at path belongs to the run that is shown, and is not nested.
func direct(path llm.Key) bool { return strings.Count(string(path), "/") == 2 }

func (r *Renderer) label(path llm.Key, c *llm.ToolCall) string {
	if l := r.labels[c.ID]; l != "" && direct(path) {
		return l + " " + cli.Line(c.Name, 40)
	}
	return strings.TrimPrefix(string(path), "run/") + " " + cli.Line(c.Name, 40)
}

// completed shows the result of a call.
func (r *Renderer) completed(e pawl.Event) {
	x := e.Execution
	// a refused call of a reply that was not shown
	if _, known := r.labels[x.Call.ID]; !known && direct(x.Key) {
		r.announce(e.Step, &x.Call, x.Key)
	}
	took := ""
	if !x.Started.IsZero() { // runs on a cluster have no times
		took = cli.Short(x.Ended.Sub(x.Started))
	}
	if at, ok := r.started[x.Key]; ok && at.Before(x.Ended) && at.After(x.Started) {
		took = cli.Short(x.Ended.Sub(at))
	}
	m := markOf(x.Outcome)
	head := term.Text(0, "  ").Add(m.colour, m.mark).Add(0, " "+r.label(x.Key, &x.Call))
	if took != "" {
		head = head.Add(0, "  ").Add(term.Dim, took)
	}
	text := strings.TrimSpace(x.Result.Text())
	if x.Outcome == pawl.OutcomeOK {
		if x.Cached {
			head = head.Add(0, "  ").Add(term.Dim, "cached")
		}
		if text != "" {
			head = head.Add(0, "  "+summary(text, max(20, r.width-head.Width()-2)))
		}
		r.line(head.Render(r.style.On))
		return
	}
	r.line(head.Add(0, "  ").Add(m.colour, string(x.Outcome)).Render(r.style.On))
	const most = 8
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if i == most {
			r.line(r.style.Dim(fmt.Sprintf("      … %s more", cli.Count(len(lines)-most, "line"))))
			break
		}
		for _, l := range cli.Folded(cli.Visible(l), r.width-6, 3) {
			if l != "" {
				r.line("      " + l)
			}
		}
	}
}

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

// painted returns text in a colour, if style is on.
func painted(style cli.Style, colour term.Style, text string) string {
	return term.Text(colour, text).Render(style.On)
}
