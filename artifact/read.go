package artifact

import (
	"cmp"
	"context"
	_ "embed" // the description
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

//go:embed read.md
var description string

// Reader is a Toolset with the tool result_read, which reads and searches the whole conversation:
// results that are too large for the model and are stored, and all results, calls and texts in the
// transcript, which history.Window puts away. Embed it in an implementation of pawl.Artifacts, or
// give it to an agent that stores nothing.
type Reader struct{}

var _ pawl.Toolset = Reader{}

// Tools returns result_read.
func (Reader) Tools(context.Context) ([]*pawl.Tool, error) { return []*pawl.Tool{reader()}, nil }

// reader makes the tool once, because it has no state of a run.
var reader = sync.OnceValue(func() *pawl.Tool {
	t := pawl.Func(contents.ReadTool, strings.TrimSpace(description), readResult)
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
	ID      string `json:"id,omitempty" jsonschema:"run/1/0 or index; empty: pattern searches all"`
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

	a, media, err := q.find(ctx, v)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return llm.ErrorResult(fmt.Sprintf("Nothing is kept as %q. Use the id that the cut result names, such as run/1/0, "+
			"or find it in the list with the id %s; if it was that, it is kept no longer: call the tool again, and ask for less.",
			text.Clip(q.ID, 80), contents.Index)), nil
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
	case q.ID == contents.Index && q.Offset == 0 && q.Limit == 0:
		// An id must not stand on two pages.
		q.Lines = cmp.Or(q.Lines, pageBytes)
		return q.lines(content), nil
	case q.Line > 0 || q.Lines > 0:
		return q.lines(content), nil
	}
	result := q.bytes(content)
	if q.Offset == 0 {
		result.Parts = append(result.Parts, media...)
	}
	return result, nil
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

// messages returns the conversation of a call.
func messages(ctx context.Context, v *pawl.Invocation) []llm.Message {
	if msgs := v.Messages(); len(msgs) > 0 {
		return msgs
	}
	return conversation.Of(ctx) // another process executes the call
}

// find returns the text with the id of q, and the media of a result. The error is pawl.ErrNotFound
// if there is none.
func (q page) find(ctx context.Context, v *pawl.Invocation) (a pawl.Artifact, media []llm.Part, err error) {
	msgs := messages(ctx, v)
	if q.ID == contents.Index {
		return pawl.Artifact{Text: contents.IndexOf(msgs)}, nil, nil
	}

	a, err = v.Artifact(ctx, llm.Key(q.ID))
	if !errors.Is(err, pawl.ErrNotFound) {
		return a, nil, err
	}
	for _, t := range contents.Texts(msgs) {
		if t.ID != q.ID {
			continue
		}
		a.Text = t.Text
		err = nil
		if t.Result != nil {
			media = mediaOf(t.Result)
		}
	}
	return a, media, err
}

// mediaOf returns the parts of a result that are media.
func mediaOf(r *llm.ToolResult) (media []llm.Part) {
	for _, p := range r.Parts {
		if _, ok := p.(llm.Media); ok {
			media = append(media, p)
		}
	}
	return media
}

// searchAll returns the matching lines of the whole conversation.
func (q page) searchAll(ctx context.Context, v *pawl.Invocation) llm.ToolResult {
	re, err := regexp.Compile(q.Pattern)
	if err != nil || q.Pattern == "" {
		return llm.ErrorResult("Give an id, or a pattern (a regular expression of RE2) to search the whole conversation.")
	}
	var b strings.Builder
	found := 0
	for _, t := range contents.Texts(messages(ctx, v)) {
		// The run may have stored the whole of a result that it has cut.
		if t.Own != "" && t.Result != nil && t.Result.LeftOut > 0 {
			if a, err := v.Artifact(ctx, llm.Key(t.ID)); err == nil && a.Data == nil {
				t.Own = a.Text
			}
		}
		if matches(&b, re, t.Own, t.ID+" line ", 1, pageMatches, &found) > 0 {
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
		return llm.TextResult(fmt.Sprintf("[%s: the first %d bytes of line %d, which is longer than a page; "+
			"continue with offset %d]\n%s", q.ID, to-at, first, to, content[at:to]))
	}
	return llm.TextResult(fmt.Sprintf("[%s: lines %d to %d; %s]\n%s", q.ID, first, last, q.next("line", last+1, to >= len(content)), content[at:to]))
}

// search returns the matching lines with their numbers.
func (q page) search(content string) llm.ToolResult {
	re, err := regexp.Compile(q.Pattern)
	if err != nil {
		return llm.ErrorResult(fmt.Sprintf("The pattern cannot be read: %v. It is a regular expression of RE2; "+
			"write \\ before what is meant literally, as in \\( or \\.", err))
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
