package file

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// change is the effect of an edit on some lines, as a diff shows it.
type change struct {
	Line int    `json:"line"` // the first changed line, counted in the text after the edit
	Old  string `json:"old"`
	New  string `json:"new"`
}

const (
	changeBytes  = 2000 // limit for one side of a change
	changesBytes = 16 << 10
)

// note records the change of text[from:to] to fresh as whole lines. line is the line number of
// from.
func (e *editor) note(line, from, to int, fresh []byte) {
	if e.shown > changesBytes {
		e.more++
		return
	}
	start := bytes.LastIndexByte(e.text[:from], '\n') + 1
	end := len(e.text)
	if i := bytes.IndexByte(e.text[to:], '\n'); i >= 0 {
		end = to + i
	}

	// If whole lines replace whole lines, the next line is unchanged.
	wholeFresh := bytes.HasSuffix(fresh, []byte("\n")) || len(fresh) == 0 && from == start
	if e.text[to-1] == '\n' && wholeFresh {
		end = to - 1
	}

	before := e.text[start:from]
	after := e.text[min(to, end):end]
	c := change{Line: line, Old: clipped(e.text[start:end])}
	joined := bytes.Join([][]byte{clipTail(before), clipBytes(fresh), clipBytes(after)}, nil)
	switch {
	case to > end: // the last \n of both sides is left out
		c.New = clipped(bytes.TrimSuffix(joined, []byte("\n")))
	default:
		c.New = clipped(joined)
	}
	e.shown += len(c.Old) + len(c.New)
	e.changes = append(e.changes, c)
}

// write writes c in the form of a diff.
func (c change) write(b *strings.Builder) {
	fmt.Fprintf(b, "@@ line %d @@\n", c.Line)
	for _, side := range []struct{ mark, text string }{{"-", c.Old}, {"+", c.New}} {
		if side.text == "" {
			continue
		}
		for l := range strings.SplitSeq(side.text, "\n") {
			b.WriteString(side.mark + strings.TrimSuffix(l, "\r") + "\n")
		}
	}
}

// clipBytes and clipTail limit how much of a long changed line is copied, to its beginning and its
// end.
func clipBytes(b []byte) []byte { return b[:min(len(b), 2*changeBytes)] }

func clipTail(b []byte) []byte { return b[max(0, len(b)-2*changeBytes):] }

// clipped returns b as text of at most changeBytes bytes.
func clipped(b []byte) string {
	if len(b) <= changeBytes {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return strings.ToValidUTF8(string(b[:runeStart(b, changeBytes)]), "\uFFFD") + "…"
}

// near returns what an old text that was not found may refer to: lines that differ only in white
// space, or else the line most similar to its longest line.
func (e *editor) near(one edit, index int) string {
	if strings.ContainsRune(one.Old, utf8.RuneError) {
		return "It has \uFFFD, by which file_read shows bytes that are not UTF-8; use a part of the text without it"
	}
	lines := bytes.Split(e.text, []byte("\n"))
	wanted := strings.Split(strings.Trim(one.Old, "\r\n"), "\n")
	if at := spaced(lines, wanted); at >= 0 {
		there := bytes.Join(lines[at:at+len(wanted)], []byte("\n"))
		return fmt.Sprintf("Line %s only in white space; there it is: %s", differs(at+1, len(wanted)), quoted(there))
	}

	// The longest line is the least likely to occur by chance.
	anchor := 0
	best := 0
	for i, w := range wanted {
		if n := len(strings.TrimSpace(w)); n > best {
			anchor = i
			best = n
		}
	}
	if at := likest(lines, strings.TrimSpace(wanted[anchor])); at >= 0 {
		from := max(0, at-anchor)
		to := min(len(lines), from+min(len(wanted), 10))
		return fmt.Sprintf("The nearest is in line %d: %s", from+1, quoted(bytes.Join(lines[from:to], []byte("\n"))))
	}
	if index > 0 {
		return "Nothing there is like it, after the edits before it; read the file first"
	}
	return "Nothing there is like it; read the file first"
}

func differs(line, n int) string {
	if n == 1 {
		return fmt.Sprintf("%d differs", line)
	}
	return fmt.Sprintf("%d and the lines after it differ", line)
}

func quoted(b []byte) string {
	if most := 600; len(b) > most {
		b = append(bytes.Clone(b[:runeStart(b, most)]), "…"...)
	}
	return fmt.Sprintf("%q", strings.ReplaceAll(string(b), "\r", ""))
}

// spaced returns the index in lines where the wanted lines begin, ignoring white space. -1 means
// not found.
func spaced(lines [][]byte, wanted []string) int {
	if len(wanted) > 200 {
		return -1
	}
	lines = lines[:min(len(lines), comparedLines)]
	plain := make([]string, len(wanted))
	for i, w := range wanted {
		plain[i] = strings.Join(strings.Fields(w), " ")
	}
	for at := 0; at+len(plain) <= len(lines); at++ {
		i := 0
		for i < len(plain) && strings.Join(strings.Fields(string(lines[at+i])), " ") == plain[i] {
			i++
		}
		// Empty lines alone would fit at the first empty line of any file.
		if i == len(plain) && strings.Join(plain, "") != "" {
			return at
		}
	}
	return -1
}

const (
	comparedLines = 50_000 // lines that are compared with an old text that was not found
	comparedBytes = 400    // bytes compared of each line
)

// likest returns the index of the line most similar to wanted, by the number of shared letter
// pairs. -1 means that no line shares half of them.
func likest(lines [][]byte, wanted string) int {
	best := -1
	score := 0.5
	pairs := pairsOf(wanted)
	for i, l := range lines[:min(len(lines), comparedLines)] {
		l = bytes.TrimSpace(l)
		// A line so much longer cannot share half of its pairs.
		if len(l) > 3*len(wanted)+20 || len(pairs) == 0 {
			continue
		}
		other := pairsOf(string(l))
		common := 0
		for p, n := range other {
			common += min(n, pairs[p])
		}
		if s := 2 * float64(common) / float64(total(pairs)+total(other)); s > score {
			best = i
			score = s
		}
	}
	return best
}

func pairsOf(s string) map[[2]byte]int {
	s = strings.ToLower(s[:min(len(s), comparedBytes)])
	m := map[[2]byte]int{}
	for i := 1; i < len(s); i++ {
		m[[2]byte{s[i-1], s[i]}]++
	}
	return m
}

func total(m map[[2]byte]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}
