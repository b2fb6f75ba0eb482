package pawl

import (
	"context"
	_ "embed" // the description
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// resultRead is the name of the tool that reads artifacts.
const resultRead = "result_read"

//go:embed resultread.md
var resultReadText string

// resultReader makes the tool, once: it holds nothing of a run.
var resultReader = sync.OnceValue(func() *Tool {
	t := Func(resultRead, strings.TrimSpace(resultReadText), readResult)
	t.Effect, t.MaxResult = Read, -1 // a page is the bound
	return t
})

const (
	pageBytes   = 16 << 10 // of a page
	pageLines   = 200      // of a page, unless more are asked for
	pageMatches = 50
	matchBytes  = 300 // of a line that matches
)

// page is what the model asks for.
type page struct {
	ID      string `json:"id" jsonschema:"what is read, as the cut result names it"`
	Offset  int    `json:"offset,omitempty" jsonschema:"byte to begin at, from 0"`
	Limit   int    `json:"limit,omitempty" jsonschema:"bytes at most; 16384 if left out, and never more"`
	Line    int    `json:"line,omitempty" jsonschema:"line to begin at, from 1, instead of offset"`
	Lines   int    `json:"lines,omitempty" jsonschema:"lines at most; 200 if left out"`
	Pattern string `json:"pattern,omitempty" jsonschema:"only lines that match this regular expression, from line on"`
}

func readResult(ctx context.Context, q page) (llm.ToolResult, error) {
	v := InvocationFrom(ctx)
	if v == nil || v.pipe.task.scope.shelf == nil {
		return llm.ErrorResult("Nothing is kept here."), nil
	}
	switch {
	case q.Offset < 0 || q.Limit < 0 || q.Line < 0 || q.Lines < 0:
		return llm.ErrorResult("offset, limit, line and lines are 0 or more."), nil
	case q.Offset > 0 && (q.Line > 0 || q.Lines > 0 || q.Pattern != ""):
		return llm.ErrorResult("offset counts bytes; it does not go with line, lines or pattern."), nil
	}
	s := v.pipe.task.scope.shelf
	a, err := Artifact{}, ErrNoArtifact
	if strings.HasPrefix(q.ID, string(v.pipe.task.Run)+"/") { // a run inside a call reads its own
		a, err = s.store.Get(ctx, s.run, llm.Key(q.ID))
	}
	switch {
	case errors.Is(err, ErrNoArtifact):
		return llm.ErrorResult(fmt.Sprintf("Nothing is kept as %q. Use the id that the cut result names, such as run/1/0; if it was that, it is kept no longer: call the tool again, and ask for less.", text.Clip(q.ID, 80))), nil
	case err != nil:
		return llm.ToolResult{}, Retryable(err)
	}
	text := a.Text
	if a.Data != nil {
		if text = string(a.Data); isImage(a.MIME) || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return llm.ErrorResult(fmt.Sprintf("%s is %s of %d bytes, and no text: it cannot be read here.", q.ID, a.MIME, len(a.Data))), nil
		}
	}
	switch {
	case q.Pattern != "":
		return q.search(text), nil
	case q.Line > 0 || q.Lines > 0:
		return q.lines(text), nil
	}
	return q.bytes(text), nil
}

// bytes returns the page that begins at an offset. It begins and ends between runes.
func (q page) bytes(text string) llm.ToolResult {
	if q.Offset >= len(text) && q.Offset > 0 {
		return llm.ErrorResult(fmt.Sprintf("%s has %d bytes; there is nothing at offset %d.", q.ID, len(text), q.Offset))
	}
	limit := pageBytes
	if q.Limit > 0 {
		limit = min(q.Limit, pageBytes)
	}
	from := runeBefore(text, q.Offset)
	to := runeBefore(text, min(from+limit, len(text)))
	if to <= from { // a limit of less than a rune
		to = runeAfter(text, min(from+1, len(text)))
	}
	return llm.TextResult(fmt.Sprintf("[%s: bytes %d to %d of %d; %s]\n%s", q.ID, from, to, len(text), q.next("offset", to, to >= len(text)), text[from:to]))
}

func (q page) next(name string, at int, end bool) string {
	if end {
		return "this is the end"
	}
	return fmt.Sprintf("go on with %s %d", name, at)
}

// lines returns the page that begins at a line. A line that is too long for a page is cut, and the offset where it goes on is told.
func (q page) lines(text string) llm.ToolResult {
	first, count := max(q.Line, 1), q.Lines
	if count == 0 {
		count = pageLines
	}
	at, n := 0, 1 // where line n begins
	for ; n < first; n++ {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 || at+i+1 == len(text) {
			return llm.ErrorResult(fmt.Sprintf("%s has %d lines; there is no line %d.", q.ID, n, first))
		}
		at += i + 1
	}
	to, last := at, first-1
	for last-first+1 < count && to < len(text) {
		end := len(text)
		if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
			end = to + i + 1
		}
		if end-at > pageBytes {
			break
		}
		to = end
		last++
	}
	if last < first { // not even one
		to = runeBefore(text, at+pageBytes)
		return llm.TextResult(fmt.Sprintf("[%s: the first %d bytes of line %d, which is longer than a page; go on with offset %d]\n%s", q.ID, to-at, first, to, text[at:to]))
	}
	return llm.TextResult(fmt.Sprintf("[%s: lines %d to %d; %s]\n%s", q.ID, first, last, q.next("line", last+1, to >= len(text)), text[at:to]))
}

// search returns the lines that match, with their numbers.
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
	n, found, more := 0, 0, 0
	for l := range strings.Lines(content) {
		if n++; n < q.Line {
			continue
		}
		l = strings.TrimRight(l, "\r\n")
		at := re.FindStringIndex(l)
		if at == nil {
			continue
		}
		if found == most || b.Len() > pageBytes {
			more = n
			break
		}
		found++
		if len(l) > matchBytes { // what matches, with a little before it
			from := runeBefore(l, max(0, at[0]-matchBytes/4))
			shown := text.Clip(l[from:], matchBytes)
			if from > 0 {
				shown = "…" + shown
			}
			l = shown
		}
		fmt.Fprintf(&b, "%d: %s\n", n, l)
	}
	switch {
	case found == 0:
		return llm.TextResult(fmt.Sprintf("[%s: no line matches, from line %d on]", q.ID, max(q.Line, 1)))
	case more > 0:
		return llm.TextResult(fmt.Sprintf("[%s: %d lines that match; there are more, go on with line %d]\n%s", q.ID, found, more, b.String()))
	}
	return llm.TextResult(fmt.Sprintf("[%s: %d %s; there are no more]\n%s", q.ID, found, text.Plural(found, "line that matches", "lines that match"), b.String()))
}
