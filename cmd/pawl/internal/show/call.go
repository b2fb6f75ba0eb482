package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/todo"
)

// attach returns the call at a path. It adds the call if an earlier run left it open, or if it is
// nested.
func (v *View) attach(path llm.Key, call *llm.ToolCall) *callItem {
	if c := v.calls[path]; c != nil {
		return c
	}

	// A call is announced by its ID, before its reply is complete and it has a path.
	var c *callItem
	if Direct(path) {
		c = v.byID["run "+call.ID]
		if c == nil {
			c = v.addCall(nil)
			v.byID["run "+call.ID] = c
		}
	} else {
		c = v.addCall(v.parent(path))
	}
	c.call = *call
	v.calls[path] = c
	return c
}

// parent returns the nearest call above a path that is shown and has not ended. Nil means none.
func (v *View) parent(path llm.Key) *callItem {
	p := string(path)
	for {
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return nil
		}
		p = p[:i]
		c := v.calls[llm.Key(p)]
		switch {
		case c == nil:
		case c.state == callDone: // its lines may be printed, and are not changed any more
			return nil
		default:
			return c
		}
	}
}

// callState is the progress of a call.
type callState int

const (
	callWriting callState = iota // the model writes the arguments
	callReady                    // the call is complete and has not started
	callPending                  // a person is asked for a decision
	callRunning
	callDone
)

// callItem is a call with its nested calls.
type callItem struct {
	call     llm.ToolCall
	exec     *pawl.Execution // nil until the call has ended
	state    callState
	bytes    int  // bytes of arguments so far
	replied  bool // its reply is complete
	early    bool // it started before its reply was complete
	attempt  int
	started  time.Time
	took     time.Duration
	progress string
	notes    []string
	decision []term.Line // the question and the answer of the person
	outcome  pawl.Outcome
	number   int  // from 1
	held     bool // it is pending, and the next run executes it
	inner    []*callItem
	parent   *callItem
}

func (c *callItem) kind() string { return "call" }

func (c *callItem) done() bool { return c.state == callDone && !c.held }

// addCall adds a call. A nil parent means that the call is not nested.
func (v *View) addCall(parent *callItem) *callItem {
	c := &callItem{parent: parent}
	v.all = append(v.all, c)
	c.number = len(v.all)
	if parent != nil {
		parent.inner = append(parent.inner, c)
		return c
	}
	v.EndText()
	v.items = append(v.items, c)
	return c
}

// Calls returns the number of calls.
func (v *View) Calls() int { return len(v.all) }

// AddDetails adds the arguments and the complete result of call number n, from 1.
func (v *View) AddDetails(n int) {
	c := v.all[n-1]
	head := term.Text(term.Cyan|term.Bold, fmt.Sprintf("#%d ", n))
	head = head.Add(term.Bold, c.call.Name).Add(0, " "+plainArgs(c.call.Args))

	lines := []term.Line{head}
	for _, l := range c.details() {
		lines = append(lines, term.Indent(l.Wrap(v.Width-2), term.Text(0, "  "), term.Text(0, "  "))...)
	}
	v.Add("shown", lines...)
}

// ForgetCalls makes the next call number 1.
func (v *View) ForgetCalls() { v.all = nil }

// Ask shows that a person is asked about the call at path. Call answered when the question is
// closed.
func (v *View) Ask(path llm.Key) (answered func()) {
	c := v.calls[path]
	if c == nil {
		return func() {}
	}
	before := c.state
	c.state = callPending
	return func() {
		if c.state == callPending {
			c.state = before
		}
	}
}

// SetDecision shows lines below the call at path: the question about it, and the answer. replaced
// says that the call waits for its execution with other arguments, in the next run.
func (v *View) SetDecision(path llm.Key, call *llm.ToolCall, lines []term.Line, replaced bool) {
	c := v.attach(path, call)
	c.decision = lines
	if replaced {
		c.held = true
	}
}

// announced returns the call of an incomplete reply.
func (v *View) announced(e pawl.Event) *callItem {
	place := placeOf(e)
	c := v.byID[place]
	if c == nil {
		c = v.addCall(nil)
		v.byID[place] = c
	}
	c.call.ID = e.Call.ID
	c.call.Name = e.Call.Name
	v.byID[string(e.Run)+" "+e.Call.ID] = c
	return c
}

// placeOf names the part of a reply that an event is about.
func placeOf(e pawl.Event) string { return fmt.Sprintf("%s #%d", e.Run, e.Index) }

// start marks the start of the tool.
func (c *callItem) start(attempt int, early bool, now time.Time) {
	if c.state == callDone && !c.held {
		return
	}
	if c.state != callRunning {
		c.started = now
	}
	c.state = callRunning
	c.attempt = attempt
	c.early = c.early || early && c.parent == nil
	if attempt > 1 {
		c.notes = append(c.notes, fmt.Sprintf("attempt %d", attempt))
	}
}

// complete stores the result of the call.
func (c *callItem) complete(x *pawl.Execution, now time.Time) {
	c.state = callDone
	c.outcome = x.Outcome
	c.exec = x
	c.call = x.Call

	end := x.Ended
	if end.IsZero() { // runs on a cluster have no times
		end = now
	}
	c.took = end.Sub(x.Started)
	if c.started.After(x.Started) && c.started.Before(end) { // without the wait for a person
		c.took = end.Sub(c.started)
	}

	if c.held && x.Outcome == pawl.OutcomePending {
		return
	}
	c.held = false
	for _, in := range c.inner {
		in.abandon()
	}
}

// abandon closes a call that will have no more events.
func (c *callItem) abandon() {
	if c.state != callDone {
		c.state = callDone
		c.outcome = pawl.OutcomeSkipped
	}
	for _, in := range c.inner {
		in.abandon()
	}
}

// mostInner is the number of nested calls that are shown while the call runs.
const mostInner = 8

// resultMark stands before the result of a call.
const resultMark = "  └ "

// lines returns the lines of the call, of its result and of its nested calls.
func (c *callItem) lines(v *View, now time.Time) []term.Line {
	out := []term.Line{c.head(v.Width, now)}
	out = append(out, c.decision...)
	for _, n := range c.notes {
		out = append(out, c.under(v.Width, "  ! ", term.Yellow, n, 3)...)
	}

	// While the call runs, its lines are painted again and again, and must fit the screen.
	inner := c.inner
	if c.state != callDone && len(inner) > mostInner {
		out = append(out, term.Text(term.Dim, fmt.Sprintf("  … %s before", cli.Count(len(inner)-mostInner, "call"))))
		inner = inner[len(inner)-mostInner:]
	}
	for _, in := range inner {
		sub := *v
		sub.Width -= 2
		out = append(out, term.Indent(in.lines(&sub, now), term.Text(0, "  "), term.Text(0, "  "))...)
	}
	return append(out, c.resultLines(v.Width)...)
}

// resultLines returns the lines of the result or, while the tool runs, of its progress.
func (c *callItem) resultLines(width int) []term.Line {
	switch {
	case c.state == callRunning && c.progress != "":
		return c.under(width, resultMark, term.Dim, lastLine(c.progress), 1)
	case c.state != callDone || c.exec == nil:
		return nil
	}

	text := strings.TrimSpace(c.exec.Result.Text())
	list, err := todo.Of(c.exec.Values)
	isList := err == nil && c.call.Name == "todo" && len(list.Items) > 0
	switch {
	// A list of tasks is for the person. Other results are for the model, so that a line of them is
	// enough.
	case c.outcome == pawl.OutcomeOK && isList:
		return c.under(width, resultMark, term.Dim, cli.Visible(list.String()), 12)
	case text == "":
		return nil
	case c.outcome == pawl.OutcomeOK:
		return []term.Line{term.Text(term.Dim, resultMark).Add(term.Dim, summary(text, width-4))}
	}
	return c.under(width, resultMark, 0, text, 6)
}

// under returns a text below the call, in at most a number of lines. first stands before the first.
func (c *callItem) under(width int, first string, style term.Style, text string, most int) []term.Line {
	var lines []term.Line
	for _, l := range strings.Split(text, "\n") {
		lines = append(lines, term.Text(style, l).Wrap(width-4)...)
	}
	lines = Clip(lines, most, fmt.Sprintf(": /show %d", c.number))
	return term.Indent(lines, term.Text(term.Dim, first), term.Text(0, "    "))
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// head returns the line with the name, the arguments and the state of the call.
func (c *callItem) head(width int, now time.Time) term.Line {
	mark, tail, took := c.mark(now)
	name := cli.Line(c.call.Name, 40)
	l := mark.Add(0, " ").Add(term.Bold, name)
	room := width - l.Width() - 1 - tail.Width()
	if took != "" {
		room -= max(0, 6-len(took)) // the time must not move the text before it
	}
	if args := c.args(room); args != "" {
		l = l.Add(0, " "+args)
	}
	return l.With(tail...)
}

// args returns the arguments in a number of columns, or their size while they are written.
func (c *callItem) args(room int) string {
	if c.state == callWriting {
		if c.bytes < 1024 {
			return ""
		}
		return fmt.Sprintf("(%d KB)", c.bytes>>10)
	}
	args := plainArgs(c.call.Args)
	// the question below showed the other arguments
	if fields, _ := argFields(c.call.Args); c.decision != nil && len(fields) > 0 {
		slices.SortStableFunc(fields, func(a, b argument) int { return priority(a.name) - priority(b.name) })
		args = plainValue(fields[0].value, 200)
	}
	return term.Cut(args, max(room, 0))
}

// plainArgs returns arguments on one line: the value alone if there is only one, else names with
// values.
func plainArgs(args json.RawMessage) string {
	fields, ok := argFields(args)
	if !ok {
		return cli.Line(string(args), 200)
	}
	if len(fields) == 1 {
		return plainValue(fields[0].value, 200)
	}
	slices.SortStableFunc(fields, func(a, b argument) int { return priority(a.name) - priority(b.name) })
	var all []string
	for _, f := range fields {
		all = append(all, cli.Line(f.name, 40)+"="+plainValue(f.value, 28))
	}
	return strings.Join(all, " ")
}

// plainValue returns a value on one line, a string without its quotes.
func plainValue(v json.RawMessage, most int) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		s = string(v)
	}
	return cli.Line(s, most)
}

// mainArgs are the names of the most informative arguments.
var mainArgs = []string{"path", "url", "command", "query", "name", "id"}

// priority returns the rank of an argument for display.
func priority(name string) int {
	if i := slices.Index(mainArgs, name); i >= 0 {
		return i
	}
	return len(mainArgs)
}

// argument is an argument of a call.
type argument struct {
	name  string
	value json.RawMessage
}

// argFields returns arguments in their order. ok is false if they are not a JSON object.
func argFields(args json.RawMessage) (out []argument, ok bool) {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil, true
	}
	if !jsonscan.IsObject(args) {
		return nil, false
	}
	c := jsonscan.New(args)
	for name := range c.Members() {
		out = append(out, argument{string(name), c.Raw()})
	}
	return out, true
}

// ArgumentLines returns the lines of the arguments of a call: one line for each, with its name, if
// its value is short.
func ArgumentLines(args json.RawMessage) (out []term.Line) {
	fields, ok := argFields(args)
	if !ok {
		return textLines(string(args))
	}
	for _, f := range fields {
		out = append(out, f.lines()...)
	}
	return out
}

func (a argument) lines() []term.Line {
	var text string
	if json.Unmarshal(a.value, &text) != nil {
		text = string(a.value)
		if b := cli.Pretty(a.value); len(b) > 60 {
			text = b
		}
	}
	name := term.Text(term.Cyan, a.name)
	if !strings.Contains(text, "\n") && len(text) <= 200 {
		return []term.Line{name.Add(0, "  "+text)}
	}
	return append([]term.Line{name}, term.Indent(textLines(text), term.Text(0, "  "), term.Text(0, "  "))...)
}

func textLines(text string) (out []term.Line) {
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, term.Text(0, l))
	}
	return out
}

// details returns the arguments and the complete result of a call.
func (c *callItem) details() []term.Line {
	if c.exec == nil {
		return textLines("it has not ended")
	}
	out := ArgumentLines(c.call.Args)
	for _, r := range c.exec.Repairs {
		out = append(out, term.Text(term.Yellow, "repaired: "+r))
	}
	return append(append(out, nil), textLines(c.exec.Result.Text())...)
}

// mark returns the mark before the name, and the text behind the arguments with the time in it.
func (c *callItem) mark(now time.Time) (mark, tail term.Line, took string) {
	mark = term.Text(term.Dim, "·")
	note := func(style term.Style, text string) { tail = tail.Add(style, "  "+text) }

	switch c.state {
	case callWriting:
		note(term.Dim, "being written")
	case callReady:
		note(term.Dim, "waits")
	case callPending:
		mark = term.Text(term.Yellow, "?")
		note(term.Yellow, "asks")
	case callRunning:
		mark = term.Text(term.Cyan, spinner(now.Sub(c.started)))
		took = cli.Short(now.Sub(c.started))
		note(term.Dim, took)
		if c.early {
			note(term.Dim, "early")
		}
	case callDone:
		return c.doneMark()
	}
	return mark, tail, took
}

// doneMark is mark for a call that has ended.
func (c *callItem) doneMark() (mark, tail term.Line, took string) {
	note := func(style term.Style, text string) { tail = tail.Add(style, "  "+text) }
	m := markOf(c.outcome)
	mark = term.Text(m.colour, m.mark)
	if c.outcome != pawl.OutcomeOK {
		note(m.colour, strings.ReplaceAll(string(c.outcome), "_", " "))
	}
	if c.exec == nil { // the run ended before the call did
		return mark, tail, ""
	}

	if len(c.exec.Repairs) > 0 {
		note(term.Yellow, "repaired")
	}
	// A call that never started, such as a denied one, took no time.
	if c.exec.Cached {
		note(term.Dim, "cached")
	} else if c.attempt > 0 {
		took = cli.Short(c.took)
		note(term.Dim, took)
	}
	if c.early {
		note(term.Dim, "early")
	}
	note(term.Dim, fmt.Sprintf("#%d", c.number))
	return mark, tail, took
}
