package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show/markdown"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/llm"
)

// View turns the events of runs into lines of a terminal: permanent lines, which are printed once,
// and live lines below them, which are repainted.
//
//	I look at both files.
//
//	✓ file_read a.csv  12 ms  #1
//	  └ id,amount (+11 lines)
//	⠹ file_read b.csv  1.2 s
//
// Items keep their order: a completed call waits for the calls before it. The view reads no clock
// and does not use a terminal. It must not be used concurrently.
type View struct {
	Width  int  // columns
	Answer bool // show the text of answers; otherwise only the text next to calls
	Active bool // a run is in progress

	items []shownItem
	prose *prose
	calls map[llm.Key]*callItem // by path
	byID  map[string]*callItem  // of the step, by run and ID
	all   []*callItem           // all calls; call number n is at n - 1
	last  string                // the kind of the last printed item
	phase string                // the activity of the run
	began time.Time             // the start of the run
	step  int
}

// shownItem is a part of the display.
type shownItem interface {
	// kind returns the kind of the item. An empty line separates different kinds.
	kind() string
	// done reports whether the item is permanent.
	done() bool
	// lines returns the lines of the item.
	lines(v *View, now time.Time) []term.Line
}

// prose is text of the model.
type prose struct {
	stream   *markdown.Stream
	ready    []term.Line // permanent lines that are not printed yet
	thinking bool
	closed   bool
}

func (p *prose) kind() string {
	if p.thinking {
		return "thinking"
	}
	return "text"
}

func (p *prose) done() bool { return p.closed }

func (p *prose) lines(v *View, _ time.Time) []term.Line {
	all := p.ready
	if !p.closed {
		all = append(all[:len(all):len(all)], p.stream.Open()...)
	}
	return p.decorated(all)
}

func (p *prose) decorated(lines []term.Line) []term.Line {
	if !p.thinking {
		return lines
	}
	out := make([]term.Line, len(lines))
	for i, l := range lines {
		out[i] = term.Text(term.Dim, "∴ ").With(l.Styled(term.Dim | term.Italic)...)
	}
	return out
}

// fixed is a group of permanent lines.
type fixed struct {
	what string
	text []term.Line
}

func (f fixed) kind() string { return f.what }

func (f fixed) done() bool { return true }

func (f fixed) lines(*View, time.Time) []term.Line { return f.text }

// NewView returns an empty view of width columns.
func NewView(width int, answer bool) *View {
	v := &View{Width: width, Answer: answer}
	v.Begin(time.Time{})
	v.Active = false
	return v
}

// Begin prepares the view for a run.
func (v *View) Begin(now time.Time) {
	held := v.calls
	v.calls = map[llm.Key]*callItem{}
	v.byID = map[string]*callItem{}
	for path, c := range held {
		if c.held {
			v.calls[path] = c
		}
	}
	v.Active = true
	v.phase = "starting"
	v.began = now
	v.step = 0
}

// Add adds permanent lines.
func (v *View) Add(what string, lines ...term.Line) {
	v.EndText()
	v.items = append(v.items, fixed{what, lines})
}

// Handle handles an event.
func (v *View) Handle(e pawl.Event, now time.Time) {
	switch e.Kind {
	case pawl.EventCallStarted:
		v.phase = "running calls"
		c := v.attach(e.Path, e.Call)
		c.call = *e.Call
		c.start(e.Attempt, v.step == e.Step && !c.replied, now)
	case pawl.EventProgress:
		if c := v.calls[e.Path]; c != nil {
			c.progress = e.Text
		}
	case pawl.EventNotice:
		v.notice(e)
	case pawl.EventCallCompleted:
		v.attach(e.Path, &e.Execution.Call).complete(e.Execution, now)
	// Text of nested runs would interrupt the text of the run itself. Their calls are shown below
	// the call that started them.
	default:
		if !strings.Contains(string(e.Run), "/") {
			v.outer(e)
		}
	}
}

// outer handles an event that is shown only for the run itself, and not for nested runs.
func (v *View) outer(e pawl.Event) {
	switch e.Kind {
	case pawl.EventStepStarted:
		v.step = e.Step
		v.byID = map[string]*callItem{}
	case pawl.EventRequestStarted:
		v.phase = "waiting for the model"

	case pawl.EventText:
		v.phase = "writing"
		if v.Answer {
			v.text(e.Text, false)
		}
	case pawl.EventReasoning:
		v.phase = "thinking"
		if v.Answer {
			v.text(e.Text, true)
		}
	case pawl.EventTextRetracted:
		if c := v.byID[placeOf(e)]; c != nil {
			c.abandon()
		} else if v.Answer {
			v.retract()
		}

	case pawl.EventCallDelta:
		v.phase = "writing a call"
		v.announced(e).bytes += len(e.Text)
	case pawl.EventCallReady:
		c := v.announced(e)
		c.call = *e.Call
		c.state = callReady

	case pawl.EventResponseReceived:
		v.reply(e)
	case pawl.EventStep:
		v.broken(e)
	case pawl.EventSteered:
		if e.Message != nil {
			v.AddMessage(e.Message.Text())
		}
	case pawl.EventRunEnded:
		v.pending(e.Result)
		v.finish()
	}
}

// text handles a fragment of an answer or of reasoning.
func (v *View) text(s string, thinking bool) {
	if v.prose != nil && v.prose.thinking != thinking {
		v.EndText()
	}
	if v.prose == nil {
		// Models begin with line breaks, which would be an empty block.
		if strings.TrimSpace(s) == "" {
			return
		}
		width := v.Width
		if thinking {
			width -= 2
		}
		v.prose = &prose{stream: markdown.New(width), thinking: thinking}
		v.items = append(v.items, v.prose)
	}
	v.prose.ready = append(v.prose.ready, v.prose.stream.Write(s)...)
}

// EndText makes the text of the model permanent.
func (v *View) EndText() {
	if p := v.prose; p != nil {
		p.ready = append(p.ready, p.stream.Close()...)
		p.closed = true
		v.prose = nil
	}
}

// retract removes the unprinted part of a text that was not an answer.
func (v *View) retract() {
	v.items = slices.DeleteFunc(v.items, func(it shownItem) bool { return it == shownItem(v.prose) })
	v.prose = nil
	if v.last == "text" {
		v.Add("note", term.Text(term.Dim, "(forget that: it is not part of the answer)"))
	}
}

// reply shows the parts of a complete reply that were not shown as they arrived.
func (v *View) reply(e pawl.Event) {
	v.EndText()
	calls := e.Response.Message.Calls()
	text := strings.TrimSpace(e.Response.Message.Text())
	if !v.Answer && len(calls) > 0 && text != "" {
		v.text(text, false)
		v.EndText()
	}

	// A reply that did not stream, or without its calls, has not announced them.
	for i := range calls {
		id := string(e.Run) + " " + calls[i].ID
		c := v.byID[id]
		if c == nil {
			c = v.addCall(nil)
			c.call = calls[i]
			c.state = callReady
			v.byID[id] = c
		}
		c.replied = true
	}
	if len(calls) > 0 {
		v.phase = "running calls"
	}
}

// broken shows the step of a request that failed after a part of its reply had arrived.
func (v *View) broken(e pawl.Event) {
	reply := partial(e)
	if reply == nil {
		return
	}
	v.EndText()
	if text := strings.TrimSpace(reply.Message.Text()); !v.Answer && text != "" {
		v.text(text, false)
	}
	v.note(term.Red, markOf(pawl.OutcomeError).mark+" ", cutReply+e.Error)
}

// note adds the first lines of a text, with mark before them.
func (v *View) note(colour term.Style, mark, text string) {
	lines := term.Text(colour, text).Wrap(v.Width - 2)
	v.Add("note", term.Indent(lines[:min(len(lines), 3)], term.Text(colour, mark), term.Text(0, "  "))...)
}

func (v *View) notice(e pawl.Event) {
	text := fmt.Sprintf("%s: %s", e.Code, e.Text)
	if c := v.calls[e.Path]; c != nil && !c.done() {
		c.notes = append(c.notes, text)
		return
	}
	v.note(term.Yellow, "! ", text)
}

// Empty reports whether no line has been printed.
func (v *View) Empty() bool { return v.last == "" }

// AddMessage adds a message of the person.
func (v *View) AddMessage(text string) { v.Add("said", v.Quote(text)...) }

// Quote returns the lines of a message of the person.
func (v *View) Quote(text string) []term.Line {
	var lines []term.Line
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, term.Text(term.Bold, l).Wrap(v.Width-2)...)
	}
	return term.Indent(Clip(lines, 40, ""), term.Text(term.Cyan|term.Bold, "> "), term.Text(0, "  "))
}

// Clip returns at most most lines, and a line with the number of the others. hint stands behind
// that number.
func Clip(lines []term.Line, most int, hint string) []term.Line {
	if more := len(lines) - most; more > 0 {
		return append(lines[:most:most], term.Text(term.Dim, "… "+cli.Count(more, "line")+" more"+hint))
	}
	return lines
}

// pending marks the calls that wait for an answer. Runs on a cluster have no other event for them.
func (v *View) pending(res *pawl.Result) {
	if res == nil {
		return
	}
	for _, w := range res.Pending {
		if c := v.byID["run "+w.Call.ID]; c != nil && c.state != callDone {
			c.state = callDone
			c.outcome = pawl.OutcomePending
		}
	}
}

// finish closes the open items. Pending calls stay.
func (v *View) finish() {
	v.EndText()
	v.Active = false
	for _, it := range v.items {
		if c, ok := it.(*callItem); ok && !c.held {
			c.abandon()
		}
	}
}

// Drain returns the lines that have become permanent, each once.
func (v *View) Drain(now time.Time) (out []term.Line) {
	for len(v.items) > 0 {
		it := v.items[0]
		p, isProse := it.(*prose)
		switch {
		// The first lines of a text do not wait for its end.
		case isProse && len(p.ready) > 0:
			out = append(out, v.separator(it)...)
			out = append(out, p.decorated(p.ready)...)
			p.ready = nil
		case !isProse && it.done():
			out = append(out, v.separator(it)...)
			out = append(out, it.lines(v, now)...)
		}
		if !it.done() {
			return out
		}
		v.items = v.items[1:]
	}
	return out
}

// separator returns the empty line between items of different kinds.
func (v *View) separator(it shownItem) []term.Line {
	differs := v.last != "" && v.last != it.kind()
	v.last = it.kind()
	if differs {
		return []term.Line{nil}
	}
	return nil
}

// Live returns at most rows lines of the items that are not permanent, the last ones. Call it after
// drain.
func (v *View) Live(now time.Time, rows int) []term.Line {
	var out []term.Line
	last := v.last
	for _, it := range v.items {
		lines := it.lines(v, now)
		if len(lines) == 0 {
			continue
		}
		if last != "" && last != it.kind() {
			out = append(out, nil)
		}
		last = it.kind()
		out = append(out, lines...)
	}

	// The line about the others takes the place of one of them.
	if over := len(out) - rows; over > 0 && rows > 0 {
		above := term.Text(term.Dim, fmt.Sprintf("… %s above", cli.Count(over+1, "line")))
		out = append([]term.Line{above}, out[over+1:]...)
	}
	return out
}

// Status returns the line about the activity of the run.
func (v *View) Status(now time.Time, hint string) term.Line {
	if !v.Active {
		return nil
	}
	took := now.Sub(v.began)
	l := term.Text(term.Cyan, spinner(took)).Add(0, " "+v.phase).Add(term.Dim, "  "+cli.Short(took))
	if v.step > 1 && v.Width >= 60 {
		l = l.Add(term.Dim, fmt.Sprintf("  step %d", v.step))
	}
	return l.Add(term.Dim, "  "+hint)
}

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Frame is the time between two pictures of the spinner.
const Frame = 100 * time.Millisecond

func spinner(d time.Duration) string { return frames[int(max(d, 0)/Frame)%len(frames)] }
