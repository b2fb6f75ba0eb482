package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	piece        = 64 << 10 // a longer line is examined in pieces
	shownLine    = 300      // bytes shown of a matching line
	shownContext = 200      // bytes shown of a context line
)

// newMatcher compiles the pattern to find in a line.
func newMatcher(pattern string, literal, ignoreCase bool) (*regexp.Regexp, error) {
	// Models copy a line with its end.
	pattern = strings.TrimRight(pattern, "\n")
	if literal && strings.Contains(pattern, "\n") {
		return nil, toolrun.Refuse("pattern: it has more than one line, and is looked for within one line; " +
			"look for its most telling line, with context")
	}
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, toolrun.Refuse("pattern: %s in %q; it is a regular expression of RE2, without look-around and "+
			"back-references. Write \\ before a literal character, as in \\( or \\., or set literal",
			bad.Code, bad.Expr)
	}
	return re, err
}

// binaryError reports that a file turned out not to be text.
type binaryError struct{ kind string }

func (e *binaryError) Error() string { return "not text: it is " + e.kind }

// lines searches the lines of f after line number from.
func (q *searching) lines(ctx context.Context, name string, f *os.File, from int) error {
	r := bufio.NewReaderSize(f, piece)
	head, err := r.Peek(headBytes)
	if err != nil && err != io.EOF {
		return err
	}
	if kind := binary(head); kind != "" {
		return &binaryError{kind}
	}

	l := lineReader{file: f, buffer: r}
	var before []match // the last lines, for context
	follow := 0        // number of context lines still to show after the last match
	for {
		if l.line&0xff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		text, at, err := l.next(ctx, q.matcher)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		// Earlier lines were in the previous answer. They are read again, as context and to count
		// lines.
		matched := at != nil && l.line > from
		switch {
		case matched:
			if err := q.add(name, l.line, cut(text, at, shownLine), before); err != nil {
				return err
			}
			before = before[:0]
			follow = q.context
		case follow > 0:
			follow--
			q.addFollowing(l.line, cut(text, nil, shownContext))
		case q.context > 0:
			if len(before) == q.context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, match{Line: l.line, Text: q.valid(cut(text, nil, shownContext))})
		}
	}
}

// add writes a match, with the heading of its file and the lines before it.
func (q *searching) add(name string, line int, text string, before []match) error {
	if len(q.data.Matches) == q.limit {
		return q.fullAt(name)
	}

	// The lines that follow a match are written without a check, so that there must be room for
	// them.
	text = q.valid(text)
	size := len(name) + len(text) + 40
	for _, b := range before {
		size += len(b.Text) + 12
	}
	if q.text.Len()+size+q.context*(shownContext+20) > searchBytes && len(q.data.Matches) > 0 {
		return q.fullAt(name)
	}

	if q.heading != name {
		q.text.WriteString(plain(name) + "\n")
		q.heading = name
		q.shown = 0
	}
	if q.context > 0 && q.shown > 0 && line-len(before) > q.shown+1 {
		q.text.WriteString("--\n") // lines are left out
	}
	for _, b := range before {
		q.text.WriteString(strconv.Itoa(b.Line) + "- " + b.Text + "\n")
	}
	q.text.WriteString(strconv.Itoa(line) + ": " + text + "\n")
	q.shown = line
	q.data.Matches = append(q.data.Matches, match{name, line, text})
	return nil
}

// fullAt records that the next page starts after the last match: in its own file, or after that
// file if the current match is in another file.
func (q *searching) fullAt(name string) error {
	last := q.data.Matches[len(q.data.Matches)-1]
	if last.Path != name {
		return q.full(last.Path, 0)
	}
	return q.full(name, last.Line)
}

// addFollowing writes a line that follows a match.
func (q *searching) addFollowing(line int, text string) {
	q.text.WriteString(strconv.Itoa(line) + "- " + q.valid(text) + "\n")
	q.shown = line
}

// valid returns text as valid UTF-8. The answer reports where it was not.
func (q *searching) valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	q.lossy = true
	return strings.ToValidUTF8(text, "\uFFFD")
}

// cut returns text shortened to most bytes, including the match if there is one.
func cut(text []byte, at []int, most int) string {
	if len(text) <= most {
		return string(text)
	}
	from := 0
	if at != nil && at[0] > most/2 {
		from = runeStart(text, at[0]-most/4)
	}
	to := runeStart(text, min(len(text), from+most))
	shown := string(text[from:to])
	if from > 0 {
		shown = "…" + strings.TrimPrefix(shown, "…")
	}
	if to < len(text) {
		shown += "…"
	}
	return shown
}
