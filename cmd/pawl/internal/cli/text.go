package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/term"
)

// Indented indents all lines after the first.
func Indented(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") }

// Folded breaks a line between words into at most most lines of width columns. It cuts the rest.
func Folded(s string, width, most int) []string {
	var out []string
	for _, l := range term.Text(0, s).Wrap(width) {
		out = append(out, l.String())
	}
	if len(out) > most {
		out = append(out[:most-1], Line(strings.Join(out[most-1:], " "), width))
	}
	return out
}

// Short formats a duration in a few characters.
func Short(d time.Duration) string {
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

// Totals describes the usage of a run in one line.
func Totals(s pawl.Spent, took time.Duration) string {
	u := s.Usage
	t := fmt.Sprintf("%s, %s, %s", Count(s.Requests, "request"), Count(s.Rounds, "round"), Count(s.Calls, "call"))
	if u.Total() > 0 { // some servers report no usage
		t += fmt.Sprintf(", %s tokens in, %s out", Grouped(u.Input), Grouped(u.Output))
	}
	switch {
	case u.Cost > 0 && !u.CostKnown():
		t += ", at least " + Dollars(u.Cost)
	case u.Cost > 0:
		t += ", " + Dollars(u.Cost)
	}
	return t + ", " + Short(took)
}

// Dollars formats an amount in dollars with two decimals, or with two significant digits if it is
// below 0.1.
func Dollars(c float64) string {
	digits := 2
	for least := 0.1; c < least && digits < 8; least /= 10 {
		digits++
	}
	return "$" + strconv.FormatFloat(c, 'f', digits, 64)
}

// QuotedWord quotes s for a shell.
func QuotedWord(s string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("_-./", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Visible returns s with control characters made visible, so that text of a model or a tool cannot
// control the terminal.
func Visible(s string) string { return term.Visible(s) }

// Harmless is Visible for an answer that programs may read: JSON stays JSON of the same value.
func Harmless(s string) string {
	if !json.Valid([]byte(s)) {
		return Visible(s)
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\r': // white space between values
		case term.Hidden(r):
			// JSON escapes are units of UTF-16.
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Exact is Visible for questions: all characters that are not seen are escapes.
func Exact(s string) string { return term.Exact(s) }

// WholeLine returns all of s on one line, as Exact. Questions about calls use it: a person approves
// only what was shown.
func WholeLine(s string) string {
	return strings.NewReplacer("\n", "↵", "\t", " ").Replace(Exact(strings.TrimSpace(s)))
}

// Line returns s as one line of at most width columns, with control characters made visible.
func Line(s string, width int) string {
	s = strings.TrimSpace(s)
	width = max(width, 1)
	if len(s) > 8*width { // a long text is cut first, which keeps the work small
		n := 8 * width
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return term.Cut(strings.NewReplacer("\n", "↵", "\t", " ").Replace(Visible(s)), width)
}

// Style colours text if it is on. The zero Style is off.
type Style struct{ On bool }

func (s Style) paint(style term.Style, text string) string {
	return term.Text(style, text).Render(s.On)
}

// Bold returns t in bold.
func (s Style) Bold(t string) string { return s.paint(term.Bold, t) }

// Dim returns t dimmed.
func (s Style) Dim(t string) string { return s.paint(term.Dim, t) }

// Red returns t in red.
func (s Style) Red(t string) string { return s.paint(term.Red, t) }

// Green returns t in green.
func (s Style) Green(t string) string { return s.paint(term.Green, t) }

// Yellow returns t in yellow.
func (s Style) Yellow(t string) string { return s.paint(term.Yellow, t) }

// Grouped formats n with a comma between thousands.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a number with its noun: "1 call", "2 calls".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Grouped(n) + " " + what
}

// FirstSentence returns the first sentence of s, or its text up to the first colon, cut to width
// columns.
func FirstSentence(s string, width int) string {
	s, _, _ = strings.Cut(s, "\n")
	if i := strings.IndexAny(s, ".:"); i > 0 {
		s = s[:i]
	}
	return Line(s, width)
}
