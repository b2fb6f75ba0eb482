// Package tooltest is what the tests of the built-in tools share: calls that are checked against
// what the tool says of its answers, what a model is shown of a set of tools, a database, and
// processes whose memory is measured.
//
//	got := tooltest.Call(t, files.Read, `{"path":"a.txt"}`)
//	if want := "hello\n"; got != want {
//		t.Errorf("got %q, want %q", got, want)
//	}
package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store/sqlite"
)

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Run calls the function of tool as the pipeline does after its checks. An error fails the test,
// and so does data that is not JSON or does not fit the tool's Output.
func Run(t testing.TB, tool *pawl.Tool, args string) llm.ToolResult {
	t.Helper()
	res, err := tool.Run(context.Background(), llm.ToolCall{ID: "c", Name: tool.Name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %.200s: %v", tool.Name, args, err)
	}
	if res.Data == nil {
		return res
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(res.Data))
	if err != nil {
		t.Fatalf("%s %.200s: data is no JSON (%v): %s", tool.Name, args, err, res.Data)
	}
	if tool.Output != nil {
		if err := output(t, tool).Validate(doc); err != nil {
			t.Fatalf("%s %.200s: %v: %s", tool.Name, args, err, res.Data)
		}
	}
	return res
}

// Call returns the text of Run, with the prefix "error: " if the result is an error.
func Call(t testing.TB, tool *pawl.Tool, args string) string {
	t.Helper()
	res := Run(t, tool, args)
	if res.IsError {
		return "error: " + res.Text()
	}
	return res.Text()
}

// Tools returns the tools of set.
func Tools(t testing.TB, set pawl.Toolset) []*pawl.Tool {
	t.Helper()
	tools, err := set.Tools(t.Context())
	Must(t, err)
	return tools
}

// Definitions compares the definitions of set for a model with the file golden, which is reviewed
// as prose. update rewrites the file.
func Definitions(t *testing.T, set pawl.Toolset, golden string, update bool) {
	t.Helper()
	type definition struct {
		Name        string          `json:"name"`
		Effect      pawl.Effect     `json:"effect"`
		Description []string        `json:"description"`
		Input       json.RawMessage `json:"input"`
		Output      json.RawMessage `json:"output"`
	}
	var defs []definition
	for _, tool := range Tools(t, set) {
		Must(t, tool.Check())
		defs = append(defs,
			definition{tool.Name, tool.Effect, strings.Split(tool.Description, "\n"), tool.Input, tool.Output})
	}
	got, err := json.MarshalIndent(defs, "", "\t")
	Must(t, err)
	if update {
		Must(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	Must(t, err)
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("the tools changed; -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

// DB opens a database of the test's own. Nil options are the defaults.
func DB(t testing.TB, opts *sqlite.Options) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), opts)
	Must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func output(t testing.TB, tool *pawl.Tool) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Output))
	Must(t, err)
	c := jsonschema.NewCompiler()
	Must(t, c.AddResource("output.json", doc))
	s, err := c.Compile("output.json")
	Must(t, err)
	return s
}
