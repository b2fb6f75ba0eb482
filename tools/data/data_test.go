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
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/data"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// call runs tool twice and returns its text, prefixed with "error: " for an error. It checks
// properties of every answer: both calls give the same bytes, text and data are the same JSON, and
// the size is within the limit.
func call(t testing.TB, tool *pawl.Tool, args any) string {
	t.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		tooltest.Must(t, err)
		raw = string(b)
	}
	one, two := tooltest.Run(t, tool, raw), tooltest.Run(t, tool, raw)
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
	return one.Text()
}

func byName(t testing.TB) map[string]*pawl.Tool {
	tools, err := data.New(nil).Tools(context.Background())
	tooltest.Must(t, err)
	all := map[string]*pawl.Tool{}
	for _, tool := range tools {
		all[tool.Name] = tool
	}
	return all
}

// Each file in testdata states its purpose, followed by calls and their answers. In the arguments,
// "@name" stands for the text of the section with that name.
func TestCalls(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	tooltest.Must(t, err)
	if len(files) < 5 {
		t.Fatalf("%d files in testdata", len(files))
	}
	tools := byName(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			tooltest.Must(t, err)
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
				tooltest.Must(t, os.WriteFile(file, txtar.Format(ar), 0o644))
			}
		})
	}
}

// The golden file shows the definitions that the model gets, for review as prose.
func TestDefinitions(t *testing.T) {
	tooltest.Definitions(t, data.New(nil), filepath.Join("testdata", "definitions.json"), *update)
}

// The whole pipeline: arguments that the schemas accept and reject.
func TestRegistry(t *testing.T) {
	var reg pawl.Registry
	tools, err := data.New(nil).Tools(t.Context())
	tooltest.Must(t, err)
	tooltest.Must(t, reg.Add(tools...))
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
		if _, err := tool.Run(ctx, llm.ToolCall{Args: json.RawMessage(args)}); err != context.Canceled {
			t.Errorf("%s: %v; want %v", name, err, context.Canceled)
		}
	}
}
