package term

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Editor is a text under edit, with several lines, a history and completion. It handles keys and
// returns lines; it does not use a terminal. The zero value is an empty text without completion. An
// Editor must not be used concurrently.
type Editor struct {
	// Complete returns the completions of the text before the cursor. Each completion replaces all
	// of that text. A nil Complete means no completion.
	Complete func(before string) []string

	text    string
	at      int // cursor, in bytes
	history []string
	past    int    // index into history; len(history) means the draft
	draft   string // the text that was typed before the history was opened
	choices []string
}

// Text returns the text.
func (e *Editor) Text() string { return e.text }

// Set replaces the text and moves the cursor to its end.
func (e *Editor) Set(text string) {
	e.text = text
	e.at = len(text)
	e.choices = nil
}

// Take returns the text, adds it to the history and empties the editor.
func (e *Editor) Take() string {
	text := e.text
	e.Remember(text)
	e.Set("")
	return text
}

// Remember adds text to the history, unless it is blank or equal to the newest entry.
func (e *Editor) Remember(text string) {
	if strings.TrimSpace(text) != "" && (len(e.history) == 0 || e.history[len(e.history)-1] != text) {
		e.history = append(e.history, text)
	}
	e.past = len(e.history)
	e.draft = ""
}

// Key handles a key and reports whether it is an editing key. Enter is not: the caller decides its
// meaning.
func (e *Editor) Key(k Key) bool {
	if k.Name != "tab" {
		e.choices = nil
	}
	return e.change(k) || e.move(k.Name)
}

// change handles the keys that change the text.
func (e *Editor) change(k Key) bool {
	before := e.text[:e.at]
	after := e.text[e.at:]
	start, end := e.line()

	switch k.Name {
	case "text", "paste":
		e.insert(k.Text)
	case "newline":
		e.insert("\n")
	case "backspace":
		e.remove(lastLetter(before), e.at)
	case "delete", "ctrl-d":
		letter, _, _ := first(after)
		e.remove(e.at, e.at+len(letter))
	case "delete-word", "ctrl-w":
		e.remove(e.at-wordLeft(before), e.at)
	case "delete-word-right":
		e.remove(e.at, e.at+wordRight(after))
	case "ctrl-u":
		e.remove(start, e.at)
	case "ctrl-k":
		if end == e.at && end < len(e.text) {
			end++ // the line break itself
		}
		e.remove(e.at, end)
	case "tab":
		e.complete()
	default:
		return false
	}
	return true
}

// move handles the keys that move the cursor.
func (e *Editor) move(key string) bool {
	before := e.text[:e.at]
	after := e.text[e.at:]
	start, end := e.line()

	switch key {
	case "left", "ctrl-b":
		e.at = lastLetter(before)
	case "right", "ctrl-f":
		letter, _, _ := first(after)
		e.at += len(letter)
	case "home", "ctrl-a":
		e.at = start
	case "end", "ctrl-e":
		e.at = end
	case "word-left":
		e.at -= wordLeft(before)
	case "word-right":
		e.at += wordRight(after)

	case "up", "ctrl-p":
		e.up(start)
	case "down", "ctrl-n":
		e.down(start, end)
	default:
		return false
	}
	return true
}

// line returns the offsets at which the line of the cursor begins and ends.
func (e *Editor) line() (start, end int) {
	start = strings.LastIndexByte(e.text[:e.at], '\n') + 1
	end = len(e.text)
	if i := strings.IndexByte(e.text[e.at:], '\n'); i >= 0 {
		end = e.at + i
	}
	return start, end
}

func (e *Editor) insert(text string) {
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
}

func (e *Editor) remove(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.at = from
}

// lastLetter returns the offset of the last grapheme cluster of s.
func lastLetter(s string) int {
	from := max(0, strings.LastIndexByte(s, '\n')) // a line break is a cluster of its own
	last := from
	rest := s[from:]
	state := -1
	for rest != "" {
		last = len(s) - len(rest)
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return last
}

func notSpace(r rune) bool { return !unicode.IsSpace(r) }

// wordLeft returns the length of the last word of s, with the space after it.
func wordLeft(s string) int {
	return len(s) - len(strings.TrimRightFunc(strings.TrimRightFunc(s, unicode.IsSpace), notSpace))
}

// wordRight returns the length of the first word of s, with the space before it.
func wordRight(s string) int {
	return len(s) - len(strings.TrimLeftFunc(strings.TrimLeftFunc(s, unicode.IsSpace), notSpace))
}

// up moves the cursor one line up. From the first line it opens the previous entry of the history.
func (e *Editor) up(start int) {
	if start > 0 {
		above := strings.LastIndexByte(e.text[:start-1], '\n') + 1
		e.at = column(e.text[above:start-1], Width(e.text[start:e.at])) + above
		return
	}
	if e.past > 0 {
		if e.past == len(e.history) {
			e.draft = e.text
		}
		e.past--
		e.Set(e.history[e.past])
	}
}

// down moves the cursor one line down. From the last line it opens the next entry of the history,
// or the draft.
func (e *Editor) down(start, end int) {
	if end < len(e.text) {
		below := e.text[end+1:]
		if i := strings.IndexByte(below, '\n'); i >= 0 {
			below = below[:i]
		}
		e.at = end + 1 + column(below, Width(e.text[start:e.at]))
		return
	}
	switch {
	case e.past < len(e.history)-1:
		e.past++
		e.Set(e.history[e.past])
	case e.past == len(e.history)-1:
		e.past++
		e.Set(e.draft)
	}
}

// column returns the byte offset of a column in a line.
func column(line string, col int) int {
	rest := line
	for rest != "" && col > 0 {
		_, more, w := first(rest)
		col -= max(w, 1)
		rest = more
	}
	return len(line) - len(rest)
}

// complete inserts the common prefix of all completions. If there are several, View lists them.
func (e *Editor) complete() {
	if e.Complete == nil {
		return
	}
	e.choices = nil
	all := e.Complete(e.text[:e.at])
	if len(all) == 0 {
		return
	}

	// As shells do: what all completions share is certain.
	common := all[0]
	for _, a := range all[1:] {
		same := 0
		for same < min(len(common), len(a)) && common[same] == a[same] {
			same++
		}
		common = common[:same]
	}
	if len(common) > e.at {
		rest := e.text[e.at:]
		e.text = common + rest
		e.at = len(common)
	}
	if len(all) > 1 {
		e.choices = slices.Clone(all)
	}
}

// View returns the text as screen lines, with prompt before the first, and the position of the
// cursor. It returns at most rows lines of text, around the cursor, and one more line for the
// completions.
func (e *Editor) View(prompt Line, width, rows int) ([]Line, Cursor) {
	indent := prompt.Width()
	lines, at := e.rows(max(width-indent, 4))
	at.Column += indent

	rows = max(rows, 1)
	if len(lines) > rows {
		from := min(max(0, at.Row-rows+1), len(lines)-rows)
		lines = lines[from : from+rows]
		at.Row -= from
	}

	lines = Indent(lines, prompt, Text(0, strings.Repeat(" ", indent)))
	if len(e.choices) > 0 {
		lines = append(lines, Text(Dim, strings.Repeat(" ", indent)+strings.Join(e.choices, "  ")))
	}
	return lines, at
}

// rows breaks the text between letters into rows of at most room columns. at is the cursor in them.
func (e *Editor) rows(room int) (rows []Line, at Cursor) {
	pos := 0
	for line := range strings.SplitSeq(e.text, "\n") {
		row := ""
		used := 0
		flush := func() {
			rows = append(rows, Text(0, row))
			row = ""
			used = 0
		}

		for rest := line; ; {
			if pos == e.at {
				if used >= room { // at the end of a full row
					flush()
				}
				at = Cursor{len(rows), used}
			}
			if rest == "" {
				break
			}
			letter, more, w := first(rest)
			if letter == "\t" {
				w = 4
			}
			if used+w > room {
				flush()
				// The cursor stands before the letter, which has moved.
				if pos == e.at {
					at = Cursor{len(rows), 0}
				}
			}
			row += letter
			used += w
			pos += len(letter)
			rest = more
		}
		flush()
		pos++ // the newline
	}
	return rows, at
}
