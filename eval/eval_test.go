package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/eval"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// folder writes files into a new folder, and returns the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// clerk are the files of an agent that writes a note, and of a suite with these checks.
func clerk(checks string) map[string]string {
	return map[string]string{
		"clerk.yaml": "agent: clerk\nmodel: script:turns.json\ntools: [file]\n",
		"turns.json": `{"turns": [
			{"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "file_write",
				"args": {"path": "note.txt", "content": "Pay Anna 70."}}]}},
			{"message": {"role": "assistant", "parts": [{"type": "text", "text": "The note is written."}]}}]}`,
		"seed/milk.txt": "Buy milk.\n",
		"s.eval.yaml": `eval: s
agent: clerk.yaml
trials: 2
cases:
  - id: note
    input: "Write the note: pay Anna 70."
    world: {files: seed}
    answers: [{tool: file_write, do: approve}]
    reference: {calls: [{tool: file_write, args: {path: note.txt, content: Pay Anna 70.}}], answer: The note is written.}
    checks: ` + checks + "\n",
	}
}

// load reads the suite of a folder.
func load(t *testing.T, dir string) *eval.Suite {
	t.Helper()
	s, err := eval.Load(filepath.Join(dir, "s.eval.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the suite of a folder.
func run(t *testing.T, dir string, o *eval.Options) *eval.Report {
	t.Helper()
	o.Dir = filepath.Join(dir, "evals")
	r, err := eval.Run(t.Context(), load(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const checks = `[{answer: {contains: written}}, {calls: {expect: [{tool: file_write}]}}, {files: {at: {note.txt: {contains: "70."}}}}]`

// TestVerdicts runs an agent that is right, and an agent that writes another sum.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	if r := run(t, folder(t, files), &eval.Options{}); r.Status() != 0 || r.Variants[0].Passed != 2 {
		t.Errorf("a right agent: status %d, %d passed", r.Status(), r.Variants[0].Passed)
	}

	files["turns.json"] = strings.Replace(files["turns.json"], "Anna 70", "Anna 700", 1)
	r := run(t, folder(t, files), &eval.Options{})
	var out strings.Builder
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	if r.Status() != 1 || !strings.Contains(out.String(), "note.txt: ") || !strings.Contains(out.String(), "0/2 ▼") {
		t.Errorf("a wrong agent: status %d\n%s", r.Status(), out.String())
	}
}

// TestControls finds checks that cannot fail or pass, each at its place. The repaired suite has
// none.
func TestControls(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ checks, want string }{
		{`[{stop: answer}]`, "says and does nothing passes all checks"},
		{`[{answer: {contains: Write}}, {not: {stop: limit}}]`, "it must pass, and does not"},
		{`[{answer: {contains: written}}, {calls: {forbid: [file_delte]}}]`, "no variant has it"},
		{`[{calls: {expect: [{tool: file_wrte}]}}]`, "lacks it"},
		{`[{answer: {contains: written}}, {files: {at: {milk.txt: {regex: .}}, others: any}}]`, "sees no fault"},
		{`[{answer: {contains: ""}}]`, "every text contains"},
		{`[{answer: {contains: written}, observe: true}]`, "no check of the case gates"},
		{`[{answer: {contains: written}}, {files: {at: {milk.txt: {contains: milk}}, others: any}}]`, ""},
		{checks, ""},
	} {
		dir := folder(t, clerk(row.checks))
		s, err := eval.Load(filepath.Join(dir, "s.eval.yaml"), nil)
		if err == nil {
			_, err = s.Check(t.Context(), false)
		}
		if row.want == "" {
			if err != nil && !strings.Contains(row.checks, "milk") {
				t.Errorf("%s: %v", row.checks, err)
			}
			continue
		}
		var finding *agentfile.Finding
		if err == nil || !strings.Contains(err.Error(), row.want) || !errors.As(err, &finding) || finding.Line == 0 {
			t.Errorf("%s: got %v, want %q with a place", row.checks, err, row.want)
		}
	}
}

// TestCheckTwice checks one suite by several callers at once. An end of the context is no fault of
// the suite.
func TestCheckTwice(t *testing.T) {
	t.Parallel()
	s := load(t, folder(t, clerk(`[{answer: {contains: written}}, {files: {at: {milk.txt: {regex: .}}, others: any}}]`)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ended, false); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: got %v", err)
	}

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := s.Check(t.Context(), false)
			if err == nil || strings.Count(err.Error(), "sees no fault") != 1 {
				t.Errorf("got %v, want one fault", err)
			}
		})
	}
	all.Wait()
}

// TestMistakes reports faults of the file with their places and nearest names, all at once.
func TestMistakes(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["s.eval.yaml"] = "eval: s\nagent: clerk.yaml\ntrails: 2\ncases:\n  - id: a\n    imput: x\n    checks: [{stop: answer}]\n"
	_, err := eval.Load(filepath.Join(folder(t, files), "s.eval.yaml"), nil)
	for _, want := range []string{"3:1", "did you mean trials?", "6:5", "did you mean input?"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestLimits plays a run that needs a round: the defaults allow none, and the limit of the case
// stands over them.
func TestLimits(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["s.eval.yaml"] += "defaults: {limits: {rounds: 0}}\n"
	_, err := load(t, folder(t, files)).Check(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "it must pass, and does not") {
		t.Errorf("without rounds: got %v", err)
	}

	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "world: {files: seed}",
		"world: {files: seed}\n    limits: {rounds: 2}", 1)
	if r := run(t, folder(t, files), &eval.Options{}); r.Status() != 0 {
		t.Errorf("with a limit of the case: status %d, %+v", r.Status(), r.Variants[0].Cases[0].Failures)
	}
}

// TestVariants changes keys of the agent, and compares with the first variant.
func TestVariants(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["worse.json"] = `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "text", "text": "It is written."}]}}]}`
	files["s.eval.yaml"] += "variants: [{name: now}, {name: worse, model: 'script:worse.json'}]\n"
	r := run(t, folder(t, files), &eval.Options{})
	if len(r.Variants) != 2 || r.Variants[0].Passed != 2 || r.Variants[1].Passed != 0 {
		t.Fatalf("got %+v", r.Variants)
	}
	if v := r.Variants[1].Versus; v == nil || *v.Difference != -1 || v.With != "now" {
		t.Errorf("got the comparison %+v", v)
	}

	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "model: 'script", "modell: 'script", 1)
	_, err := eval.Load(filepath.Join(folder(t, files), "s.eval.yaml"), nil)
	if err == nil || !strings.Contains(err.Error(), "did you mean model?") {
		t.Errorf("a wrong key of a variant: %v", err)
	}
}

// payer are the files of an agent that pays by a request to a server, and of a suite for it.
func payer(server string) map[string]string {
	files := clerk(`[{calls: {expect: [{tool: pay}]}}]`)
	host := strings.TrimPrefix(server, "http://")
	files["clerk.yaml"] = `agent: clerk
model: script:turns.json
approve: {else: allow}
http_allow: ["` + host + `"]
tools: [{http: {name: pay, description: Pays., method: POST, url: "` + server + `/pay"}}]
`
	files["turns.json"] = `{"turns": [
		{"message": {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "pay", "args": {}}]}},
		{"message": {"role": "assistant", "parts": [{"type": "text", "text": "Paid."}]}}]}`
	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "    reference: {calls: [{tool: file_write, args: "+
		"{path: note.txt, content: Pay Anna 70.}}], answer: The note is written.}\n", "", 1)
	return files
}

// TestLeaks refuses tools that write outside of the world before any request, and runs them where
// the suite says that they may.
func TestLeaks(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	files := payer(server.URL)

	dir := folder(t, files)
	_, err := eval.Run(t.Context(), load(t, dir), &eval.Options{Dir: t.TempDir()})
	var unsafe *eval.UnsafeError
	if !errors.As(err, &unsafe) || !strings.Contains(err.Error(), "pay") || requests.Load() != 0 {
		t.Fatalf("got %v after %d requests, want a refusal that names pay", err, requests.Load())
	}

	for world, want := range map[string]int64{
		`{tools: {pay: [{args: {}, result: paid}]}}`: 0,
		`{real: [pay]}`: 2,
	} {
		requests.Store(0)
		files := map[string]string{}
		for _, name := range []string{"clerk.yaml", "turns.json", "s.eval.yaml", "seed/milk.txt"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
		files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "{files: seed}", world, 1)
		r := run(t, folder(t, files), &eval.Options{})
		if r.Status() != 0 || requests.Load() != want {
			t.Errorf("world %s: status %d, %d requests, want %d", world, r.Status(), requests.Load(), want)
		}
	}
}

// TestFakeMiss gives an error result to a call that no line of the world answers.
func TestFakeMiss(t *testing.T) {
	t.Parallel()
	files := clerk(`[{calls: {expect: [{tool: file_write, outcome: error, result: {$contains: fake_miss}}]}}]`)
	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "{files: seed}",
		"{tools: {file_write: [{args: {path: other.txt, content: {$any: true}}, result: done}]}}", 1)
	if r := run(t, folder(t, files), &eval.Options{}); r.Status() != 0 {
		t.Errorf("status %d, %+v", r.Status(), r.Variants[0].Cases[0].Failures)
	}
}

// TestUnanswered leaves a call that no answer fits pending.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	files := clerk(`[{stop: pending}, {asked: [{tool: file_write}]}, {files: {others: unchanged}}]`)
	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "answers: [{tool: file_write, do: approve}]",
		"answers: [{tool: file_delete, do: approve}]", 1)
	files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], ", answer: The note is written.", "", 1)
	if r := run(t, folder(t, files), &eval.Options{}); r.Status() != 0 {
		t.Errorf("status %d, %+v", r.Status(), r.Variants[0].Cases[0].Failures)
	}
}

// TestScore judges stored trials by other checks, without the agent.
func TestScore(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	dir := folder(t, files)
	r := run(t, dir, &eval.Options{})
	same, err := eval.Score(t.Context(), r.Dir, load(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := variants(t, r), variants(t, same); a != b {
		t.Errorf("the same checks give another report:\n%s\n%s", a, b)
	}

	suite := filepath.Join(dir, "s.eval.yaml")
	changed := strings.Replace(files["s.eval.yaml"], `"70."`, `"71."`, 1)
	if err := os.WriteFile(suite, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "turns.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := eval.Score(t.Context(), r.Dir, load(t, dir), nil)
	if err != nil || other.Status() != 1 {
		t.Errorf("other checks: %v, %+v", err, other)
	}
}

// variants are the results of a report as JSON.
func variants(t *testing.T, r *eval.Report) string {
	t.Helper()
	text, err := json.Marshal(r.Variants)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestResume begins only the trials that have not ended, also after a line that was cut.
func TestResume(t *testing.T) {
	t.Parallel()
	dir := folder(t, clerk(checks))
	whole := run(t, dir, &eval.Options{Trials: 6, Parallel: 1})
	file := filepath.Join(whole.Dir, "trials.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	cut := bytes.Join(lines[:3], nil)
	cut = append(cut, lines[3][:len(lines[3])/2]...)
	if err := os.WriteFile(file, cut, 0o600); err != nil {
		t.Fatal(err)
	}

	var begun []int
	again := run(t, dir, &eval.Options{Trials: 6, Parallel: 1, Resume: whole.ID,
		Progress: func(p eval.Progress) { begun = append(begun, p.Number) }})
	if fmt.Sprint(begun) != "[4 5 6]" || again.Variants[0].Passed != 6 {
		t.Errorf("began %v, %d passed: want [4 5 6], 6", begun, again.Variants[0].Passed)
	}

	if err := os.WriteFile(filepath.Join(dir, "clerk.yaml"),
		[]byte("agent: clerk\nmodel: script:turns.json\ninstructions: Another.\ntools: [file]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = eval.Run(t.Context(), load(t, dir), &eval.Options{Dir: filepath.Join(dir, "evals"), Resume: whole.ID})
	if err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("another agent: %v", err)
	}
}

// TestInterrupt cuts a trial in the middle of a call, by the end of the context and by the time of
// the eval. The trial is skipped, and a resumed eval begins it again.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		time   time.Duration
		trials int
		status int
	}{
		{"the only trial", 0, 1, 130},
		{"the first of two", 0, 2, 130},
		{"time", 300 * time.Millisecond, 1, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var isResumed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if isResumed.Load() {
					return
				}
				if row.time == 0 {
					cancel(errors.New("a signal"))
				}
				<-r.Context().Done()
			}))
			defer server.Close()
			files := payer(server.URL)
			files["s.eval.yaml"] = strings.Replace(files["s.eval.yaml"], "{files: seed}", "{real: [pay]}", 1)
			dir := folder(t, files)

			o := &eval.Options{Dir: filepath.Join(dir, "evals"), Trials: row.trials, Parallel: 1, Time: row.time}
			r, err := eval.Run(ctx, load(t, dir), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status() != row.status || r.Skipped != row.trials || r.Errors != 0 {
				t.Errorf("status %d, %d skipped, %d errors: want %d, %d, 0", r.Status(), r.Skipped, r.Errors, row.status, row.trials)
			}

			isResumed.Store(true)
			again := run(t, dir, &eval.Options{Trials: row.trials, Parallel: 1, Resume: r.ID})
			if again.Status() != 0 || again.Variants[0].Passed != row.trials {
				t.Errorf("resumed: status %d, %d passed, want 0, %d", again.Status(), again.Variants[0].Passed, row.trials)
			}

			scored, err := eval.Score(t.Context(), again.Dir, load(t, dir), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := variants(t, scored), variants(t, again); scored.Skipped != 0 || got != want {
				t.Errorf("judged again: %d skipped, got\n%s\nwant\n%s", scored.Skipped, got, want)
			}
		})
	}
}

// TestBaseline fails a suite whose case passed before and does not now.
func TestBaseline(t *testing.T) {
	t.Parallel()
	files := clerk(checks)
	files["s.eval.yaml"] += "baseline: base.json\n"
	dir := folder(t, files)
	b, err := run(t, dir, &eval.Options{}).Baseline()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(filepath.Join(dir, "base.json")); err != nil {
		t.Fatal(err)
	}
	if r := run(t, dir, &eval.Options{}); r.Status() != 0 || len(r.Changes) != 0 {
		t.Errorf("the same agent: status %d, %+v", r.Status(), r.Changes)
	}

	worse := strings.Replace(files["turns.json"], "Anna 70", "Anna 7", 1)
	if err := os.WriteFile(filepath.Join(dir, "turns.json"), []byte(worse), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, &eval.Options{})
	var failed []string
	for _, g := range r.Gates {
		if !g.Pass {
			failed = append(failed, g.Name)
		}
	}
	if r.Status() != 1 || !strings.Contains(strings.Join(failed, ","), "newly failing") || len(r.Changes) != 1 {
		t.Errorf("a worse agent: status %d, gates %q, changes %+v", r.Status(), failed, r.Changes)
	}
}

// TestDropOfSeveral shows a drop that is shown for one variant, and no longer once the gate tests
// two: each of five cases fell from 1/1 to 0/1, which has a p of 1/32.
func TestDropOfSeveral(t *testing.T) {
	t.Parallel()
	turns := func(text string) string {
		return fmt.Sprintf(`{"turns": [{"message": {"role": "assistant", "parts": [{"type": "text", "text": %q}]}}]}`, text)
	}
	suite := `eval: s
agent: clerk.yaml
variants: [{name: now}, {name: other, instructions: Be brief.}]
baseline: base.json
gate: {drop: {by: shown}}
cases:
`
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		suite += "  - {id: " + id + ", input: Write., checks: [{answer: {contains: written}}]}\n"
	}
	dir := folder(t, map[string]string{
		"clerk.yaml":  "agent: clerk\nmodel: script:turns.json\n",
		"turns.json":  turns("It is written."),
		"s.eval.yaml": suite,
	})
	b, err := run(t, dir, &eval.Options{}).Baseline()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(filepath.Join(dir, "base.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "turns.json"), []byte(turns("No.")), 0o600); err != nil {
		t.Fatal(err)
	}

	if r := run(t, dir, &eval.Options{Variants: []string{"now"}}); r.Status() != 1 {
		t.Errorf("one variant: status %d, want 1: %+v", r.Status(), r.Gates)
	}
	if r := run(t, dir, &eval.Options{}); r.Status() != 0 || r.Variants[1].Baseline.Drop != 1.0/32 {
		t.Errorf("two variants: status %d, want 0: %+v", r.Status(), r.Gates)
	}
}

// TestErrors keeps failures of a provider out of the rates, begins temporary ones again, and ends
// a variant that no trial of can succeed.
func TestErrors(t *testing.T) {
	t.Parallel()
	failing := func(code string, retryable bool) string {
		return fmt.Sprintf(`{"turns": [{"error": {"provider": "p", "code": %q, "message": "no", "retryable": %t}}]}`,
			code, retryable)
	}
	for _, row := range []struct {
		code            string
		errors, skipped int
		judged          int
	}{
		{"quota", 1, 3, 0},
		{"server", 4, 0, 0},
		{"context_length", 0, 0, 4},
	} {
		files := clerk(checks)
		files["turns.json"] = failing(row.code, false)
		r := run(t, folder(t, files), &eval.Options{Trials: 4, Parallel: 1})
		got := r.Variants[0].Cases[0]
		if r.Errors != row.errors || r.Skipped != row.skipped || got.Judged != row.judged {
			t.Errorf("%s: %d errors, %d skipped, %d judged: want %+v", row.code, r.Errors, r.Skipped, got.Judged, row)
		}
		if want := 5; row.errors > 0 && r.Status() != want {
			t.Errorf("%s: status %d, want %d", row.code, r.Status(), want)
		}
	}
}

// TestJUnit reads the report by another parser, with hostile texts in it.
func TestJUnit(t *testing.T) {
	t.Parallel()
	files := clerk(`[{answer: {contains: written}}, {answer: {excludes: "\u001b[31m<script>"}}]`)
	files["turns.json"] = `{"turns": [{"message": {"role": "assistant", "parts": [{"type": "text",
		"text": "\u001b[31m<script>]]>&amp;|x|\u202e"}]}}]}`
	r := run(t, folder(t, files), &eval.Options{})
	var out, md, text bytes.Buffer
	if err := errors.Join(r.JUnit(&out), r.Markdown(&md), r.Text(&text)); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if read.Suites[0].Failures != 1 || !strings.Contains(read.Suites[0].Cases[0].Failure, "<script>") {
		t.Errorf("got %+v", read)
	}
	for _, shown := range []string{text.String(), md.String(), out.String()} {
		if strings.ContainsAny(shown, "\x1b\u202e") {
			t.Errorf("a control character is shown: %q", shown)
		}
	}
	unescaped := regexp.MustCompile(`[^\\]<script`)
	if unescaped.MatchString(md.String()) || utf8.RuneCount(md.Bytes()) > 60_000 {
		t.Errorf("Markdown has markup of the model: %s", md.String())
	}
}
