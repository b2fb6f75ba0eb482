package data_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call runs tool twice and returns its text, which begins with "error: " where the result is one. It checks what holds for every answer:
// both runs give the same bytes, text and data are the same JSON, the output schema describes it, and it is not too long.
func call(t testing.TB, tool *pawl.Tool, args any) string {
	t.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		must(t, err)
		raw = string(b)
	}
	one, two := run(t, tool, raw), run(t, tool, raw)
	if one.Text() != two.Text() {
		t.Fatalf("%s: two runs differ:\n%s\n%s", tool.Name, one.Text(), two.Text())
	}
	if one.IsError {
		return "error: " + one.Text()
	}
	if one.Text() != string(one.Data) || len(one.Data) > 32<<10 {
		t.Fatalf("%s: text has %d bytes, data %d", tool.Name, len(one.Text()), len(one.Data))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, one.Data); err != nil || compact.Len() != len(one.Data) {
		t.Fatalf("%s: data is no compact JSON (%v): %s", tool.Name, err, one.Data)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(one.Data))
	must(t, err)
	if err := output(t, tool).Validate(doc); err != nil {
		t.Fatalf("%s: %v: %s", tool.Name, err, one.Data)
	}
	return one.Text()
}

func run(t testing.TB, tool *pawl.Tool, args string) pawl.ToolResult {
	t.Helper()
	res, err := tool.Run(context.Background(), pawl.ToolCall{ID: "c", Name: tool.Name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %.200s: %v", tool.Name, args, err)
	}
	return res
}

func output(t testing.TB, tool *pawl.Tool) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Output))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("output.json", doc))
	s, err := c.Compile("output.json")
	must(t, err)
	return s
}

func byName(t testing.TB) map[string]*pawl.Tool {
	tools, err := data.New().Tools(context.Background())
	must(t, err)
	all := map[string]*pawl.Tool{}
	for _, tool := range tools {
		all[tool.Name] = tool
	}
	return all
}

// Each file in testdata says what it shows, then has calls and their answers. In the arguments, "@name" stands for the
// text of the section of that name.
func TestCalls(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	if len(files) < 5 {
		t.Fatalf("%d files in testdata", len(files))
	}
	tools := byName(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			must(t, err)
			texts := map[string]string{}
			var got string
			for i, f := range ar.Files {
				switch tool := tools[f.Name]; {
				case tool != nil:
					args := string(f.Data)
					for name, text := range texts {
						q, _ := json.Marshal(strings.TrimSuffix(text, "\n"))
						args = strings.ReplaceAll(args, `"@`+name+`"`, string(q))
					}
					got = call(t, tool, args) + "\n"
				case f.Name == "answer":
					if *update {
						ar.Files[i].Data = []byte(got)
					} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
						t.Errorf("%s%s (-want +got):\n%s", ar.Files[i-1].Name, ar.Files[i-1].Data, diff)
					}
				default:
					texts[f.Name] = string(f.Data)
				}
			}
			if *update {
				must(t, os.WriteFile(file, txtar.Format(ar), 0o644))
			}
		})
	}
}

// What the model is shown, for review as prose.
func TestDefinitions(t *testing.T) {
	type definition struct {
		Name        string          `json:"name"`
		Effect      pawl.Effect     `json:"effect"`
		Description []string        `json:"description"`
		Input       json.RawMessage `json:"input"`
		Output      json.RawMessage `json:"output"`
	}
	tools, err := data.New().Tools(t.Context())
	must(t, err)
	var defs []definition
	for _, tool := range tools {
		must(t, tool.Check())
		defs = append(defs, definition{tool.Name, tool.Effect, strings.Split(tool.Description, "\n"), tool.Input, tool.Output})
	}
	got, err := json.MarshalIndent(defs, "", "\t")
	must(t, err)
	golden := filepath.Join("testdata", "definitions.json")
	if *update {
		must(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("the tools changed; -update rewrites %s (-want +got):\n%s", golden, diff)
	}
}

// Through the whole pipeline: what the schemas let through and what they refuse.
func TestRegistry(t *testing.T) {
	var reg pawl.Registry
	tools, err := data.New().Tools(t.Context())
	must(t, err)
	must(t, reg.Add(tools...))
	for _, tt := range []struct {
		name, args string
		outcome    pawl.Outcome
		text       string // part of it
	}{
		{"data_parse", `{"content":"a,b\n1,2"}`, pawl.OutcomeOK, `{"count":1,"columns":["a","b"],"records":[{"a":"1","b":"2"}]}`},
		{"data_filter", `{"records":[{"a":1}],"where":[{"column":"a","op":"==","value":1}]}`, pawl.OutcomeOK, `{"count":1,"records":[{"a":1}]}`},
		{"data_filter", `{"records":[{"a":"x"}],"where":[{"column":"a","op":"==","value":"x"}]}`, pawl.OutcomeOK, `"count":1`},
		{"data_filter", `{"records":[{"a":true}],"where":[{"column":"a","op":"==","value":true}]}`, pawl.OutcomeOK, `"count":1`},
		{"data_filter", `{"records":[{"a":null}],"where":[{"column":"a","op":"==","value":null}]}`, pawl.OutcomeOK, `"count":1`},
		{"data_filter", `{"records":[{"a":2}],"where":[{"column":"a","op":"in","value":[1,"2",null,true]}]}`, pawl.OutcomeOK, `"count":1`},
		{"data_aggregate", `{"records":"a\n1\n2","metrics":[{"column":"a","op":"sum"}]}`, pawl.OutcomeOK, `{"count":1,"groups":[{"sum_a":3}]}`},
		{"data_parse", `{"content":"a\n1\n2\n3","offset":1.0,"limit":1e0}`, pawl.OutcomeOK, `"next_offset":2,"columns":["a"],"records":[{"a":"2"}]}`},
		{"data_transform", `{"records":[{"a":9007199254740993}]}`, pawl.OutcomeOK, `9007199254740993`},
		{"data_filter", `{"records":[{"a":1}],"where":[{"column":"b","op":"==","value":1}]}`, pawl.OutcomeError, `the columns are "a"`},
		{"data_filter", `{"records":[{"a":1}],"where":[{"column":"a","op":"=","value":1}]}`, pawl.OutcomeInvalid, `contains`},
		{"data_filter", `{"records":[{"a":1}],"where":[{"column":"a","op":"==","value":{"Kind":1}}]}`, pawl.OutcomeInvalid, `value`},
		{"data_filter", `{"records":[{"a":1}],"where":[{"column":"a","op":"=="}]}`, pawl.OutcomeInvalid, `value`},
		{"data_filter", `{"records":[1],"where":[{"column":"a","op":"==","value":1}]}`, pawl.OutcomeInvalid, `object`},
		{"data_aggregate", `{"records":[{"a":1}],"metrics":[]}`, pawl.OutcomeInvalid, `metrics`},
		{"data_transform", `{"records":[{"a":1}],"sorting":"a"}`, pawl.OutcomeInvalid, `sorting`},
		{"data_parse", `{"content":"a","limit":-1}`, pawl.OutcomeInvalid, `limit`},
	} {
		e := reg.Execute(t.Context(), tt.name, json.RawMessage(tt.args))
		if e.Outcome != tt.outcome || !strings.Contains(e.Result.Text(), tt.text) {
			t.Errorf("%s %s: %s %q; want %s and %q", tt.name, tt.args, e.Outcome, e.Result.Text(), tt.outcome, tt.text)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tool := range byName(t) {
		args := `{"content":"a\n1","records":"a\n1","where":[{"column":"a","op":"==","value":1}],"metrics":[{"column":"a","op":"sum"}]}`
		if _, err := tool.Run(ctx, pawl.ToolCall{Args: json.RawMessage(args)}); err != context.Canceled {
			t.Errorf("%s: %v; want %v", name, err, context.Canceled)
		}
	}
}
