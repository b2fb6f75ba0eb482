package eval

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/text"
)

// output.go: a report as text, JUnit and Markdown. Texts of runs are foreign: control characters
// are removed.

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", r.Suite, r.ID)
	r.matrix(&b)
	for i := range r.Variants {
		r.Variants[i].summary(&b, r.width())
	}
	r.failures(&b)
	r.ends(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// width is the width of the column with names.
func (r *Report) width() int {
	width := 4
	for _, v := range r.Variants {
		width = max(width, utf8.RuneCountInString(v.Name))
		for _, c := range v.Cases {
			width = max(width, utf8.RuneCountInString(c.ID))
		}
	}
	return width
}

// column is the width of the column of a variant.
const column = 14

// matrix writes a line a case, with a column a variant.
func (r *Report) matrix(b *strings.Builder) {
	width := r.width()
	head := fmt.Sprintf("%-*s", width, "case")
	for _, v := range r.Variants {
		head += fmt.Sprintf("  %-*s", column, v.Name)
	}
	b.WriteString(strings.TrimRight(head, " ") + "\n")

	for i, c := range r.Variants[0].Cases {
		line := fmt.Sprintf("%-*s", width, c.ID)
		for _, v := range r.Variants {
			line += fmt.Sprintf("  %-*s", column, v.Cases[i].cell())
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n")
}

// cell is the result of a case in a column.
func (c *CaseReport) cell() string {
	s := fmt.Sprintf("%d/%d", c.Passed, c.Judged)
	if c.Passed < c.Judged {
		s += " ▼"
	}
	if c.Errors > 0 {
		s += fmt.Sprintf(" %de", c.Errors)
	}
	if c.Skipped > 0 {
		s += fmt.Sprintf(" %ds", c.Skipped)
	}
	if c.Draft {
		s += " draft"
	}
	return s
}

// summary writes the rates of a variant.
func (v *VariantReport) summary(b *strings.Builder, width int) {
	fmt.Fprintf(b, "%-*s  rate %s", width, v.Name, shown(v.Rate))
	if v.Low != nil && v.High != nil {
		fmt.Fprintf(b, " (95 %%: %s to %s)", shown(v.Low), shown(v.High))
	}
	cases := 0
	for _, c := range v.Cases {
		if !c.Draft && c.Judged > 0 {
			cases++
		}
	}
	fmt.Fprintf(b, "  %d/%d, %s", v.Passed, v.Judged, counted(cases, "case"))
	if v.Cost > 0 {
		fmt.Fprintf(b, "  $%.4f", v.Cost)
	}
	b.WriteString("\n")

	for _, c := range []*Comparison{v.Versus, v.Baseline} {
		if c != nil {
			fmt.Fprintf(b, "%-*s  %s\n", width, "", c.sentence())
		}
	}
}

// sentence says how two results differ, and what could have been seen.
func (c *Comparison) sentence() string {
	s := fmt.Sprintf("against %s: %s of %s changed, difference %s", c.With, strconv.Itoa(c.Changed),
		counted(c.Cases, "case"), signed(c.Difference))
	if c.Low != nil && c.High != nil {
		s += fmt.Sprintf(" (95 %%: %s to %s)", signed(c.Low), signed(c.High))
	}
	s += fmt.Sprintf(", p %.3g", c.Either)
	switch {
	case c.Either < significance:
	case c.Detectable == nil:
		s += "; these trials cannot show a difference"
	default:
		s += fmt.Sprintf("; a drop under %.3f would mostly not have been seen", *c.Detectable)
	}
	return s
}

func signed(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%+.3f", *f)
}

func counted(n int, word string) string {
	return fmt.Sprintf("%d %s", n, text.Plural(n, word, word+"s"))
}

// failures writes why trials did not pass, by variant and case.
func (r *Report) failures(b *strings.Builder) {
	first := true
	for _, v := range r.Variants {
		for _, c := range v.Cases {
			for _, f := range c.Failures {
				if first {
					b.WriteString("\n")
					first = false
				}
				fmt.Fprintf(b, "%s (%s): %s: %s\n", c.ID, v.Name, counted(f.Trials, "trial"), f.sentence(300))
			}
		}
	}
}

// sentence is the check and the reason, in one line of at most so many characters.
func (f *Failure) sentence(most int) string {
	s := f.Reason
	if f.Check != "" {
		s = f.Check + ": " + s
	}
	return text.Clip(visible(s), most)
}

// visible returns a text without characters that could control a terminal or break a document.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError:
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // the direction of text
			return -1
		}
		return r
	}, s)
}

// ends writes the gates that do not hold, and what stopped the eval.
func (r *Report) ends(b *strings.Builder) {
	b.WriteString("\n")
	for _, c := range r.Changes {
		fmt.Fprintf(b, "changed: %s (%s): %s, was %s\n", c.Case, c.Variant, c.Is, cmp.Or(c.Was, "not there"))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(b, "warning: %s\n", visible(text))
	}
	if r.Errors+r.Skipped > 0 {
		fmt.Fprintf(b, "%s without a verdict, %d skipped: they are in no rate\n", counted(r.Errors, "trial"), r.Skipped)
	}
	if r.Unpriced > 0 {
		fmt.Fprintf(b, "%s of unknown cost\n", counted(r.Unpriced, "trial"))
	}
	for _, g := range r.Gates {
		if !g.Pass {
			fmt.Fprintf(b, "gate: %s: %s\n", g.Name, g.Text)
		}
	}
	fmt.Fprintf(b, "%s\n", r.conclusion())
}

// conclusion is the last line of the report.
func (r *Report) conclusion() string {
	failed := 0
	for _, g := range r.Gates {
		if !g.Pass {
			failed++
		}
	}
	switch {
	case r.Stopped != "":
		return "stopped: " + r.Stopped
	case r.TooManyErrors:
		return "failed: more trials without a verdict than allowed"
	case failed > 0:
		return fmt.Sprintf("failed: %d of %s", failed, counted(len(r.Gates), "gate"))
	}
	return fmt.Sprintf("passed: %s", counted(len(r.Gates), "gate"))
}

// junitSuites, junitSuite and junitCase are the form of JUnit: a suite a variant.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitFault `xml:"failure"`
	Error   *junitFault `xml:"error"`
	Skipped *junitFault `xml:"skipped"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report in the form of JUnit. A case below its gate is a failure, a case with
// a trial without a verdict an error, and a draft or a case that did not run is skipped.
func (r *Report) JUnit(w io.Writer) error {
	out := junitSuites{Name: r.Suite}
	for i := range r.Variants {
		out.Suites = append(out.Suites, r.junit(&r.Variants[i]))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Report) junit(v *VariantReport) junitSuite {
	s := junitSuite{Name: r.Suite + "." + v.Name}
	for i := range v.Cases {
		c := &v.Cases[i]
		one := junitCase{
			Name:  c.ID,
			Class: r.Suite + "." + v.Name,
			Time:  strconv.FormatFloat(c.Means["time"]*float64(c.Judged), 'f', 3, 64),
		}
		fault := &junitFault{Message: c.cell(), Text: c.reasons()}
		switch {
		case c.Errors > 0:
			one.Error = fault
			s.Errors++
		case c.Draft || c.Judged == 0:
			one.Skipped = fault
			s.Skipped++
		case r.isBelow(c, v.Name):
			one.Failure = fault
			s.Failures++
		}
		s.Tests++
		s.Cases = append(s.Cases, one)
	}
	return s
}

// isBelow reports whether the gate of a case does not hold. Without such a gate, a case that never
// passes counts as below.
func (r *Report) isBelow(c *CaseReport, variant string) bool {
	name := fmt.Sprintf("case %s (%s)", c.ID, variant)
	i := slices.IndexFunc(r.Gates, func(g GateReport) bool { return g.Name == name })
	if i >= 0 {
		return !r.Gates[i].Pass
	}
	return c.Passed == 0
}

// reasons are the failures of a case, a line each.
func (c *CaseReport) reasons() string {
	var lines []string
	for _, f := range c.Failures {
		lines = append(lines, fmt.Sprintf("%s: %s", counted(f.Trials, "trial"), f.sentence(1000)))
	}
	return strings.Join(lines, "\n")
}

// mostMarkdown is the longest report that the summary of a job takes.
const mostMarkdown = 60_000

// Markdown writes the report as Markdown of at most 60,000 characters, the worst cases first.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s: %s\n\n", r.Suite, r.conclusion())
	b.WriteString("| variant | rate | 95 % | trials | cost |\n|---|---|---|---|---|\n")
	for _, v := range r.Variants {
		fmt.Fprintf(&b, "| %s | %s | %s to %s | %d/%d | $%.4f |\n", v.Name, shown(v.Rate), shown(v.Low), shown(v.High),
			v.Passed, v.Judged, v.Cost)
	}
	for _, v := range r.Variants {
		for _, c := range []*Comparison{v.Versus, v.Baseline} {
			if c != nil {
				fmt.Fprintf(&b, "\n%s %s.\n", v.Name, c.sentence())
			}
		}
	}

	b.WriteString("\n| case | variant | passed | why |\n|---|---|---|---|\n")
	rows := r.rows()
	for i, row := range rows {
		if utf8.RuneCountInString(b.String())+utf8.RuneCountInString(row) > mostMarkdown-100 {
			fmt.Fprintf(&b, "\n%s more.\n", counted(len(rows)-i, "row"))
			break
		}
		b.WriteString(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rows are the rows of all cases, the worst first.
func (r *Report) rows() []string {
	type row struct {
		text string
		rate float64
	}
	var all []row
	for _, v := range r.Variants {
		for _, c := range v.Cases {
			rate := float64(c.Passed) / float64(max(c.Judged, 1))
			why := ""
			if len(c.Failures) > 0 {
				why = escaped(c.Failures[0].sentence(300))
			}
			all = append(all, row{fmt.Sprintf("| %s | %s | %s | %s |\n", c.ID, v.Name, c.cell(), why), rate})
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(a.rate, b.rate) })
	var out []string
	for _, one := range all {
		out = append(out, one.text)
	}
	return out
}

// escaped returns a text that Markdown shows unchanged.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]<>()#+!|~&", r) {
			b.WriteRune('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
