package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/cmd/pawl/internal/show"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
	"github.com/pawl-go/pawl/internal/diff"
	"github.com/pawl-go/pawl/llm"
)

// card is a question on the console: the effect of a call, and the keys that answer.
//
//	┃ file_write asks: it may change the world
//	┃ path  note.txt
//	┃     1 - old
//	┃     1 + new
//	┃ y allow  a allow file_write from now on  e edit  n deny
type card struct {
	title    term.Line
	body     []term.Line
	name     string // name of the tool; "" means that the question asks for a line of text
	args     json.RawMessage
	editable bool
	repeats  bool // the person may allow all later calls like it

	asked  time.Time
	more   bool
	scroll int
	width  int          // the width in which lines were shown
	read   int          // number of lines that were shown, from the first
	unread bool         // lines are left that were not shown
	input  *term.Editor // the editor of a reason, or of the requested line
	label  string       // label before the editor
	trial  string       // edited arguments that are not valid
	fault  string
	answer chan decision
}

// decision is the answer of the person. A zero verdict means no answer.
type decision struct {
	verdict pawl.Verdict    // 0 means no answer
	always  bool            // the decision is for all later calls of the tool
	args    json.RawMessage // changed arguments; nil means the arguments of the model
	text    string          // the reason, or the requested line
}

// change is the effect of a call on a file.
type change struct {
	path          string
	before, after string
	exists        bool
}

// newCard makes the card of a question. of is its effect on a file; nil means that no effect is
// known.
func newCard(about question, of *change, editable bool) *card {
	call := about.call
	q := &card{
		name:     call.Name,
		args:     call.Args,
		editable: editable,
		repeats:  about.mayRepeat(),
		unread:   true,
		answer:   make(chan decision, 1), // the answer may come when no one waits any more
	}
	q.title = term.Text(term.Bold|term.Yellow, about.title()).Add(term.Yellow, " asks")
	q.title = q.title.Add(0, ": "+strings.TrimSuffix(about.why, "."))
	if of != nil {
		q.body = of.lines()
	} else {
		q.body = show.ArgumentLines(call.Args)
	}
	for _, other := range about.others {
		q.body = append(q.body, term.Text(term.Dim, "and "+other.Name))
		q.body = append(q.body, show.ArgumentLines(other.Args)...)
	}

	// The person decides by this text, so nothing may hide in it.
	for _, l := range append(q.body, q.title) {
		for i := range l {
			l[i].Text = cli.Exact(l[i].Text)
		}
	}
	return q
}

// lines returns the change as a diff.
func (d *change) lines() []term.Line {
	head := term.Text(term.Cyan, "path").Add(0, "  "+d.path)
	if !d.exists {
		head = head.Add(term.Dim, "  (a new file)")
	}
	out := []term.Line{head}
	lines := diff.Lines(split(d.before), split(d.after), 2)
	if len(lines) == 0 {
		return append(out, term.Text(term.Dim, "the file would not change"))
	}

	// A line has the number that it has in the file after the change, or had before it.
	for _, l := range lines {
		var shown term.Line
		switch l.Op {
		case diff.Gap:
			shown = term.Text(term.Dim, fmt.Sprintf("     ⋮ %s", cli.Count(l.Old, "line")))
		case diff.Same:
			shown = term.Text(term.Dim, fmt.Sprintf("%4d   ", l.New)).Add(0, l.Text)
		case diff.Gone:
			shown = term.Text(term.Dim, fmt.Sprintf("%4d ", l.Old)).Add(term.Red, "- "+l.Text)
		case diff.Come:
			shown = term.Text(term.Dim, fmt.Sprintf("%4d ", l.New)).Add(term.Green, "+ "+l.Text)
		}
		out = append(out, shown)
	}
	return out
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// newPrompt makes a question for a line of text.
func newPrompt(label string) *card {
	return &card{label: label, input: new(term.Editor), answer: make(chan decision, 1)}
}

// premature reports whether a key press belongs to text that the person was typing when the card
// appeared. It is then not an answer.
func (q *card) premature(before, now time.Time) bool {
	const pause = 400 * time.Millisecond // longer than between the letters of a word
	if q.name == "" || q.input != nil || before.IsZero() {
		return false
	}
	wasTyping := before.Before(q.asked) && q.asked.Sub(before) < pause
	return wasTyping && now.Sub(q.asked) < pause
}

// show returns the card in a number of columns and rows, and the position of the cursor in it.
func (q *card) show(width, rows int) (lines []term.Line, at *term.Cursor) {
	room := width - 2 // without the bar
	if q.name == "" {
		lines, cursor := q.input.View(q.prompt(room), width-1, rows)
		return lines, &cursor
	}

	lines = q.title.Wrap(room)
	foot, at := q.foot(room)
	// The keys stay in sight: a person must never scroll to find how to deny.
	space := max(1, rows-len(lines)-len(foot)-1)
	if !q.more { // the work above the card stays in sight
		space = min(space, 16)
	}
	if q.width != width { // what was read is counted in lines of one width
		q.width = width
		q.read = 0
	}
	lines = append(lines, q.visible(q.wrapped(room), space)...)

	if at != nil {
		at.Row += len(lines)
		at.Column += 2
	}
	bar := term.Text(term.Yellow, "┃ ")
	return term.Indent(append(lines, foot...), bar, bar), at
}

// prompt returns what stands before the typed text.
func (q *card) prompt(room int) term.Line {
	return term.Text(term.Cyan, cli.Line(q.label, room*2/3)+" > ")
}

// foot returns the lines below the body, which are always shown: a fault, and the input or the
// keys. at is the cursor of the input in them, or nil.
func (q *card) foot(room int) (foot []term.Line, at *term.Cursor) {
	if q.input != nil {
		in, cursor := q.input.View(q.prompt(room), room-1, 4)
		foot = in
		at = &cursor
	} else {
		foot = q.keys().Wrap(room)
	}
	if q.fault != "" {
		foot = append(term.Text(term.Red, q.fault).Wrap(room), foot...)
	}
	return foot, at
}

// wrapped returns all lines of the body.
func (q *card) wrapped(room int) []term.Line {
	var body []term.Line
	for _, l := range q.body {
		body = append(body, l.Wrap(room)...)
	}
	if len(body) == 0 {
		return []term.Line{term.Text(term.Dim, "without arguments")}
	}
	return body
}

// visible returns the lines of the body that fit a number of lines, with a note on the others, and
// records which lines the person has seen.
func (q *card) visible(body []term.Line, space int) []term.Line {
	q.scroll = max(0, min(q.scroll, len(body)-space))
	if q.scroll <= q.read { // no line between was skipped
		q.read = max(q.read, q.scroll+space)
	}
	q.unread = q.read < len(body)
	if len(body) <= space {
		return body
	}

	note := fmt.Sprintf("… %s more: m", cli.Count(len(body)-space, "line"))
	if q.more {
		note = fmt.Sprintf("lines %d to %d of %d: up, down", q.scroll+1, q.scroll+space, len(body))
	}
	return append(body[q.scroll:q.scroll+space:q.scroll+space], term.Text(term.Dim, note))
}

// keys lists the keys that answer.
func (q *card) keys() term.Line {
	var l term.Line
	for _, k := range []struct{ key, what string }{
		{"y", "allow"},
		{"a", "allow " + cli.Line(q.name, 30) + " from now on"},
		{"e", "edit"},
		{"n", "deny"},
	} {
		if k.key == "e" && !q.editable || k.key == "a" && !q.repeats {
			continue
		}
		if l != nil {
			l = l.Add(0, "  ")
		}
		l = l.Add(term.Bold|term.Green, k.key).Add(term.Dim, " "+k.what)
	}
	return l
}

// key handles a key and reports whether the question is answered.
func (q *card) key(k term.Key, c *console) (done bool) {
	if q.input != nil {
		return q.typed(k)
	}
	if k.Name == "text" {
		return q.letter(strings.ToLower(k.Text), c)
	}
	by := map[string]int{"up": -1, "down": 1, "pageup": -10, "pagedown": 10}[k.Name]
	q.scroll += by
	q.more = q.more || by > 0
	return false
}

// letter handles a key that stands for an answer.
func (q *card) letter(said string, c *console) (done bool) {
	// A person approves only what was shown.
	if q.unread && (said == "y" || said == "a") {
		q.more = true
		q.fault = "the question has more lines: down shows them, then y or a allows"
		return false
	}
	q.fault = ""

	switch said {
	case "y":
		return q.reply(decision{verdict: pawl.VerdictAllow})
	case "a":
		if !q.repeats {
			q.fault = "a yes to such a value is for this call alone: y allows it"
			return false
		}
		return q.reply(decision{verdict: pawl.VerdictAllow, always: true})
	case "n":
		q.input = new(term.Editor)
		q.label = "why not? (Enter: no reason, Esc: back)"
	case "e":
		if q.editable {
			return q.edit(c)
		}
	case "m":
		q.more = !q.more
		q.scroll = 0
	}
	return false
}

// typed handles a key in a line of text.
func (q *card) typed(k term.Key) (done bool) {
	switch {
	case k.Name == "enter":
		// A line of text is the answer to a question, or the reason why a call is denied.
		verdict := pawl.VerdictAllow
		if q.name != "" {
			verdict = pawl.VerdictDeny
		}
		return q.reply(decision{verdict: verdict, text: strings.TrimSpace(q.input.Text())})
	case k.Name == "esc" && q.name != "":
		q.input = nil
	case k.Name == "ctrl-d" && q.name == "" && q.input.Text() == "":
		return q.reply(decision{})
	default:
		q.input.Key(k)
	}
	return false
}

// edit opens the arguments in an editor, and allows the call with the result.
func (q *card) edit(c *console) (done bool) {
	text := cmp.Or(q.trial, cli.Pretty(q.args))
	// The run goes on while the person writes, and its events need the lock.
	c.mu.Unlock()
	edited, err := c.edit(text, "arguments.json")
	c.mu.Lock()
	edited = strings.TrimSpace(edited)

	switch {
	case err != nil:
		q.fault = err.Error()
	case !json.Valid([]byte(edited)):
		q.fault = "this is not JSON; e edits it again"
		q.trial = edited
	case edited == strings.TrimSpace(text) && q.trial == "":
		q.fault = "nothing was changed; y allows it unchanged"
	default:
		return q.reply(decision{verdict: pawl.VerdictAllow, args: json.RawMessage(edited)})
	}
	return false
}

func (q *card) reply(s decision) bool {
	q.answer <- s
	return true
}

func (q *card) cancel() { q.answer <- decision{} }

// prompt shows a question and waits for the answer. The asker calls it for one question at a time.
func (c *console) prompt(ctx context.Context, q *card, path llm.Key) decision {
	var answered func()
	c.update(func() {
		q.asked = time.Now()
		c.ask = q
		answered = c.view.Ask(path)
	})

	var s decision
	select {
	case s = <-q.answer:
	case <-ctx.Done():
	}

	// Ctrl-C may have removed the card already.
	c.update(func() {
		if c.ask == q {
			c.ask = nil
		}
		answered()
	})
	return s
}

// record shows the question and the answer below the call.
func (c *console) record(path llm.Key, call llm.ToolCall, q *card, s decision) {
	c.update(func() {
		var lines []term.Line
		for _, l := range q.body {
			lines = append(lines, l.Wrap(c.view.Width-4)...)
		}
		bar := term.Text(term.Yellow, "  ┃ ")
		lines = term.Indent(show.Clip(lines, 12, ""), bar, bar)

		// A call with other arguments ends here and is executed in the next run.
		word := "allowed"
		style := term.Green
		replaced := false
		switch {
		case s.verdict == pawl.VerdictDeny:
			word = "denied"
			style = term.Yellow
		case s.verdict == 0:
			word = "not answered"
			style = term.Yellow
		case s.args != nil:
			word = "allowed with other arguments"
			replaced = true
		case s.always:
			word = "allowed from now on"
		}
		c.view.SetDecision(path, &call, append(lines, bar.Add(style, word)), replaced)
	})
}
