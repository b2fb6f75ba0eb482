package eval_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/internal/test/corpora"
)

const adkSet = `{"evalSetId": "hotel", "eval_cases": [
 {"evalId": "book", "conversation": [{"userContent": {"role": "user", "parts": [{"text": "Book a room."}]},
   "finalResponse": {"parts": [{"text": "Booked."}]},
   "intermediateData": {"toolUses": [{"name": "hotel.book", "args": {"$room": "${A}", "evalId": 7}}]}}]},
 {"eval_id": "two turns", "conversation": [
   {"user_content": {"parts": [{"text": "Hello."}]}, "intermediate_data": {"tool_uses": []}},
   {"user_content": {"parts": [{"text": "Book."}]}, "intermediate_data": {"tool_uses": [{"name": "book", "args": {}}]}}]},
 {"eval_id": "talk", "conversation": [{"user_content": {"parts": [{"text": "Hi."}]}, "final_response": {"parts": [{"text": "Hi!"}]}}]},
 {"eval_id": "empty", "conversation": []}]}`

const foo = `prompts: ["Translate {{text}} into {{ lang }}.", "file://prompt.txt"]
providers: ["openai:chat:gpt-5-mini", {id: "anthropic:messages:claude-x"}, "exec:model.sh"]
defaultTest: {vars: {lang: German}, assert: [{type: latency, threshold: 5000}]}
tests:
  - description: greets
    vars: {text: "Hello"}
    assert:
      - {type: icontains, value: hallo}
      - {type: not-contains, value: Hello}
      - {type: contains-any, value: [Hallo, Servus]}
  - vars: {text: "Good bye", lang: French}
    assert: [{type: llm-rubric, value: It is polite.}, {type: equals, value: Au revoir}]
  - vars: {text: "x"}
    assert: [{type: javascript, value: "output.length > 3"}]
  - vars: {text: "y"}
    assert: [{type: not-regex, value: "[0-9]"}, {type: is-json}, {type: "trajectory:tool-used", value: search}, {type: cost, threshold: 0.01}]
  - vars: {}
    assert: [{type: contains, value: z}]
  - vars: {text: n}
    assert: [{type: contains, value: ""}]
  - vars: {text: n}
    assert: [{type: not-contains, value: sorry}]
`

// TestImport imports own files of ADK and promptfoo. The numbers add up, the suites are read again
// and have no check that cannot fail, and a second import replaces nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		form, name, text   string
		rows, drafts, left int
		reasons            []string
		inSuite, inCases   []string
		variants           []string
	}{
		{"adk", "hotel.evalset.json", adkSet, 4, 2, 1,
			[]string{"left out: it has no conversation", "draft: a case has one turn", "(ROUGE)"},
			[]string{"eval: hotel"},
			[]string{`"id":"book"`, `"$$room":"$${A}"`, `"evalId":7`, `"order":"exact"`, `"name":"hotel_book"`},
			[]string{"now"}},
		{"promptfoo", "promptfooconfig.yaml", foo, 14, 4, 7,
			[]string{"left out: its prompt is in another file", "draft: assertions of the type llm-rubric", "draft: assertions of the type javascript",
				"without the provider exec:model.sh", "more than names of vars"},
			[]string{"model: openai:gpt-5-mini", "model: anthropic:claude-x"},
			[]string{"Translate Hello into German.", "Translate Good bye into French.", `"regex":"(?i)(hallo)"`, `"max":5`},
			[]string{"claude-x", "gpt-5-mini"}},
	} {
		t.Run(row.form, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{row.name: row.text})
			o := &eval.ImportOptions{Dir: filepath.Join(dir, "evals")}
			got, err := eval.Import(row.form, filepath.Join(dir, row.name), o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Rows != row.rows || got.Drafts != row.drafts || got.LeftOut != row.left ||
				got.Taken+got.Drafts+got.LeftOut != got.Rows {
				t.Errorf("got %+v, want %d rows, %d drafts, %d left out", got, row.rows, row.drafts, row.left)
			}
			var reasons strings.Builder
			for _, r := range got.Reasons {
				reasons.WriteString(r.Text + "\n")
			}
			contains(t, "the reasons", reasons.String(), row.reasons)
			contains(t, "the suite", read(t, got.File), row.inSuite)
			contains(t, "the cases", read(t, strings.TrimSuffix(got.File, ".eval.yaml")+".jsonl"), row.inCases)

			s, err := eval.Load(got.File, &eval.LoadOptions{Getenv: func(string) string { return "key" }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Check(t.Context(), false); err != nil {
				t.Error(err)
			}
			if !slices.Equal(s.Variants(), row.variants) {
				t.Errorf("got the variants %q, want %q", s.Variants(), row.variants)
			}
			if _, err := eval.Import(row.form, filepath.Join(dir, row.name), o); err == nil {
				t.Error("a second import replaces files")
			}
		})
	}
}

// contains reports the parts that a text does not have.
func contains(t *testing.T, what, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lack %q:\n%s", what, part, text)
		}
	}
}

// read reads a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestImportWrong refuses other forms, and files of another form.
func TestImportWrong(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"x.json": `{"a": 1}`, "bad.json": "{"})
	for _, row := range []struct{ form, file, want string }{
		{"bflc", "x.json", "did you mean bfcl?"},
		{"adk", "x.json", "no row of the form adk"},
		{"promptfoo", "x.json", "no list"},
		{"tau", "bad.json", "value 1"},
		{"bfcl", "gone.json", "no such file"},
	} {
		_, err := eval.Import(row.form, filepath.Join(dir, row.file), &eval.ImportOptions{Dir: filepath.Join(dir, "out")})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %s: got %v, want %q", row.form, row.file, err, row.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a folder was made")
	}
}

// TestImportPlayed plays an imported suite: the tools of its cases are declared to the model, and
// answer.
func TestImportPlayed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"hotel.evalset.json": adkSet, "turns.json": `{"turns": [
		{"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "hotel_book",
			"args": {"$room": "$${A}", "evalId": 7}}]}},
		{"message": {"role": "assistant", "parts": [{"type": "text", "text": "Booked."}]}}]}`})
	got, err := eval.Import("adk", filepath.Join(dir, "hotel.evalset.json"),
		&eval.ImportOptions{Dir: dir, Model: "script:turns.json"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := eval.Load(got.File, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &eval.Options{Dir: filepath.Join(dir, "evals"), Only: "book"}
	r, err := eval.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Variants[0].Cases[0]
	if r.Status() != 1 || c.Passed != 0 {
		t.Errorf("another value: status %d, %+v", r.Status(), c)
	}

	change(t, dir, "turns.json", "$${A}", "${A}")
	r, err = eval.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Variants[0].Cases[0]; r.Status() != 0 || c.Passed != 1 {
		t.Errorf("the right value: status %d, %+v", r.Status(), c)
	}
}

// TestImportCorpora reads the suites of recorded data again: what is written is what a suite reads.
func TestImportCorpora(t *testing.T) {
	for file, form := range map[string]string{
		"bfcl/dev/live_parallel.jsonl.gz":          "bfcl",
		"bfcl/dev/simple_java.jsonl.gz":            "bfcl",
		"bfcl/dev/live_parallel_multiple.jsonl.gz": "bfcl",
	} {
		got, err := eval.Import(form, corpora.Path(t, file), &eval.ImportOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		s, err := eval.Load(got.File, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := s.Check(t.Context(), false); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if len(s.Cases()) != got.Rows-got.LeftOut {
			t.Errorf("%s: %d cases of %+v", file, len(s.Cases()), got)
		}
	}
}
