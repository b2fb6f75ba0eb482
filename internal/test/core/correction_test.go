package core_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Each file of the archive has a schema, arguments that do not fit it, and the text for the model.
// -update rewrites the text.
func TestCorrectionTexts(t *testing.T) {
	const path = "testdata/corrections.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files {
		parts := strings.SplitN(string(f.Data), "\n", 3)
		if len(parts) < 3 {
			t.Fatalf("%s: want a schema, arguments and a text, a line each", f.Name)
		}
		var ran []string
		tool := probe(parts[0], &ran)
		if err := tool.Check(); err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		x := execute(t, tool, parts[1])
		got := x.Result.Text() + "\n"
		if x.Outcome != pawl.OutcomeInvalid || len(ran) > 0 {
			t.Errorf("%s: %s, ran with %q", f.Name, x.Outcome, ran)
		}
		if *update {
			archive.Files[i].Data = []byte(parts[0] + "\n" + parts[1] + "\n" + got)
			continue
		}
		if diff := cmp.Diff(got, parts[2]); diff != "" {
			t.Errorf("%s: got -, want +\n%s", f.Name, diff)
		}
		// the example in the text must fit the schema
		if _, example, ok := strings.Cut(got, "with your own values: "); ok {
			if x := execute(t, probe(parts[0], &ran), strings.TrimSpace(example)); x.Outcome != pawl.OutcomeOK ||
				len(x.Repairs) > 0 {
				t.Errorf("%s: the example does not fit: %s", f.Name, x.Result.Text())
			}
		}
	}
	if len(archive.Files) < 40 {
		t.Errorf("%d texts", len(archive.Files))
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(path), txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A reply that ends with an error, because the model wrote a call that the provider could not read,
// goes back to the model once. It counts as a correction.
func TestBadCallsAreSentBack(t *testing.T) {
	bad := script.Turn{Parts: []llm.Part{llm.Text{Text: "look("}}, Finish: llm.FinishReasonError}
	empty := script.Turn{Finish: llm.FinishReasonError}
	called := script.Call("f", nil)
	called.Finish = llm.FinishReasonError
	const again = "user: Your last reply could not be used: it has a call that is not valid. Call one of the offered tools, with arguments that are one JSON object, or answer without a call.\n"
	for _, test := range []struct {
		name        string
		turns       []script.Turn
		corrections int // limit
		want        string
		spent       int // corrections
		code        llm.Code
	}{
		{"once", []script.Turn{bad, script.Say("done")}, 0, "user: go\nassistant: look(\n" + again + "assistant: done\n", 1, ""},
		{"without a text", []script.Turn{empty, script.Say("done")}, 0, "user: go\nassistant: (empty)\n" + again + "assistant: done\n", 1, ""},
		{"twice in sequence", []script.Turn{bad, bad}, 0, "user: go\nassistant: look(\n" + again + "assistant: look(\n", 1, llm.CodeServer},
		{"twice, with a call between", []script.Turn{bad, script.Call("f", nil), bad, script.Say("done")}, 0, "", 2, ""},
		{"no correction left", []script.Turn{bad, script.Call("f", nil), bad}, 1, "", 1, llm.CodeServer},
		{"no corrections", []script.Turn{bad}, -1, "user: go\nassistant: look(\n", 0, llm.CodeServer},
		{"with a whole call", []script.Turn{called, script.Say("done")}, 0, "", 1, ""},
	} {
		for way, run := range ways {
			ran := 0
			a := &pawl.Agent{Model: script.New(test.turns...), Limits: pawl.Limits{Corrections: test.corrections},
				Tools: []pawl.Toolset{does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					ran++
					return llm.TextResult("x"), nil
				})}}
			res, err := run(t.Context(), a, llm.User("go"))
			var pe *llm.ProviderError
			if errors.As(err, &pe); (err != nil) != (test.code != "") || pe != nil && pe.Code != test.code {
				t.Errorf("%s, %s: %v, want %q", test.name, way, err, test.code)
			}
			if got := say(res.Messages); test.want != "" && got != test.want || res.Spent.Corrections != test.spent ||
				res.Spent.Requests != len(test.turns) {
				t.Errorf("%s, %s: %+v\n%s\nwant\n%s", test.name, way, res.Spent, got, test.want)
			}
			if called := strings.Contains(test.name, "between") || strings.Contains(test.name, "left"); (ran > 0) != called {
				t.Errorf("%s, %s: the tool ran %d times", test.name, way, ran)
			}
		}
	}
}
