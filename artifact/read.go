package artifact

import (
	"cmp"
	"context"
	_ "embed" // the description
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// resultRead is the name of the tool that reads artifacts.
const resultRead = "result_read"

//go:embed read.md
var description string

// Reader is a Toolset with the tool result_read, which reads every result of the conversation:
// stored ones, which are too large for the model, and those in the transcript, which
// history.Window puts away. Embed it in an implementation of pawl.Artifacts, or give it to an agent
// that stores nothing.
type Reader struct{}

var _ pawl.Toolset = Reader{}

// Tools returns result_read.
func (Reader) Tools(context.Context) ([]*pawl.Tool, error) { return []*pawl.Tool{reader()}, nil }

// reader makes the tool once, because it has no state of a run.
var reader = sync.OnceValue(func() *pawl.Tool {
	t := pawl.Func(resultRead, strings.TrimSpace(description), readResult)
	t.Effect = pawl.EffectRead
	t.MaxResult = -1 // a page is bounded already
	return t
})

const (
	pageBytes   = 16 << 10 // of a page
	pageLines   = 200      // of a page; the call may set another number
	pageMatches = 50
	matchBytes  = 300 // of a matching line
)

// page is the input of result_read.
type page struct {
	ID      string `json:"id,omitempty" jsonschema:"such as run/1/0; empty: pattern searches all"`
	Offset  int    `json:"offset,omitempty" jsonschema:"byte to begin at, from 0"`
	Limit   int    `json:"limit,omitempty" jsonschema:"bytes at most; default and maximum 16384"`
	Line    int    `json:"line,omitempty" jsonschema:"line to begin at, from 1, instead of offset"`
	Lines   int    `json:"lines,omitempty" jsonschema:"lines at most; 200 if left out"`
	Pattern string `json:"pattern,omitempty" jsonschema:"lines matching this regexp, from line on"`
}

func readResult(ctx context.Context, q page) (llm.ToolResult, error) {
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return llm.ErrorResult("Nothing is kept here."), nil
	}
	if fault := q.fault(); fault != "" {
		return llm.ErrorResult(fault), nil
	}
	if q.ID == "" {
		return q.searchAll(ctx, v), nil
	}

	a, err := v.Artifact(ctx, llm.Key(q.ID))
	if errors.Is(err, pawl.ErrNotFound) {
		for _, r := range results(ctx, v) {
			if r.id == q.ID {
				a.Text = r.text
				err = nil
			}
		}
	}
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return llm.ErrorResult(fmt.Sprintf("Nothing is kept as %q. Use the id that the cut result names, such as run/1/0; "+
			"if it was that, it is kept no longer: call the tool again, and ask for less.", text.Clip(q.ID, 80))), nil
	case err != nil:
		return llm.ToolResult{}, pawl.RetryableError(err)
	}

	content, ok := textOf(a)
	switch {
	case !ok:
		return llm.ErrorResult(fmt.Sprintf("%s is %s of %d bytes, and no text: it cannot be read here.",
			q.ID, a.MIME, len(a.Data))), nil
	case q.Pattern != "":
		return q.search(content), nil
	case q.Line > 0 || q.Lines > 0:
		return q.lines(content), nil
	}
	return q.bytes(content), nil
}

// fault says what is wrong with q. Empty means nothing.
func (q page) fault() string {
	byLine := q.Line > 0 || q.Lines > 0 || q.Pattern != ""
	switch {
	case min(q.Offset, q.Limit, q.Line, q.Lines) < 0:
		return "offset, limit, line and lines are 0 or more."
	case q.Offset > 0 && byLine:
		return "offset counts bytes; it does not go with line, lines or pattern."
	}
	return ""
}

// textOf returns the text of an artifact. ok is false if it is none.
func textOf(a pawl.Artifact) (content string, ok bool) {
	if a.Data == nil {
		return a.Text, true
	}
	content = string(a.Data)
	switch {
	case strings.HasPrefix(a.MIME, "image/"), !utf8.ValidString(content), strings.Contains(content, "\x00"):
		return "", false
	}
	return content, true
}

// result is a result of the conversation.
type result struct {
	id    string // the key, or the number of the reply and the place
	text  string
	cut   bool // the run has cut the text, and may have stored the whole
	reads bool // of a call of result_read
}

func results(ctx context.Context, v *pawl.Invocation) (all []result) {
	replies := 0
	var calls []llm.ToolCall
	msgs := v.Messages()
	if len(msgs) == 0 { // another process executes the call
		msgs = conversation.Of(ctx)
	}
	for _, m := range msgs {
		if m.Role == llm.RoleAssistant {
			calls = m.Calls()
			replies++
		}
		for i, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				reads := func(c llm.ToolCall) bool { return c.ID == r.CallID && c.Name == resultRead }
				id := cmp.Or(string(r.Key), fmt.Sprintf("%d/%d", replies, i))
				all = append(all, result{
					id:    id,
					text:  r.Text(),
					cut:   r.LeftOut > 0,
					reads: slices.ContainsFunc(calls, reads),
				})
			}
		}
	}
	return all
}

// searchAll returns the matching lines of all results.
func (q page) searchAll(ctx context.Context, v *pawl.Invocation) llm.ToolResult {
	re, err := regexp.Compile(q.Pattern)
	if err != nil || q.Pattern == "" {
		return llm.ErrorResult("Give the id of a result, or a pattern (a regular expression of RE2) to search all results.")
	}
	var b strings.Builder
	found := 0
	for _, r := range results(ctx, v) {
		if r.cut {
			if a, err := v.Artifact(ctx, llm.Key(r.id)); err == nil && a.Data == nil {
				r.text = a.Text
			}
		}
		if r.reads {
			continue
		}
		if matches(&b, re, r.text, r.id+" line ", 1, pageMatches, &found) > 0 {
			return llm.TextResult(fmt.Sprintf("[the first %d lines that match; there are more: give a narrower pattern, or an id]\n%s", found, b.String()))
		}
	}
	return llm.TextResult(fmt.Sprintf("[%d %s; there are no more]\n%s", found, text.Plural(found, "line that matches", "lines that match"), b.String()))
}

// matches writes the matching lines from a line on. It returns the number of the line that matches
// and is too much, or 0.
func matches(b *strings.Builder, re *regexp.Regexp, content, prefix string, from, most int, found *int) int {
	n := 0
	for l := range strings.Lines(content) {
		n++
		if n < from {
			continue
		}
		l = strings.TrimRight(l, "\r\n")
		at := re.FindStringIndex(l)
		if at == nil {
			continue
		}
		if *found == most || b.Len() > pageBytes {
			return n
		}
		*found++
		if len(l) > matchBytes { // the match, with some text before it
			begin := text.RuneBefore(l, max(0, at[0]-matchBytes/4))
			shown := text.Clip(l[begin:], matchBytes)
			if begin > 0 {
				shown = "…" + shown
			}
			l = shown
		}
		fmt.Fprintf(b, "%s%d: %s\n", prefix, n, l)
	}
	return 0
}

// bytes returns the page at an offset. It begins and ends at rune boundaries.
func (q page) bytes(content string) llm.ToolResult {
	if q.Offset >= len(content) && q.Offset > 0 {
		return llm.ErrorResult(fmt.Sprintf("%s has %d bytes; there is nothing at offset %d.", q.ID, len(content), q.Offset))
	}
	limit := pageBytes
	if q.Limit > 0 {
		limit = min(q.Limit, pageBytes)
	}
	from := text.RuneBefore(content, q.Offset)
	to := text.RuneBefore(content, min(from+limit, len(content)))
	if to <= from { // the limit is less than a rune
		to = text.RuneAfter(content, min(from+1, len(content)))
	}
	return llm.TextResult(fmt.Sprintf("[%s: bytes %d to %d of %d; %s]\n%s", q.ID, from, to, len(content),
		q.next("offset", to, to >= len(content)), content[from:to]))
}

func (q page) next(name string, at int, end bool) string {
	if end {
		return "this is the end"
	}
	return fmt.Sprintf("continue with %s %d", name, at)
}

// lines returns the page at a line. A line that is longer than a page is cut, and the text states
// the offset of its rest.
func (q page) lines(content string) llm.ToolResult {
	first := max(q.Line, 1)
	count := q.Lines
	count = cmp.Or(count, pageLines)
	at := 0
	n := 1 // line n begins at byte at
	for ; n < first; n++ {
		i := strings.IndexByte(content[at:], '\n')
		if i < 0 || at+i+1 == len(content) {
			return llm.ErrorResult(fmt.Sprintf("%s has %d lines; there is no line %d.", q.ID, n, first))
		}
		at += i + 1
	}
	to := at
	last := first - 1
	for last-first+1 < count && to < len(content) {
		end := len(content)
		if i := strings.IndexByte(content[to:], '\n'); i >= 0 {
			end = to + i + 1
		}
		if end-at > pageBytes {
			break
		}
		to = end
		last++
	}
	if last < first { // not even one line fits
		to = text.RuneBefore(content, at+pageBytes)
		return llm.TextResult(fmt.Sprintf("[%s: the first %d bytes of line %d, which is longer than a page; continue with offset %d]\n%s", q.ID, to-at, first, to, content[at:to]))
	}
	return llm.TextResult(fmt.Sprintf("[%s: lines %d to %d; %s]\n%s", q.ID, first, last, q.next("line", last+1, to >= len(content)), content[at:to]))
}

// search returns the matching lines with their numbers.
func (q page) search(content string) llm.ToolResult {
	re, err := regexp.Compile(q.Pattern)
	if err != nil {
		return llm.ErrorResult(fmt.Sprintf("The pattern cannot be read: %v. It is a regular expression of RE2; write \\ before what is meant literally, as in \\( or \\.", err))
	}
	most := pageMatches
	if q.Lines > 0 {
		most = min(q.Lines, pageMatches)
	}
	var b strings.Builder
	found := 0
	more := matches(&b, re, content, "", q.Line, most, &found)
	switch {
	case found == 0:
		return llm.TextResult(fmt.Sprintf("[%s: no line matches, from line %d on]", q.ID, max(q.Line, 1)))
	case more > 0:
		return llm.TextResult(fmt.Sprintf("[%s: %d lines that match; there are more, continue with line %d]\n%s",
			q.ID, found, more, b.String()))
	}
	return llm.TextResult(fmt.Sprintf("[%s: %d %s; there are no more]\n%s", q.ID, found, text.Plural(found, "line that matches", "lines that match"),
		b.String()))
}
