package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/eval"
)

// forty are the files of a suite with forty cases, and of two scripted models: the second one
// changes three of them.
func forty() (files map[string]string, changed []string) {
	var cases, first, second strings.Builder
	changed = []string{"case-07", "case-19", "case-33"}
	turn := func(asked, content string) string {
		return fmt.Sprintf(`{"asked": %q, "message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1",
			"name": "file_write", "args": {"path": "note.txt", "content": %q}}]}},`, asked, content)
	}
	for i := range 40 {
		id := fmt.Sprintf("case-%02d", i)
		fmt.Fprintf(&cases, `  - id: %s
    input: "Note %s."
    answers: [{tool: file_write, do: approve}]
    checks: [{files: {at: {note.txt: {equals: %[1]s}}}}, {calls: {count: {file_write: {max: 1}}}}]
`, id, id)
		first.WriteString(turn(id, id))
		content := id
		if strings.Contains(strings.Join(changed, " "), id) {
			content = "not " + id + strings.Repeat(" and more", 40)
		}
		second.WriteString(turn(id, content))
	}
	script := func(turns string) string {
		return `{"turns": [{"first": [` + strings.TrimSuffix(turns, ",") + `]},
			{"message": {"role": "assistant", "parts": [{"type": "text", "text": "Done."}]}}]}`
	}
	return map[string]string{
		"clerk.yaml":  "agent: clerk\nmodel: script:first.json\ntools: [file]\n",
		"first.json":  script(first.String()),
		"second.json": script(second.String()),
		"s.eval.yaml": "eval: s\nagent: clerk.yaml\ntrials: 2\ncases:\n" + cases.String() +
			"variants: [{name: now}, {name: other, model: 'script:second.json'}]\n",
	}, changed
}

// open opens the eval of a report.
func open(t *testing.T, r *eval.Report) *eval.Eval {
	t.Helper()
	e, err := eval.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCompare names the three of forty cases that another model changes, with their first call that
// differs, in lines that a terminal of 80 columns shows. An eval does not differ from itself.
func TestCompare(t *testing.T) {
	t.Parallel()
	files, want := forty()
	e := open(t, run(t, folder(t, files), &eval.Options{}))
	now, err := e.Only("now")
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.Only("other")
	if err != nil {
		t.Fatal(err)
	}

	changes, err := eval.Compare(now, other)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes.Variants[0].Cases {
		got = append(got, c.Case)
		isFirst := c.Call != nil && c.Call.Number == 1 && strings.Contains(c.Call.Before, `"`+c.Case+`"`) &&
			strings.Contains(c.Call.After, "not "+c.Case)
		if !isFirst || c.Before.Passed != 2 || c.After.Passed != 0 || len(c.After.Failures) != 1 {
			t.Errorf("got %+v of %s", c, c.Case)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if c := changes.Variants[0].Comparison; c.Changed != 3 || c.Cases != 40 || c.Either != 0.25 {
		t.Errorf("got %+v, want 3 of 40 and p 0.25", c)
	}

	var text strings.Builder
	if err := changes.Text(&text, 80); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	for _, part := range []string{"now and other: ", "3 of 40 cases changed", "case-07: 2/2 → 0/2", "call 1", "was file_write{"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in\n%s", part, text.String())
		}
	}

	equal, err := eval.Compare(now, now)
	if err != nil || len(equal.Variants[0].Cases) != 0 {
		t.Errorf("an eval differs from itself: %v, %+v", err, equal)
	}
}

// TestMatrix runs the product of two axes without the excluded one, and finds faults of a matrix.
func TestMatrix(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["worse.json"] = `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "text", "text": "It is written."}]}}]}`
	suite := files["s.eval.yaml"]
	matrix := `matrix:
  model: [{as: good, value: "script:turns.json"}, {as: bad, value: "script:worse.json"}]
  instructions: [{as: long, value: "You keep notes in files."}, {as: none, value: ""}]
  exclude: [{model: bad, instructions: none}]
`
	files["s.eval.yaml"] = suite + matrix
	r := run(t, folder(t, files), &eval.Options{})
	got := ""
	for _, v := range r.Variants {
		got += fmt.Sprintf("%s %d/%d, ", v.Name, v.Passed, v.Judged)
	}
	if want := "long-good 2/2, long-bad 0/2, none-good 2/2, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	for _, row := range []struct{ from, to, want string }{
		{"exclude: [{model: bad,", "exclude: [{modell: bad,", "did you mean model?"},
		{"model: bad, instructions: none", "model: bat", "did you mean bad?"},
		{"[{model: bad, instructions: none}]", "[{model: bad}, {model: good}]", "the matrix has no variant"},
		{"[{model: bad, instructions: none}]", "[{}]", "exclude every variant"},
		{"as: bad", "as: good", "two values are named good"},
		{"as: bad", "as: b/d", "is no word"},
		{"  model: [", "  modell: [", "did you mean model?"},
		{"matrix:", "variants: [{name: x}]\nmatrix:", "both state the variants"},
	} {
		files["s.eval.yaml"] = suite + strings.Replace(matrix, row.from, row.to, 1)
		_, err := eval.Load(filepath.Join(folder(t, files), "s.eval.yaml"), nil)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.to, err, row.want)
		}
	}
}

// TestCompareOther compares evals whose cases are not the same.
func TestCompareOther(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	dir := folder(t, files)
	before := open(t, run(t, dir, &eval.Options{}))
	change(t, dir, "s.eval.yaml", `"70."`, `"Anna"`)
	after := open(t, run(t, dir, &eval.Options{}))
	changes, err := eval.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if v := changes.Variants[0]; v.Comparison != nil || fmt.Sprint(v.Edited) != "[note]" || len(v.Cases) != 0 {
		t.Errorf("an edited case: got %+v", v)
	}

	change(t, dir, "s.eval.yaml", "id: note", "id: note-2")
	renamed := open(t, run(t, dir, &eval.Options{}))
	changes, err = eval.Compare(before, renamed)
	if v := changes.Variants[0]; err != nil || fmt.Sprint(v.Added, v.Removed) != "[note-2] [note]" {
		t.Errorf("a renamed case: got %v, %+v", err, v)
	}

	change(t, dir, "s.eval.yaml", "eval: s", "eval: t")
	others := open(t, run(t, dir, &eval.Options{}))
	if _, err := eval.Compare(before, others); err == nil || !strings.Contains(err.Error(), "suites s and t") {
		t.Errorf("another suite: got %v", err)
	}
}

// TestOpen reads the trials of a case, and refuses an eval that has not ended.
func TestOpen(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["turns.json"] = strings.Replace(files["turns.json"], "Anna 70", "Anna \\u001b[31m700", 1)
	dir := folder(t, files)
	r := run(t, dir, &eval.Options{})
	e := open(t, r)
	trials, err := e.Trials("note")
	if err != nil || len(trials) != 2 || len(trials[0].Calls) != 1 || trials[0].Verdict != "fail" {
		t.Fatalf("got %v, %+v", err, trials)
	}
	var text strings.Builder
	if err := trials[0].Text(&text, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"note by now, trial 1: fail", "call 1   file_write{", "check    files: FAIL note.txt: ", "run      note.now.1 "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("a control character is shown: %q", text.String())
	}
	if _, err := e.Trials("nothing"); err == nil || !strings.Contains(err.Error(), "it has note") {
		t.Errorf("another case: got %v", err)
	}
	again, err := e.Only("now")
	if err != nil || again.Report.Status() != r.Status() {
		t.Errorf("got %v, status %d, want %d", err, again.Report.Status(), r.Status())
	}

	if err := os.Remove(filepath.Join(r.Dir, "report.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.Open(r.Dir); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("an eval that was cut: got %v", err)
	}
}
