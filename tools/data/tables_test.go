package data_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/data"
)

// within returns data tools over a directory, without the file tools: the rule that tool packages
// do not depend on each other holds for tests as well.
func within(dir string, limit int) *data.Set {
	return data.New(&data.Options{
		Open: func(_ context.Context, path string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, path)) },
		Create: func(_ context.Context, path string, content func(io.Writer) error) error {
			f, err := os.Create(filepath.Join(dir, path))
			if err != nil {
				return err
			}
			defer f.Close()
			return content(f)
		},
		Limit: limit,
	})
}

// calling returns a reply with calls, each a name and arguments.
func calling(calls ...[2]string) (turn script.Turn) {
	for _, c := range calls {
		turn.Parts = append(turn.Parts, llm.ToolCall{Name: c[0], Args: json.RawMessage(c[1])})
	}
	return turn
}

// asked runs the calls, one per step, and returns their answers.
func asked(t testing.TB, set pawl.Toolset, calls ...[2]string) []string {
	t.Helper()
	var turns []script.Turn
	for _, c := range calls {
		turns = append(turns, calling(c))
	}
	agent := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{set}}
	res, err := agent.Run(t.Context(), llm.User("go"))
	tooltest.Must(t, err)
	var told []string
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			told = append(told, x.Result.Text())
		}
	}
	return told
}

func TestTablesAreKept(t *testing.T) {
	dir := t.TempDir()
	var csv strings.Builder
	csv.WriteString("id,region,amount\n")
	for i := range 100 {
		fmt.Fprintf(&csv, "%d,%s,%d.5\n", i, []string{"north", "south"}[i%2], i)
	}
	tooltest.Must(t, os.WriteFile(filepath.Join(dir, "sales.csv"), []byte(csv.String()), 0o644))
	set := within(dir, 0)
	calls := [][2]string{
		{"data_parse", `{"path":"sales.csv","save_as":"sales"}`},
		{"data_filter", `{"table":"sales","where":[{"column":"amount","op":">=","value":50}],"save_as":"large"}`},
		{"data_aggregate", `{"table":"large","group_by":["region"],"metrics":[{"column":"amount","op":"sum"}],"save_as":"sums"}`},
		{"data_transform", `{"table":"large","select":["id","amount"],"rename":{"id":"number"},"sort_by":"amount","sort_desc":true,"save_as":"top"}`},
		{"data_transform", `{"table":"top","offset":2,"limit":2}`},
		{"data_transform", `{"table":"top","select":["id"]}`},
		{"data_transform", `{"table":"sales","limit":1}`},
		{"data_export", `{"table":"top","path":"top.csv"}`},
		{"data_export", `{"table":"sums","path":"sums.json"}`},
		{"data_export", `{"records":"a;b\n1;\" x\"\n","path":"b.jsonl"}`},
		{"data_filter", `{"table":"none","where":[{"column":"a","op":"==","value":1}]}`},
	}
	want := []string{
		`{"count":100,"truncated":true,"total":100,"returned":5,"next_offset":5,"table":"sales","columns":["id","region","amount"],"records":[{"id":"0","region":"north","amount":"0.5"},{"id":"1","region":"south","amount":"1.5"},{"id":"2","region":"north","amount":"2.5"},{"id":"3","region":"south","amount":"3.5"},{"id":"4","region":"north","amount":"4.5"}]}`,
		`{"count":50,"truncated":true,"total":50,"returned":5,"table":"large","records":[{"id":"50","region":"north","amount":"50.5"},{"id":"51","region":"south","amount":"51.5"},{"id":"52","region":"north","amount":"52.5"},{"id":"53","region":"south","amount":"53.5"},{"id":"54","region":"north","amount":"54.5"}]}`,
		`{"count":2,"table":"sums","groups":[{"region":"north","sum_amount":1862.5},{"region":"south","sum_amount":1887.5}]}`,
		`{"count":50,"truncated":true,"total":50,"returned":5,"table":"top","records":[{"number":"99","amount":"99.5"},{"number":"98","amount":"98.5"},{"number":"97","amount":"97.5"},{"number":"96","amount":"96.5"},{"number":"95","amount":"95.5"}]}`,
		`{"count":2,"records":[{"number":"97","amount":"97.5"},{"number":"96","amount":"96.5"}]}`,
		`select: unknown column "id"; the columns are "number", "amount"`,
		`{"count":1,"records":[{"id":"0","region":"north","amount":"0.5"}]}`,
		`Written 50 records (414 bytes) to top.csv`,
		`Written 2 records (83 bytes) to sums.json`,
		`Written 1 records (19 bytes) to b.jsonl`,
		`table: no table "none" is stored in this run; a call with save_as stores a table, for the calls of later steps`,
	}
	if diff := cmp.Diff(want, asked(t, set, calls...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"top.csv":   "number,amount\n99,99.5\n98,98.5\n",
		"sums.json": "[\n{\"region\":\"north\",\"sum_amount\":1862.5},\n{\"region\":\"south\",\"sum_amount\":1887.5}\n]\n",
		"b.jsonl":   "{\"a\":\"1\",\"b\":\" x\"}\n",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s has %q, %v; want %q", name, b, err, want)
		}
	}
	// Another run with the same tools finds no table.
	if got := asked(t, set, [2]string{"data_transform", `{"table":"sales"}`}); !strings.HasPrefix(got[0], "table: no table \"sales\" is stored") {
		t.Errorf("another run received %s", got[0])
	}
	// The calls of a step run concurrently: each sees only tables stored before the step.
	agent := &pawl.Agent{Model: script.New(
		calling([2]string{"data_parse", `{"content":"a\n1","save_as":"one"}`}, [2]string{"data_parse", `{"content":"a\n2","save_as":"two"}`}),
		calling([2]string{"data_transform", `{"table":"one"}`}, [2]string{"data_transform", `{"table":"two"}`}),
		script.Say("done")), Tools: []pawl.Toolset{set}}
	res, err := agent.Run(t.Context(), llm.User("go"))
	tooltest.Must(t, err)
	for i, want := range []string{`{"count":1,"records":[{"a":"1"}]}`, `{"count":1,"records":[{"a":"2"}]}`} {
		if got := res.Steps[1].Executions[i].Result.Text(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Stored tables have a size limit: the least recently used one is dropped, and the model learns how
// to create it again. A table that is too large is refused.
func TestTablesGo(t *testing.T) {
	set := within(t.TempDir(), 900)
	csv := quoted("a\n" + strings.Repeat("1\n", 10)) // about 200 bytes per table
	var calls [][2]string
	for i := range 5 {
		calls = append(calls, [2]string{"data_parse", fmt.Sprintf(`{"content":%s,"save_as":"t%d"}`, csv, i)}, [2]string{"data_transform", `{"table":"t0","limit":1}`})
	}
	calls = append(calls, [2]string{"data_transform", `{"table":"t1","limit":1}`},
		[2]string{"data_parse", `{"content":` + quoted("a\n"+strings.Repeat("1\n", 1000)) + `}`},
		[2]string{"data_parse", `{"content":"a\n1","save_as":"2t"}`})
	got := asked(t, set, calls...)
	for i, want := range map[int]string{9: `{"count":1,`, 10: `table: "t1" is no longer stored; store it again with the same call`, 11: "this is too large: 0 MiB are the most", 12: "save_as"} {
		if !strings.HasPrefix(got[i], want) && !strings.Contains(got[i], want) {
			t.Errorf("call %d returned %s; want %s", i, got[i], want)
		}
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Any text that is written as CSV is read back as the same text.
func FuzzExportCSV(f *testing.F) {
	f.Add("a", "b,c", "")
	f.Add(" x ", "\"", "\r\n")
	f.Add("|", ";", "\t")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		dir := t.TempDir()
		set := within(dir, 0)
		cells := []string{strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, ""), strings.ToValidUTF8(c, "")}
		for i := range cells { // reading converts these to \n
			cells[i] = strings.ReplaceAll(cells[i], "\r\n", "\n")
		}
		records, _ := json.Marshal([]map[string]string{{"k1": cells[0], "k2": cells[1], "k3": cells[2]}, {"k1": "x", "k2": "y", "k3": "z"}})
		res := tooltest.Call(t, set.Export, `{"path":"f.csv","records":`+string(records)+`}`)
		if strings.HasPrefix(res, "error") {
			t.Fatal(res)
		}
		got := read(t, tooltest.Call(t, set.Parse, `{"path":"f.csv"}`))
		if got.Count != 2 {
			t.Fatalf("%q: %v", cells, got)
		}
		for i, want := range cells {
			if got := got.Records[0][fmt.Sprintf("k%d", i+1)]; got != want {
				t.Errorf("cell %d of %q is read as %q", i, cells, got)
			}
		}
	})
}

// Bytes of a file that are not UTF-8 are reported.
func TestFileEncoding(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.csv": "name\ncaf\xe9\nok\n", "a.jsonl": "{\"name\":\"caf\xe9\"}\n{}\n", "a.json": "[{\"name\":\"caf\xe9\"}]", "b.csv": "name\ncafé\n"} {
		tooltest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		text := tooltest.Call(t, within(dir, 0).Parse, `{"path":"`+name+`"}`)
		if got, want := strings.Contains(text, "caf\uFFFD"), name != "b.csv"; got != want || strings.Contains(text, "UTF-8 throughout") != want {
			t.Errorf("%s: %s", name, text)
		}
	}
}
