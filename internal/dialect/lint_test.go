package dialect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

func TestReadTools(t *testing.T) {
	const schema = `{"type":"object","properties":{"city":{"type":"string"}}}`
	one := []dialect.Tool{{Name: "weather", Description: "D", Input: json.RawMessage(schema)}}
	for _, tt := range []struct {
		name, in string
		want     []dialect.Tool
	}{
		{"schema", schema, []dialect.Tool{{Input: json.RawMessage(schema)}}},
		{"empty schema", `{}`, []dialect.Tool{{Input: json.RawMessage(`{}`)}}},
		{"MCP tool", `{"name":"weather","description":"D","inputSchema":` + schema + `}`, one},
		{"MCP result", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"weather","description":"D","inputSchema":` + schema + `}]}}`, one},
		{"Chat Completions", `[{"type":"function","function":{"name":"weather","description":"D","parameters":` + schema + `}}]`, one},
		{"Responses", `{"model":"m","tools":[{"type":"function","name":"weather","description":"D","strict":true,"parameters":` + schema + `},{"type":"web_search"}]}`, one},
		{"Messages", `{"tools":[{"name":"weather","description":"D","input_schema":` + schema + `},{"type":"bash_20250124","name":"bash"}]}`, one},
		{"Gemini", `{"tools":[{"functionDeclarations":[{"name":"weather","description":"D","parameters":` + schema + `}]}]}`, one},
		{"Bedrock", `{"toolSpec":{"name":"weather","description":"D","inputSchema":{"json":` + schema + `}}}`, one},
		{"ours", `[{"name":"weather","description":"D","input":` + schema + `}]`, one},
		{"lines", `{"name":"weather","description":"D","input":` + schema + "}\n\n" + `{"name":"now"}` + "\n", append(slices.Clone(one), dialect.Tool{Name: "now"})},
		{"without arguments", `{"name":"now","description":"D","parameters":null}`, []dialect.Tool{{Name: "now", Description: "D"}}},
		{"byte order mark", "\ufeff" + schema, []dialect.Tool{{Input: json.RawMessage(schema)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dialect.ReadTools([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.in, diff)
			}
		})
	}
	for _, bad := range []string{"", " \n", "[", `[1]`, `"x"`, `{"model":"m"}`, "{}\n{", "{}\n[7]"} {
		if got, err := dialect.ReadTools([]byte(bad)); err == nil {
			t.Errorf("ReadTools(%q) = %v, want an error", bad, got)
		}
	}
}

func TestLintWarns(t *testing.T) {
	tool := func(name, description string) dialect.Tool {
		return dialect.Tool{Name: name, Description: description, Input: json.RawMessage(`{"type":"object","properties":{}}`)}
	}
	const told = "Reads a file and returns its text with line numbers."
	for _, tt := range []struct {
		name  string
		tools []dialect.Tool
		want  []string // parts, in order; nil means no warning
	}{
		{"good", []dialect.Tool{tool("read_file", told), tool("write_file", "Writes text to a file, which is made when it is not there.")}, nil},
		{"schema alone", []dialect.Tool{{Input: json.RawMessage(`{"properties":{"a":{"type":"string","description":"d"}}}`)}}, nil},
		{"no description", []dialect.Tool{tool("read_file", " ")}, []string{"no description"}},
		{"one word", []dialect.Tool{tool("read_file", "Reads.")}, []string{"has 1 word:"}},
		{"the name again", []dialect.Tool{tool("readFile", "This tool is used to read a file.")}, []string{"no more than the name"}},
		{"same name", []dialect.Tool{tool("a", told), tool("a", told)}, []string{"two tools have this name"}},
		{"nearly the same name", []dialect.Tool{tool("read_file", told), tool("readFile", "Something else that is told here at length.")}, []string{"only in case"}},
		{"dashes", []dialect.Tool{tool("read-file", told), tool("_write", "Writes text to a file, which is made when it is not there.")}, nil},
		{"names", []dialect.Tool{tool("read-file", told), tool("files.write", "Writes text to a file, which is made when it is not there.")}, []string{"sent under another name"}},
		{"same description", []dialect.Tool{tool("read_file", told), tool("load_file", told)}, []string{"say the same"}},
		{"alike but told apart", []dialect.Tool{tool("a", "Lists the open orders of a customer."), tool("b", "Lists the closed invoices of a shop.")}, nil},
		{"arguments", []dialect.Tool{{Name: "read_file", Description: told, Input: json.RawMessage(`{"properties":{"path":{"type":"string"},"mode":{"enum":["a"]},"at":{"type":"integer","description":"d"}}}`)}},
			[]string{"arguments without a description: path"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dialect.Lint(tt.tools).Warnings
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i, w := range got {
				if !strings.Contains(w.Text, tt.want[i]) {
					t.Errorf("got %q, want %q", w.Text, tt.want[i])
				}
			}
		})
	}
}

func TestLintReport(t *testing.T) {
	tools := []dialect.Tool{
		{Name: "post", Description: "Sends a message to a channel of the team.", Input: json.RawMessage(`{"type":"dict","properties":{"text":{"type":"string","minLength":1,"default":"x","description":"d"},"at":{"type":"string","description":"d"}},"required":["text"]}`)},
		{Name: "call", Description: "Calls any method of the service by its name.", Input: json.RawMessage(`{"type":"object","additionalProperties":true}`)},
	}
	r := dialect.Lint(tools)
	if r.OK() {
		t.Error("a tool that cannot be expressed in the strict form is OK")
	}
	if !dialect.Lint(tools, dialect.OpenAI, dialect.Gemini).OK() {
		t.Error("not OK where all can be said")
	}
	var b strings.Builder
	if err := r.Text(&b, false); err != nil {
		t.Fatal(err)
	}
	const want = `post
  no JSON Schema: /: type "dict" is read as object
  openai           ok
  openai-strict    with losses
    looser   minLength: not enforced, but described: at least 1 character: /text
    reshaped required: null stands for leaving the field out: /at
    stricter additionalProperties: only the named fields can be sent: /
  anthropic        ok
  anthropic-strict with losses
    looser   minLength: not enforced, but described: at least 1 character: /text
    stricter additionalProperties: only the named fields can be sent: /
  gemini           ok; 1 explanation expressed in another way
  gemini-json      ok
call
  openai           ok
  openai-strict    cannot be expressed: additionalProperties: an object without named fields cannot be expressed
  anthropic        ok
  anthropic-strict cannot be expressed: additionalProperties: an object without named fields cannot be expressed
  gemini           ok
  gemini-json      ok
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.Reset()
	if err := r.Text(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"https://", "default: stated in the description"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the long report has no %q:\n%s", want, &b)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	if again, _ := json.Marshal(dialect.Lint(tools)); !slices.Equal(again, must(json.Marshal(r))) {
		t.Error("the report is not the same twice")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestCorpusServers checks the tools that MCP servers list.
func TestCorpusServers(t *testing.T) {
	soak.Sequential(t)
	servers := corpora.Lines[struct {
		Server string
		Tools  json.RawMessage
	}](t, "tool-schemas/mcp-servers.dev.jsonl.gz")
	tools, ok, kinds := 0, map[string]int{}, map[string]int{}
	for _, s := range servers {
		list, err := dialect.ReadTools(s.Tools)
		if err != nil {
			t.Errorf("%s: %v", s.Server, err)
			continue
		}
		tools += len(list)
		r := dialect.Lint(list)
		for _, tr := range r.Tools {
			for _, v := range tr.Verdicts {
				if v.Error == "" {
					ok[v.Dialect]++
					if bad := refused(v.Dialect, v.Schema); bad != nil {
						t.Errorf("%s: %s: %s: refused for %q", s.Server, tr.Name, v.Dialect, bad)
					}
				}
			}
		}
		for _, w := range r.Warnings {
			key, _, _ := strings.Cut(w.Text, ":")
			kinds[strings.Join(strings.Fields(key)[:3], " ")]++
		}
		if err := r.Text(discard{}, true); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d servers, %d tools; said: %v; warnings: %v", len(servers), tools, ok, kinds)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
