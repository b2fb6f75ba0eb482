package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/config"
)

// renderer makes the events of a run readable, one after another. Nothing that a model or a tool says reaches the writer but
// through visible, so no control character does.
//
//	step 2 ──────────────────────────
//	I read both files.
//	  → 2.1 file_read {"path":"a.csv"}
//	  → 2.2 file_read {"path":"b.csv"}
//	  ✓ 2.2 file_read  0.2 ms  id,amount (+11 lines)
//	  ✗ 2.1 file_read  0.3 ms  error
//	      a.csv: no such file; did you mean "A.csv"?
type renderer struct {
	w     io.Writer
	style style
	width int
	live  bool // write the text of a reply as it comes; otherwise only the text beside calls, once it is whole

	open    bool // the last line is not ended
	dim     bool // the open line is reasoning
	step    int
	told    int                    // the step whose header is written
	calls   int                    // announced in this step
	labels  map[string]string      // of this step's calls, by id
	begun   map[pawl.Key]time.Time // when the tools of this step began; a call's own time counts the wait for a person too
	pending []pawl.Waiting
}

// newRenderer returns a renderer that writes to w as sys wants it. live says that the text of a reply is written as it arrives.
func newRenderer(sys *system, w io.Writer, style style, live bool) *renderer {
	return &renderer{w: w, style: style, width: sys.width, live: live}
}

// display is where a run is shown: in place at the console, or as plain lines.
type display struct {
	show    func(pawl.Event)
	live    bool // the answer is told as it comes: what shows it, and where it goes to, is one terminal
	plain   *renderer
	console *console // nil: plain lines
}

func newDisplay(sys *system, out *screen) *display {
	d := &display{live: sys.outTerm && sys.errTerm, console: consoleOf(sys)}
	if d.console != nil {
		d.show = d.console.show
		return d
	}
	d.plain = newRenderer(sys, out, sys.colours(sys.errTerm), d.live)
	d.show = d.plain.event
	return d
}

// totals shows what a run used.
func (d *display) totals(s pawl.Spent, took time.Duration) {
	switch {
	case s.Requests == 0:
	case d.console != nil:
		d.console.wrapped("totals", term.Text(term.Dim, totals(s, took)))
	default:
		d.plain.totals(s, took)
	}
}

// totals writes what a run used.
func (r *renderer) totals(s pawl.Spent, took time.Duration) {
	fmt.Fprintf(r.w, "\n%s\n", r.style.dim(totals(s, took)))
}

// event writes what there is to see of e.
func (r *renderer) event(e pawl.Event) {
	if e.Run != "" && strings.Contains(string(e.Run), "/") && e.Kind != pawl.EventCallCompleted {
		return // of a run inside a call: only what its calls came to is shown
	}
	switch e.Kind {
	case pawl.EventStepStarted:
		r.begin(e.Step)
	case pawl.EventText:
		if r.live {
			r.text(e.Text, false)
		}
	case pawl.EventReasoning:
		if r.live {
			r.text(e.Text, true)
		}
	case pawl.EventTextRetracted:
		if r.live {
			r.line(r.style.dim("(forget that: it was no answer but a call written as text)"))
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
		if _, again := r.begun[e.Path]; !again && r.begun != nil {
			r.begun[e.Path] = time.Now()
		}
		if e.Attempt > 1 {
			r.line(fmt.Sprintf("  → %s again, attempt %d", r.label(e.Path, e.Call), e.Attempt))
		}
	case pawl.EventProgress:
		r.line("      " + r.style.dim(line(e.Text, r.width-6)))
	case pawl.EventNotice:
		if e.Code == config.NoticeDriver {
			return // it was told when the command began
		}
		mark := "  ! "
		for _, l := range folded(visible(e.Code+": "+e.Text), r.width-len(mark), 3) {
			r.line(r.style.yellow(mark + l))
			mark = "    "
		}
	case pawl.EventCallCompleted:
		r.completed(e)
	case pawl.EventRunEnded:
		r.end()
	}
}

func (r *renderer) begin(step int) {
	if step != r.step {
		r.step, r.calls, r.labels, r.begun = step, 0, map[string]string{}, map[pawl.Key]time.Time{}
	}
}

// header writes the head of the step, once there is something to put under it.
func (r *renderer) header() {
	if r.told == r.step {
		return
	}
	r.told = r.step
	r.end()
	title := "step " + strconv.Itoa(r.step) + " "
	fmt.Fprintf(r.w, "\n%s%s\n", r.style.bold(title), r.style.dim(strings.Repeat("─", max(0, r.width-len(title)))))
}

// text writes a fragment. The line stays open.
func (r *renderer) text(s string, dim bool) {
	if r.open && r.dim != dim {
		r.end()
	}
	s = visible(s)
	if s == "" {
		return
	}
	r.header()
	r.open, r.dim = !strings.HasSuffix(s, "\n"), dim
	if dim {
		s = r.style.dim(s)
	}
	io.WriteString(r.w, s)
}

// whole shows a reply that was not shown as it came. An answer is left to whoever prints it.
func (r *renderer) whole(e pawl.Event) {
	calls := e.Response.Message.Calls()
	if len(calls) == 0 {
		return
	}
	r.begin(e.Step)
	if t := strings.TrimSpace(e.Response.Message.Text()); t != "" {
		r.line(visible(t))
	}
	for i := range calls {
		r.announce(e.Step, &calls[i], "")
	}
}

// end ends an open line.
func (r *renderer) end() {
	if r.open {
		io.WriteString(r.w, "\n")
		r.open = false
	}
}

func (r *renderer) line(s string) {
	r.header()
	r.end()
	io.WriteString(r.w, s+"\n")
}

// announce shows that the model wants a call. Its label counts the calls of the reply from 1; of a call that an earlier run left open, path says
// which it was.
func (r *renderer) announce(step int, c *pawl.ToolCall, path pawl.Key) {
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
	head := "  → " + label + " " + line(c.Name, 40) + " "
	args := line(shortArgs(c.Args), r.width-utf8.RuneCountInString(head))
	r.line(head + r.style.dim(args))
}

// longText is a JSON string of more than 32 bytes, escapes included.
var longText = regexp.MustCompile(`"(?:[^"\\]|\\.){33,}"`)

// shortArgs writes arguments on a line, with long texts cut so that what stands beside them can be seen. Arguments that are no JSON stay
// as they are.
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

// direct reports whether the call at path was made by the run that is shown, and not inside another call.
func direct(path pawl.Key) bool { return strings.Count(string(path), "/") == 2 }

func (r *renderer) label(path pawl.Key, c *pawl.ToolCall) string {
	if l := r.labels[c.ID]; l != "" && direct(path) {
		return l + " " + line(c.Name, 40)
	}
	return strings.TrimPrefix(string(path), "run/") + " " + line(c.Name, 40)
}

// completed shows what a call came to.
func (r *renderer) completed(e pawl.Event) {
	x := e.Execution
	if _, known := r.labels[x.Call.ID]; !known && direct(x.Key) { // refused before it began, and not of a reply that was shown
		r.announce(e.Step, &x.Call, x.Key)
	}
	mark, note := r.style.green("✓"), ""
	switch x.Outcome {
	case pawl.OutcomeOK:
		if x.Cached {
			note = "  " + r.style.dim("cached")
		}
	case pawl.OutcomePending, pawl.OutcomeUnknown:
		mark, note = r.style.yellow("?"), "  "+r.style.yellow(string(x.Outcome))
		r.pending = append(r.pending, x.Waiting...)
	case pawl.OutcomeSkipped, pawl.OutcomeCancelled, pawl.OutcomeDenied, pawl.OutcomeBlocked:
		mark, note = r.style.yellow("–"), "  "+r.style.yellow(string(x.Outcome))
	default:
		mark, note = r.style.red("✗"), "  "+r.style.red(string(x.Outcome))
	}
	label := r.label(x.Key, &x.Call)
	took := ""
	if !x.Started.IsZero() { // it is not told of runs on a cluster
		took = short(x.Ended.Sub(x.Started))
	}
	if begun, ok := r.begun[x.Key]; ok && begun.Before(x.Ended) && begun.After(x.Started) {
		took = short(x.Ended.Sub(begun))
	}
	head := fmt.Sprintf("  %s %s", mark, label)
	used := 4 + utf8.RuneCountInString(label)
	if took != "" {
		head += "  " + r.style.dim(took)
		used += 2 + utf8.RuneCountInString(took)
	}
	head += note
	text := strings.TrimSpace(x.Result.Text())
	if x.Outcome == pawl.OutcomeOK {
		if x.Cached {
			used += len("  cached")
		}
		if text != "" {
			head += "  " + summary(text, max(20, r.width-used-2))
		}
		r.line(head)
		return
	}
	r.line(head)
	const most = 8
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if i == most {
			r.line(r.style.dim(fmt.Sprintf("      … %s more", count(len(lines)-most, "line"))))
			break
		}
		for _, l := range folded(visible(l), r.width-6, 3) {
			if l != "" {
				r.line("      " + l)
			}
		}
	}
}

// summary shows the head of a result in width runes, and how much more there is.
func summary(text string, width int) string {
	first, rest, more := strings.Cut(text, "\n")
	if !more {
		return line(first, width)
	}
	tail := fmt.Sprintf(" (+%s)", count(strings.Count(rest, "\n")+1, "line"))
	return line(first, width-utf8.RuneCountInString(tail)) + tail
}

// folded breaks a line between words into at most most lines of width runes; what is left over is cut.
func folded(s string, width, most int) []string {
	var out []string
	r := []rune(s)
	for len(r) > width && len(out) < most-1 {
		n := width
		for n > width/2 && r[n] != ' ' {
			n--
		}
		if r[n] != ' ' {
			n = width
		}
		out = append(out, strings.TrimRight(string(r[:n]), " "))
		r = []rune(strings.TrimLeft(string(r[n:]), " "))
	}
	return append(out, line(string(r), width))
}

// short writes a duration for people.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 ms"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// totals says in a line what a run used.
func totals(s pawl.Spent, took time.Duration) string {
	u := s.Usage
	t := fmt.Sprintf("%s, %s, %s", count(s.Requests, "request"), count(s.Rounds, "round"), count(s.Calls, "call"))
	if u.Total() > 0 {
		t += fmt.Sprintf(", %s tokens in, %s out", grouped(u.Input), grouped(u.Output))
	}
	if u.Cost > 0 {
		t += ", " + dollars(u.Cost)
	}
	return t + ", " + short(took)
}

// dollars writes an amount with cents, or with the two digits that say something of a smaller one.
func dollars(c float64) string {
	digits := 2
	for least := 0.1; c < least && digits < 8; least /= 10 {
		digits++
	}
	return "$" + strconv.FormatFloat(c, 'f', digits, 64)
}
