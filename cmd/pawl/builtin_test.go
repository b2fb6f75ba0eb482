package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/data"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/http"
	"github.com/pawl-go/pawl/tools/knowledge"
	"github.com/pawl-go/pawl/tools/plan"
	"github.com/pawl-go/pawl/tools/remember"
	"github.com/pawl-go/pawl/tools/schedule"
	"github.com/pawl-go/pawl/tools/search"
	"github.com/pawl-go/pawl/tools/shell"
	"github.com/pawl-go/pawl/tools/skill"
	"github.com/pawl-go/pawl/tools/todo"
)

// testdata/tools.golden is the output of pawl tools list --json: names, arguments and effects are a
// contract with prompts and stored runs. To update it: go test ./cmd/pawl -run CLI -update
func TestCLITools(t *testing.T) {
	var out bytes.Buffer
	sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
	if status := execute([]string{"tools", "list", "--json"}, sys); status != 0 {
		t.Fatalf("exit status %d: %s", status, out.String())
	}
	path := filepath.Join("testdata", "tools.golden")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), out.String()); diff != "" {
		t.Errorf("the built-in tools are not what testdata/tools.golden says; if that is meant, -run CLI -update writes it. Got +, want -\n%s", diff)
	}
}

// everyTool returns all tools of the packages below tools, also the tools that are in no set of the
// command. The store has a page about leave. allow lists the addresses that http_fetch reaches in
// addition to public addresses.
func everyTool(t *testing.T, allow ...string) map[string]*pawl.Tool {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := file.New(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	mine := &store.Scope{User: "alice"}
	fetch, err := http.New(&http.Options{Methods: []string{"GET", "POST"}, Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	find, err := search.New(search.Index{{URL: "https://example.com/", Title: "Pawl",
		Text: "A pawl lets a ratchet turn one way only, and no other."}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	skills, err := skill.New(db, &skill.Options{Scope: mine})
	if err != nil {
		t.Fatal(err)
	}
	run, err := shell.New(root, &shell.Options{Level: sandbox.None})
	if err != nil {
		t.Fatal(err)
	}
	know := knowledge.New(db, &knowledge.Options{Scope: mine})
	if _, err := know.Add(t.Context(), *mine, knowledge.Source{Name: "leave.md",
		Data: []byte("# Leave\n\nEverybody has twelve days.\n")}); err != nil {
		t.Fatal(err)
	}
	programs, err := code.New(code.Embedded(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*pawl.Tool{}
	for _, set := range []pawl.Toolset{files, data.New(&data.Options{Open: files.Open, Create: files.Create}),
		programs, plan.New(nil), fetch, find, run, todo.New(), remember.New(db,
			&remember.Options{Scope: mine}), skills, schedule.New(db, &schedule.Options{Scope: mine,
			Tools: find}), know} {
		tools, err := set.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			all[tool.Name] = tool
		}
	}
	sets, _, closeSets, err := builtinTools(t.Context(), &cli.System{Env: func(string) string { return "" }},
		assemble.ToolFlags{Root: root}, assemble.OutsideFlags{}, assemble.ServerFlags{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSets()
	for _, s := range sets {
		if all[s.Name] == nil {
			t.Errorf("%s is a tool of pawl tools list and has no place in this test: give it one, and rows", s.Name)
		}
	}
	return all
}

// good are calls that the schemas accept: calls of the project from which names and arguments come,
// and calls from the documentation.
var good = map[string][]string{
	"file_read":        {`{"path":"a.txt"}`, `{"path":"a.txt","offset":2,"limit":10}`},
	"file_write":       {`{"path":"b.txt","content":""}`, `{"path":"d/b.txt","content":"x","expect":""}`},
	"file_list":        {`{}`, `{"path":"d"}`},
	"file_delete":      {`{"path":"a.txt"}`},
	"file_stat":        {`{"path":"a.txt"}`},
	"file_edit":        {`{"path":"a.txt","edits":[{"old":"a","new":""}]}`, `{"path":"a.txt","edits":[{"old":"a","new":"b","all":true},{"old":"c","new":"d"}],"expect":"` + strings.Repeat("0", 64) + `"}`},
	"file_search":      {`{"pattern":"TODO"}`, `{"pattern":"a(b","literal":true,"path":"d","include":["*.go"],"exclude":["vendor/**"],"context":2,"limit":20}`, `{"include":["*.md"]}`},
	"data_parse":       {`{"content":"a,b\n1,2"}`, `{"content":"[]","format":"json","limit":1000}`, `{"path":"sales.csv","save_as":"sales"}`},
	"data_filter":      {`{"records":[{"a":1}],"where":[{"column":"a","op":"==","value":1},{"column":"a","op":"in","value":[1,"x",null]}]}`, `{"records":[{"a":true}],"where":[{"column":"a","op":"!=","value":false}]}`},
	"data_aggregate":   {`{"records":[{"a":1}],"metrics":[{"column":"a","op":"sum"}]}`, `{"records":[{"a":1}],"group_by":["a"],"metrics":[{"column":"a","op":"avg"}]}`},
	"data_transform":   {`{"records":[{"a":1}],"select":["a"],"rename":{"a":"b"},"sort_by":"b","sort_desc":true,"limit":5}`, `{"records":[]}`, `{"table":"sales","sort_by":"a","offset":10,"save_as":"sorted"}`},
	"data_export":      {`{"path":"out/b.csv","table":"sales"}`, `{"path":"b.txt","records":[{"a":1}],"format":"jsonl"}`},
	"http_fetch":       {`{"url":"https://example.com/"}`, `{"url":"https://example.com/","max_chars":8000}`, `{"url":"https://example.com/","method":"POST","headers":{"Accept":"text/plain"},"body":"x"}`},
	"web_search":       {`{"query":"what is a pawl"}`, `{"query":"x","limit":20}`},
	"execute_code":     {`{"code":"set_result(1)"}`, `{"code":"x = 1","timeout":300}`},
	"todo":             {`{}`, `{"items":[{"text":"x","state":"open"}]}`},
	"execute_plan":     {`{"steps":[{"tool":"web_search","args":{"query":"Go error handling"}},{"tool":"file_list","args":{}}]}`},
	"shell_exec":       {`{"command":"ls"}`, `{"command":"ls","timeout":300}`},
	"remember":         {`{"content":"Likes tea."}`},
	"memory_list":      {`{}`, `{"query":"tea","limit":5}`},
	"memory_forget":    {`{"id":"m1"}`},
	"skill_search":     {`{"query":"release notes"}`},
	"skill_load":       {`{"name":"release-notes"}`},
	"skill_create":     {`{"name":"release-notes","description":"Writes them.","instructions":"Do it.","tags":["a"],"tools":["file_read"],"model":"openai:gpt-6.1-terra","references":["b"]}`},
	"skill_update":     {`{"id":"release-notes","instructions":"Do it well.","tags":[]}`},
	"knowledge_search": {`{"query":"days of leave"}`},
	"schedule_create":  {`{"description":"Morning news","when":"daily 08:00","prompt":"What is new?"}`, `{"description":"Backup","when":"0 3 * * *","zone":"Europe/Oslo","misfire":"skip","tools":[{"tool":"web_search"}]}`},
	"schedule_list":    {`{}`},
	"schedule_update":  {`{"id":"s1","enabled":false}`, `{"description_query":"news","when":"weekdays 07:30"}`},
	"schedule_delete":  {`{"id":"s1"}`, `{"description_query":"news"}`},
}

// bad are calls that cannot be executed, with a part of the result for the model: the field, the
// fault, and the remedy.
var bad = []struct{ tool, args, want string }{
	{"file_read", `{}`, `missing required field "path"`},
	{"file_read", `{"path":"/etc/passwd"}`, "relative to the root"},
	{"file_read", `{"path":"../x"}`, ".."},
	{"file_read", `{"path":"gone.txt"}`, "gone.txt"},
	{"file_read", `{"file":"a.txt"}`, `unknown field "file"`},
	{"file_write", `{"path":"b.txt"}`, `missing required field "content"`},
	{"file_write", `{"path":"a.txt","content":"x","expect":"12"}`, "expect"},
	{"file_write", `{"path":"../b.txt","content":"x"}`, ".."},
	{"file_list", `{"path":"gone"}`, "gone"},
	{"file_list", `{"path":"a.txt"}`, "a.txt"},
	{"file_delete", `{"path":"."}`, "root"},
	{"file_delete", `{"path":"gone"}`, "gone"},
	{"file_stat", `{"path":7}`, "field path: expected string, got number 7"},
	{"file_stat", `{"path":"gone"}`, "gone"},
	{"file_edit", `{"path":"a.txt"}`, `missing required field "edits"`},
	{"file_edit", `{"path":"a.txt","edits":[]}`, "edits"},
	{"file_edit", `{"path":"a.txt","edits":[{"old":"hell","new":"heaven"},{"old":"heavenly","new":"x"}]}`, `edits[1]: "a.txt" has no text like old; nothing was changed. The nearest is in line 1: "heaveno"`},
	{"file_edit", `{"path":"a.txt","edits":[{"old":"l","new":"x"}]}`, "old stands in \"a.txt\" 2 times (lines 1, 1); nothing was changed. Take in lines around it"},
	{"file_edit", `{"path":"../a.txt","edits":[{"old":"l","new":"x"}]}`, ".."},
	{"file_search", `{}`, "give pattern, what to look for in the files, or include"},
	{"file_search", `{"pattern":"a(b"}`, `missing closing ) in "a(b"`},
	{"file_search", `{"pattern":"a","path":"/etc"}`, "relative to the root"},
	{"file_search", `{"include":["a[b"]}`, `include[0]: "a[b" is no glob: a [ or a { is never closed`},
	{"data_parse", `{"content":""}`, "content"},
	{"data_parse", `{"content":"a","format":"xml"}`, `"csv", "json", "jsonl"`},
	{"data_filter", `{"records":[{"a":1}],"where":[]}`, "where"},
	{"data_filter", `{"records":[{"a":1}],"where":[{"column":"b","op":"==","value":1}]}`, `unknown column "b"`},
	{"data_filter", `{"records":[{"a":1}],"where":[{"column":"a","op":"~","value":1}]}`, "op"},
	{"data_aggregate", `{"records":[{"a":1}],"metrics":[]}`, "metrics"},
	{"data_aggregate", `{"records":[{"a":1}],"metrics":[{"column":"b","op":"sum"}]}`, `unknown column "b"`},
	{"data_transform", `{"records":[{"a":1}],"sort_by":"b"}`, `unknown column "b"; the columns are "a"`},
	{"data_transform", `{"select":["a"]}`, "give records (an array of objects, or the text of a CSV, JSON or JSONL file), or table"},
	{"data_transform", `{"table":"sales"}`, `table: no table "sales" is stored in this run; a call with save_as stores a table`},
	{"data_transform", `{"table":"sales","records":[]}`, "give records or table, not both"},
	{"data_transform", `{"records":[{"a":1}],"offset":3}`, "offset 3 is out of range: there are 1 records"},
	{"data_filter", `{"where":[{"column":"a","op":"==","value":1}]}`, "or table, the name of a table that an earlier call stored with save_as"},
	{"data_aggregate", `{"records":[{"a":1}],"metrics":[{"column":"a","op":"sum"}],"save_as":"my sums"}`, "save_as"},
	{"data_parse", `{}`, "give content, the text of the file, or path, where the file is"},
	{"data_parse", `{"path":"a.txt","content":"a"}`, "give content or path, not both"},
	{"data_parse", `{"path":"b.csv"}`, `no such file: "b.csv"; the root has: a.txt`},
	{"data_parse", `{"path":"../b.csv"}`, "path traversal not allowed"},
	{"data_export", `{"path":"../b.csv","records":[{"a":1}]}`, "path traversal not allowed"},
	{"data_export", `{"path":"b.csv"}`, "give records"},
	{"data_export", `{"path":"b.csv","records":[],"format":"xml"}`, "format"},
	{"http_fetch", `{"url":"example"}`, "it begins with https:// or http://"},
	{"http_fetch", `{"url":"file:///etc/passwd"}`, "https:// or http://"},
	{"http_fetch", `{"url":"http://127.0.0.1/"}`, "is refused"},
	{"http_fetch", `{"url":"https://example.com/","body":"x"}`, "a GET request has no body; leave body out"},
	{"http_fetch", `{"url":"https://example.com/","headers":{"Host":"x"}}`, "the header Host cannot be set; leave it out"},
	{"web_search", `{}`, `missing required field "query"`},
	{"web_search", `{"query":""}`, "query"},
	{"web_search", `{"query":" \n "}`, "query is empty: say in a few words what to look for"},
	{"web_search", `{"query":"x","limit":99}`, "limit"},
	{"execute_code", `{"code":""}`, "code"},
	{"execute_code", `{"code":"x = 1","timeout":301}`, "timeout"},
	{"execute_code", `{"program":"x = 1"}`, "code"},
	{"execute_code", `{"code":"x = ("}`, "Nothing was run"},
	{"execute_code", `{"code":"import os"}`, "There is no import here"},
	{"execute_code", `{"code":"call_tool('file_raed', {})"}`, `Unknown tool "file_raed"`},
	{"execute_plan", `{"steps":[]}`, "The plan has no steps: give 1 to 50."},
	{"execute_plan", `{"steps":[{"tool":"execute_plan","args":{}}]}`, "put its steps into this one"},
	{"execute_plan", `{"steps":[{"args":{}}]}`, `missing required field "tool"`},
	{"todo", `{"items":[{"text":"x","state":"doing"},{"text":"y","state":"doing"}]}`, "2 items are doing"},
	{"todo", `{"items":[{"text":"x"}]}`, `missing required field "state"`},
	{"shell_exec", `{"command":""}`, "command"},
	{"shell_exec", `{"cmd":"ls"}`, `unknown field "cmd"`},
	{"shell_exec", `{"command":"ls","timeout":301}`, "timeout"},
	{"shell_exec", `{"command":"a\u0000b"}`, "the command has a zero byte in it; leave it out"},
	{"remember", `{"content":""}`, "content"},
	{"remember", `{"fact":"x"}`, `unknown field "fact"`},
	{"memory_list", `{"limit":0}`, "limit"},
	{"memory_list", `{"limit":"many"}`, "limit"},
	{"memory_forget", `{}`, `missing required field "id"`},
	{"memory_forget", `{"id":"gone"}`, "gone"},
	{"skill_search", `{"query":""}`, "query"},
	{"skill_search", `{"query":"x","limit":1000}`, "limit"},
	{"skill_load", `{"name":""}`, "name"},
	{"skill_load", `{"name":"gone"}`, "gone"},
	{"skill_create", `{"name":"x"}`, `missing required fields "description", "instructions"`},
	{"skill_create", `{"name":"A B/..","description":"d","instructions":"i"}`, "name"},
	{"skill_update", `{"id":"gone","instructions":"x"}`, "gone"},
	{"skill_update", `{"instructions":"x"}`, `missing required field "id"`},
	{"knowledge_search", `{"query":""}`, "query"},
	{"schedule_create", `{"when":"daily 08:00","prompt":"x"}`, `missing required field "description"`},
	{"schedule_create", `{"description":"d","when":"some day","prompt":"x"}`, "some day"},
	{"schedule_create", `{"description":"d","when":"daily 08:00"}`, "prompt"},
	{"schedule_create", `{"description":"d","when":"daily 08:00","tools":[{"tool":"gone"}]}`, "gone"},
	{"schedule_create", `{"description":"d","when":"daily 08:00","tools":[{"tool":"web_search","params":{"q":"x"}}]}`, `unknown field "q"`},
	{"schedule_create", `{"description":"d","when":"daily 08:00","zone":"Mars/Olympus","prompt":"x"}`, "Mars/Olympus"},
	{"schedule_list", `{"all":true}`, `unknown field "all"`},
	{"schedule_list", `[]`, "object"},
	{"schedule_update", `{"id":"gone","enabled":false}`, "schedule_list shows what there is"},
	{"schedule_update", `{}`, "Say which one"},
	{"schedule_delete", `{"id":"gone"}`, "schedule_list shows what there is"},
	{"schedule_delete", `{"description_query":"*"}`, "one after another, by id"},
	{"knowledge_search", `{"question":"x"}`, `unknown field "question"`},
}

// inside are words of Go and paths of this machine, which no model can use.
var inside = regexp.MustCompile(`(?i)unmarshal|go value|json: |goroutine|\bpanic|nil pointer|struct field|sql:|sqlite|/home/|` + regexp.QuoteMeta(os.TempDir()))

func TestEveryTool(t *testing.T) {
	all := everyTool(t)
	rows := map[string]int{}
	for _, r := range bad {
		tool := all[r.tool]
		if tool == nil {
			t.Errorf("there is no tool %s", r.tool)
			continue
		}
		rows[r.tool]++
		x := pawl.Toolsets{tool}.Execute(t.Context(), llm.ToolCall{ID: "c1", Name: r.tool, Args: json.RawMessage(r.args)})
		text := x.Result.Text()
		if x.Outcome != pawl.OutcomeInvalid && x.Outcome != pawl.OutcomeError || !x.Result.IsError {
			t.Errorf("%s %s: outcome %s: %s", r.tool, r.args, x.Outcome, text)
		}
		if !strings.Contains(text, r.want) || inside.MatchString(text) || len(strings.Fields(text)) < 4 {
			t.Errorf("%s %s: the model is told %q, want %q in it", r.tool, r.args, text, r.want)
		}
	}
	for name, tool := range all {
		if rows[name] < 2 {
			t.Errorf("%s has %d rows of bad calls, want 2 at least", name, rows[name])
		}
		if len(good[name]) == 0 {
			t.Errorf("%s has no good call", name)
		}
		for _, args := range good[name] {
			if err := taken(t.Context(), tool, args); err != "" {
				t.Errorf("%s %s: %s", name, args, err)
			}
		}
		// The control: no schema accepts arguments that are not an object or have an unknown field.
		for _, args := range []string{`[]`, `{"no such field":1}`} {
			if taken(t.Context(), tool, args) == "" {
				t.Errorf("%s takes %s", name, args)
			}
		}
	}
}

// taken returns the fault that the pipeline finds in arguments before a tool runs. "" means no
// fault.
func taken(ctx context.Context, tool *pawl.Tool, args string) string {
	idle := tool.Clone()
	idle.NoRepair = true
	idle.Run = func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult("taken"), nil }
	x := pawl.Toolsets{idle}.Execute(ctx, llm.ToolCall{ID: "c1", Name: tool.Name, Args: json.RawMessage(args)})
	if x.Outcome == pawl.OutcomeOK {
		return ""
	}
	return x.Result.Text()
}

// docs/tools.md has a row for every tool, below its family, with its effect.
func TestToolsPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	family := ""
	row := regexp.MustCompile("^\\| `(\\w+)` \\| (\\w+) \\| [^|]+ \\|$")
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			family = name
		} else if m := row.FindStringSubmatch(line); m != nil {
			got = append(got, family+" "+m[1]+" "+m[2])
		}
	}
	all, _, closeSets, err := builtinTools(t.Context(), &cli.System{Env: func(string) string { return "" }},
		assemble.ToolFlags{}, assemble.OutsideFlags{}, assemble.ServerFlags{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSets()
	for _, tool := range all {
		want = append(want, fmt.Sprint(tool.Set, " ", tool.Name, " ", tool.Effect))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/tools.md has not the tools that there are. Got +, want -\n%s", diff)
	}
}
