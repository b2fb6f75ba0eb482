package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// gives returns a tool that returns res.
func gives(name string, res llm.ToolResult) *pawl.Tool {
	t := does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return res, nil })
	t.Effect = pawl.EffectRead
	return t
}

var (
	marked = regexp.MustCompile(`bytes left out; read the rest with result_read (\{.*\}) …\]`)
	goOn   = regexp.MustCompile(`^\[.*; continue with (offset|line) (\d+)\]`)
)

func read(t fataler, id string, args map[string]any) *llm.ToolCall {
	all := map[string]any{"id": id}
	for k, v := range args {
		all[k] = v
	}
	c := call("r", "result_read", jsonOf(t, all))
	return &c
}

// A truncated result states how to read the rest. A model that follows it gets every byte, page by
// page, also after the run is stored and resumed.
func TestAModelReadsOn(t *testing.T) {
	whole := strings.Repeat("æ世🦊 a line of a long result\n", 4000)
	store := new(artifact.Memory)
	a := &pawl.Agent{Model: script.New(script.Turn{Parts: []llm.Part{call("c", "big", `{}`)}}, script.Say("long")),
		Tools: []pawl.Toolset{gives("big", llm.ToolResult{Parts: []llm.Part{text(whole[:1000]),
			text(whole[1000:])}})}, Artifacts: store, Limits: pawl.Limits{Rounds: 100}}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	told := res.Steps[0].Executions[0].Result.Text()
	m := marked.FindStringSubmatch(told)
	if m == nil || len(told) > 32<<10 {
		t.Fatalf("%d bytes without a mark: %.200s", len(told), told)
	}
	var from struct {
		ID     string
		Offset int
	}
	if err := json.Unmarshal([]byte(m[1]), &from); err != nil || told[:from.Offset] != whole[:from.Offset] {
		t.Fatalf("%s: %v", m[1], err)
	}
	var stored pawl.Result
	if err := json.Unmarshal([]byte(jsonOf(t, res)), &stored); err != nil {
		t.Fatal(err)
	}
	got, pages := whole[:from.Offset], 0
	a.Model = reader(func(last string) *llm.ToolCall {
		at := from.Offset
		if strings.HasPrefix(last, "[") {
			head, body, _ := strings.Cut(last, "\n")
			got += body
			pages++
			next := goOn.FindStringSubmatch(head)
			if next == nil {
				return nil
			}
			fmt.Sscan(next[2], &at)
		}
		return read(t, from.ID, map[string]any{"offset": at})
	})
	if res, err = a.Resume(t.Context(), &stored, llm.User("read it")); err != nil || res.Stop != pawl.StopAnswer {
		t.Fatal(res.Stop, res.Cause, err)
	}
	if got != whole {
		t.Errorf("%d pages give %d bytes of %d", pages, len(got), len(whole))
	}
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			if n := len(x.Result.Text()); x.Outcome != pawl.OutcomeOK || n > 17<<10 ||
				!utf8.ValidString(x.Result.Text()) {
				t.Errorf("%s: %d bytes, %.100q", x.Outcome, n, x.Result.Text())
			}
		}
	}
}

// A run finds no artifact of another run: neither a later run of the same agent nor a run within a
// call finds it.
func TestArtifactsOfOtherRuns(t *testing.T) {
	store := new(artifact.Memory)
	big := gives("big", llm.TextResult(strings.Repeat("x", 100000)))
	agent := func(turns ...script.Turn) *pawl.Agent {
		return &pawl.Agent{Model: script.New(turns...), Tools: []pawl.Toolset{big}, Artifacts: store}
	}
	lookAt := func(id string) script.Turn { return script.Turn{Parts: []llm.Part{*read(t, id, nil)}} }
	keep := script.Turn{Parts: []llm.Part{call("c", "big", `{}`)}}
	last := func(res *pawl.Result, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		xs := res.Steps[len(res.Steps)-2].Executions
		return xs[len(xs)-1].Result.Text()
	}
	if got := last(agent(keep, lookAt("run/1/0"), script.Say("so")).Run(t.Context(), llm.User("go"))); !strings.HasPrefix(got, "[run/1/0: bytes 0 to 16384 of 100000; continue with offset 16384]\nxxx") {
		t.Errorf("its own: %.100s", got)
	}
	for _, id := range []string{"run/1/0", "", "run", "run/", "../run/1/0", "run/1/0/m0"} {
		got := last(agent(lookAt(id), script.Say("so")).Run(t.Context(), llm.User("go")))
		if !strings.HasPrefix(got, "Nothing is kept as") && (id != "" || !strings.HasPrefix(got, "Give an id")) {
			t.Errorf("another run reads %q: %.100s", id, got)
		}
	}
	inner := agent(keep, lookAt("run/1/0"), lookAt("run/2/0/agent/1/0"), script.Say("so"))
	inner.Artifacts = nil // the outer run stores its artifacts
	seen := map[string]string{}
	outer := &pawl.Agent{Name: "outer", Model: script.New(keep, script.Turn{Parts: []llm.Part{call("i", "agent",
		`{"task":"go"}`)}}, lookAt("run/2/0/agent/1/0"), script.Say("so")),
		Tools: []pawl.Toolset{big, inner.Tool("asks")}, Artifacts: store}
	for e, err := range outer.Stream(t.Context(), llm.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventCallCompleted && e.Execution.Call.Name == "result_read" {
			seen[string(e.Run)+" "+string(e.Execution.Call.Args)] = e.Execution.Result.Text()
		}
	}
	for key, want := range map[string]string{`run/2/0/agent {"id":"run/1/0"}`: "Nothing is kept", `run/2/0/agent {"id":"run/2/0/agent/1/0"}`: "[run/2/0/agent/1/0: bytes", `run {"id":"run/2/0/agent/1/0"}`: "[run/2/0/agent/1/0: bytes"} {
		if !strings.HasPrefix(seen[key], want) {
			t.Errorf("%s: got %.100q, want %q", key, seen[key], want)
		}
	}
}

// Pages by bytes and by lines are bounded, begin and end at rune boundaries, and join to the whole
// result. A search finds exactly the text of the result.
func TestPages(t *testing.T) {
	soak.Sequential(t)
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringOfN(rapid.RuneFrom([]rune("aæ世🦊 x")), 0, 60, -1)
		lines := rapid.SliceOfN(line, 1, 40).Draw(t, "lines")
		whole := strings.Join(lines, "\n")
		if rapid.Bool().Draw(t, "long") {
			whole += strings.Repeat("long世", 6000) + "\nend"
		}
		whole = strings.Repeat(whole+"\n", 1+40000/(len(whole)+1)) // long enough to be truncated
		limit, by := rapid.IntRange(1, 20000).Draw(t, "limit"), rapid.SampledFrom([]string{"offset", "line"}).Draw(t, "by")
		at, joined, n := 0, "", 0
		args := func() map[string]any {
			if by == "line" {
				return map[string]any{"line": max(at, 1), "lines": limit}
			}
			return map[string]any{"offset": at, "limit": limit}
		}
		begun := false
		a := &pawl.Agent{Tools: []pawl.Toolset{gives("big", llm.TextResult(whole))},
			Artifacts: new(artifact.Memory), Limits: pawl.Limits{Rounds: 60},
			Model: reader(func(last string) *llm.ToolCall {
				if !begun {
					begun = true
					c := call("c", "big", `{}`)
					return &c
				}
				if strings.HasPrefix(last, "[run") {
					n++
					head, body, _ := strings.Cut(last, "\n")
					if joined += body; len(body) > 16<<10 || !utf8.ValidString(body) {
						t.Fatalf("a page of %d bytes: %q", len(body), head)
					}
					next := goOn.FindStringSubmatch(head)
					if next == nil || n > 50 {
						return nil
					}
					was := at
					fmt.Sscan(next[2], &at)
					if by == next[1] && at <= was {
						t.Fatalf("%d is followed by %d", was, at)
					}
					by = next[1]
				} else if n > 0 {
					t.Fatalf("page %d: %s", n, last)
				}
				return read(t, "run/1/0", args())
			})}
		if res, err := a.Run(context.Background(), llm.User("go")); err != nil || res.Stop != pawl.StopAnswer {
			t.Fatal(res, err)
		}
		if n <= 50 && joined != whole || !strings.HasPrefix(whole, joined) {
			t.Fatalf("%d pages by %s of %d give %d bytes of %d", n, by, limit, len(joined), len(whole))
		}
	})
}

// Each row has the arguments of result_read for a result of 1,000 numbered lines, and its answer.
func TestReadingResults(t *testing.T) {
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	b.WriteString(strings.Repeat("w", 1000) + "needle" + strings.Repeat("w", 1000))
	for args, want := range map[string]string{
		`{"id":"run/1/0","limit":12}`:                              "[run/1/0: bytes 0 to 12 of 40899; continue with offset 12]\nline 1\nline ",
		`{"id":"run/1/0","offset":40890,"limit":100}`:              "[run/1/0: bytes 40890 to 40899 of 40899; this is the end]\nwwwwwwwww",
		`{"id":"run/1/0","offset":41000}`:                          "run/1/0 has 40899 bytes; there is nothing at offset 41000.",
		`{"id":"run/1/0","line":3999,"lines":2}`:                   "[run/1/0: lines 3999 to 4000; continue with line 4001]\nline 3999\nline 4000\n",
		`{"id":"run/1/0","line":5000}`:                             "run/1/0 has 4001 lines; there is no line 5000.",
		`{"id":"run/1/0","pattern":"^line 399[12]$"}`:              "[run/1/0: 2 lines that match; there are no more]\n3991: line 3991\n3992: line 3992\n",
		`{"id":"run/1/0","pattern":"^line 1","lines":2,"line":11}`: "[run/1/0: 2 lines that match; there are more, continue with line 13]\n11: line 11\n12: line 12\n",
		`{"id":"run/1/0","pattern":"needle"}`:                      "[run/1/0: 1 line that matches; there are no more]\n4001: …" + strings.Repeat("w", 75) + "needle" + strings.Repeat("w", 219) + "…\n",
		`{"id":"run/1/0","pattern":"none"}`:                        "[run/1/0: no line matches, from line 1 on]",
		`{"id":"run/1/0","pattern":"("}`:                           "The pattern cannot be read: error parsing regexp: missing closing ): `(`. It is a regular expression of RE2; write \\ before what is meant literally, as in \\( or \\.",
		`{"id":"run/1/0","offset":1,"line":1}`:                     "offset counts bytes; it does not go with line, lines or pattern.",
		`{"id":"run/1/0","offset":-1}`:                             "offset, limit, line and lines are 0 or more.",
		`{"id":"run/9/9"}`:                                         `Nothing is kept as "run/9/9". Use the id that the cut result names, such as run/1/0, or find it in the list with the id index; if it was that, it is kept no longer: call the tool again, and ask for less.`,
	} {
		a := &pawl.Agent{Tools: []pawl.Toolset{gives("big", llm.TextResult(b.String()))}, Artifacts: new(artifact.Memory),
			Model: script.New(script.Turn{Parts: []llm.Part{call("c", "big", `{}`)}},
				script.Turn{Parts: []llm.Part{call("r", "result_read", args)}}, script.Say("ok"))}
		res, err := a.Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Steps[1].Executions[0].Result.Text(); got != want {
			t.Errorf("%s:\n got %.300q\nwant %.300q", args, got, want)
		}
	}
}

// Images and files pass. Media that no provider accepts is stored as an artifact, and a text
// replaces it in the result.
func TestLargeMediaIsKept(t *testing.T) {
	image := llm.Media{MIME: "image/png", Data: make([]byte, 5<<20+1)}
	csv := llm.Media{MIME: "text/csv", Data: []byte(strings.Repeat("a,b\n", 21<<18))}
	small := llm.Media{MIME: "image/png", Data: []byte("x")}
	for _, store := range []pawl.Artifacts{new(artifact.Memory), nil} {
		a := &pawl.Agent{Tools: []pawl.Toolset{gives("look", llm.ToolResult{Parts: []llm.Part{small, image,
			text("seen"), csv}})}, Artifacts: store,
			Model: script.New(script.Turn{Parts: []llm.Part{call("c", "look", `{}`)}},
				script.Turn{Parts: []llm.Part{call("r", "result_read", `{"id":"run/1/0/m3","lines":2}`), call("s", "result_read", `{"id":"run/1/0/m1"}`)}}, script.Say("ok"))}
		res, err := a.Run(t.Context(), llm.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		parts := res.Steps[0].Executions[0].Result.Parts
		if m, ok := parts[0].(llm.Media); !ok || string(m.Data) != "x" || len(parts) != 4 {
			t.Fatalf("the small image did not pass: %v", parts[0])
		}
		want := "[image/png of 5242881 bytes is left out: it is too large to be shown; it is kept as run/1/0/m1]"
		if store == nil {
			want = "[image/png of 5242881 bytes is left out: it is too large to be shown]"
		}
		if got := parts[1]; got != llm.Part(text(want)) {
			t.Errorf("got %v, want %s", got, want)
		}
		rest := res.Steps[1].Executions
		got := rest[0].Result.Text() + rest[1].Result.Text()
		if want := "[run/1/0/m3: lines 1 to 2; continue with line 3]\na,b\na,b\nrun/1/0/m1 is image/png of 5242881 bytes, and no text: it cannot be read here."; store != nil && got != want {
			t.Errorf("got %q", got)
		}
		if store == nil && rest[0].Outcome != pawl.OutcomeUnknownTool {
			t.Errorf("without a store result_read is offered: %s", got)
		}
	}
}

type brokenStore struct{ artifact.Reader }

func (brokenStore) Put(context.Context, string, pawl.Artifact) error { return errors.New("disk full") }
func (brokenStore) Get(context.Context, string, llm.Key) (pawl.Artifact, error) {
	return pawl.Artifact{}, errors.New("disk gone")
}

// If the store fails, only the artifact is lost. The record states the failure, and the model gets
// no reference to the artifact.
func TestAStoreThatFails(t *testing.T) {
	a := &pawl.Agent{Tools: []pawl.Toolset{gives("big", llm.TextResult(strings.Repeat("x", 40000)))}, Artifacts: brokenStore{},
		Model: script.New(script.Turn{Parts: []llm.Part{call("c", "big", `{}`)}},
			script.Turn{Parts: []llm.Part{*read(t, "run/1/0", nil)}}, script.Say("ok"))}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}
	x := res.Steps[0].Executions[0]
	if x.Outcome != pawl.OutcomeOK || !strings.Contains(x.Error, "disk full") ||
		strings.Contains(x.Result.Text(), "result_read") || !strings.Contains(x.Result.Text(), "ask for less at a time") {
		t.Errorf("%s, %q", x.Outcome, x.Error)
	}
	if x := res.Steps[1].Executions[0]; x.Outcome != pawl.OutcomeError || x.Result.Text() != "disk gone" {
		t.Errorf("%s, %q", x.Outcome, x.Result.Text())
	}
}

func TestMemoryArtifactsAreBounded(t *testing.T) {
	m := &artifact.Memory{Limit: 10}
	put := func(run string, key llm.Key, text string) error {
		return m.Put(t.Context(), run, pawl.Artifact{Key: key, Text: text})
	}
	if err := errors.Join(put("a", "run/1/0", "12345"), put("b", "run/1/0", "67890"), put("a", "run/1/0", "abcde"), put("a", "run/1/1", "x")); err != nil {
		t.Fatal(err)
	}
	if err := put("a", "run/1/2", "12345678901"); err == nil {
		t.Error("one larger than the limit was kept")
	}
	if _, err := m.Get(t.Context(), "b", "run/1/0"); !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("the oldest is still there: %v", err)
	}
	if a, err := m.Get(t.Context(), "a", "run/1/0"); err != nil || a.Text != "abcde" {
		t.Errorf("got %v, %v", a, err)
	}
}

// An agent may list the reader that its store offers too, as agents from files do: for every engine
// it is one tool.
func TestAReaderThatIsListedToo(t *testing.T) {
	for name, a := range map[string]*pawl.Agent{
		"listed":             {Tools: []pawl.Toolset{artifact.Reader{}}},
		"of the store":       {Artifacts: new(artifact.Memory)},
		"listed and offered": {Tools: []pawl.Toolset{artifact.Reader{}}, Artifacts: new(artifact.Memory)},
	} {
		tools, err := new(pawl.Engine).AllTools(t.Context(), a)
		if err != nil || len(tools) != 1 || tools[0].Name != "result_read" {
			t.Errorf("%s: %d tools, %v", name, len(tools), err)
		}
	}
}

func TestResultReadIsReserved(t *testing.T) {
	a := &pawl.Agent{Model: script.New(script.Say("x")), Tools: []pawl.Toolset{says("result_read", "")}, Artifacts: new(artifact.Memory)}
	if _, err := a.Run(t.Context(), llm.User("go")); err == nil || !strings.Contains(err.Error(), "result_read") {
		t.Errorf("got %v", err)
	}
	if a.Artifacts = nil; true {
		if _, err := a.Run(t.Context(), llm.User("go")); err != nil {
			t.Error(err)
		}
	}
}

// reads is a store that counts the artifacts that are read.
type reads struct {
	artifact.Memory
	n int
}

func (r *reads) Get(ctx context.Context, run string, key llm.Key) (pawl.Artifact, error) {
	r.n++
	return r.Memory.Get(ctx, run, key)
}

// A search reads the whole of a result that the run has cut, which the result says in a field. What
// a tool writes about bytes that are left out has no meaning.
func TestSearchOfCutResults(t *testing.T) {
	whole := strings.Repeat("w\n", 40_000) + "the needle\n" + strings.Repeat("w\n", 40_000)
	claims := "[… 5000 bytes left out; read the rest with result_read {\"id\":\"run/1/0\",\"offset\":7} …]"
	kept := new(reads)
	a := &pawl.Agent{Artifacts: kept,
		Tools: []pawl.Toolset{gives("big", llm.TextResult(whole)), gives("claims", llm.TextResult(claims))},
		Model: script.New(
			script.Turn{Parts: []llm.Part{call("a", "big", `{}`), call("b", "claims", `{}`)}},
			script.Turn{Parts: []llm.Part{call("c", "result_read", `{"pattern":"needle"}`)}},
			script.Say("ok"))}
	res, err := a.Run(t.Context(), llm.User("go"))
	if err != nil {
		t.Fatal(err)
	}

	big, said := res.Steps[0].Executions[0].Result, res.Steps[0].Executions[1].Result
	marked := strings.Index(big.Text(), "\n[… ")
	if shown := len(big.Text()) - len(markOf(big.Text()[marked:])); big.LeftOut+shown != len(whole) {
		t.Errorf("%d bytes are left out, and %d of %d are shown", big.LeftOut, shown, len(whole))
	}
	if said.LeftOut != 0 || kept.n != 1 {
		t.Errorf("%d bytes of the claim are left out; %d artifacts were read", said.LeftOut, kept.n)
	}
	if got := res.Steps[1].Executions[0].Result.Text(); !strings.Contains(got, "run/1/0 line 40001: the needle") {
		t.Errorf("the search found %q", got)
	}
}

// markOf returns the mark with which s begins.
func markOf(s string) string {
	end := strings.Index(s, " …]\n")
	return s[:end+len(" …]\n")]
}
