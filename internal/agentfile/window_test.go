package agentfile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// small writes a catalogue in which openai:sim has a window of n tokens.
func small(t *testing.T, dir string, n int) {
	t.Helper()
	data := fmt.Sprintf(`[{"provider":"openai","id":"sim","calling":true,"window":%d}]`, n)
	if err := os.WriteFile(filepath.Join(dir, "models.json"), []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// An agent from a file works for 200 steps in a window of 32k tokens, which a simulator enforces.
// With history: all it fails at the window. The list of the set todo stays in sight.
func TestWindowOfFiles(t *testing.T) {
	soak.Sequential(t)
	dir := t.TempDir()
	small(t, dir, 32_768)
	page := "line of the page\n"
	for name, dies := range map[string]bool{"": false, "history: window\n": false,
		"history: {window: {keep: 2}}\n": false, "history: all\n": true, "tools: [todo]\n": false} {
		calls, refused, put, listed := 0, 0, false, false
		model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			if calls++; calls > 200 {
				return script.Say("All read.")
			}
			if calls == 1 && strings.Contains(name, "todo") {
				return script.Call("todo", map[string]any{"items": []any{map[string]any{"text": "paint it", "state": "open"}}})
			}
			return script.Call("page_read", map[string]any{"n": calls})
		})))
		limit := func(_ int, r *pawltest.Received) *pawltest.Fault {
			listed = strings.Contains(string(r.Body), "The list of the tool todo:")
			put = put || strings.Contains(string(r.Body), "bytes put away")
			if len(r.Body)/4 > 32_768 {
				refused++
				return &pawltest.Fault{Status: 400, Code: "context_length_exceeded", Message: "maximum context length"}
			}
			return nil
		}
		sim, err := pawltest.NewSimulator(model, &pawltest.SimulatorOptions{Quiet: true, Fault: limit})
		if err != nil {
			t.Fatal(err)
		}
		text := "agent: reader\nmodel: {name: \"openai:sim\", base_url: \"" + sim.URL + "\"}\ncatalog: models.json\nlimits: {rounds: 300}\n" + name
		a := agentOf(t, dir, text)
		read := pageReader(strings.Repeat(page, 200))
		built, err := a.Build(t.Context(), &agentfile.Options{
			Getenv: environment, HTTP: http.DefaultTransport,
			Tools: []pawl.Toolset{read}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := built.Agent.Run(t.Context(), llm.User("Read all pages."))
		built.Close()
		sim.Close()
		var pe *llm.ProviderError
		if dies && (!errors.As(err, &pe) || pe.Code != llm.CodeContextLength) {
			t.Errorf("%q: %v; it should be refused", name, err)
		}
		if !dies && (err != nil || res.Text() != "All read." || refused > 0 || !put) {
			t.Errorf("%q: %v after %d calls, %d refused, put away: %v", name, err, calls, refused, put)
		}
		if listed != strings.Contains(name, "todo") {
			t.Errorf("%q: the list is in the last request: %v", name, listed)
		}
	}
}

// redirected sends all requests to the server at an address of this machine.
type redirected string

func (to redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	r.URL.Host = string(to)
	return http.DefaultTransport.RoundTrip(r)
}

// With history: {window: {native: true}} Claude summarizes, and the run continues from the summary.
func TestNativeWindowOfFiles(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "none")
	for _, native := range []bool{true, false} {
		const pages = 40
		summaries := 0
		first := ""
		calls := 0
		model := script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
			if calls++; calls > pages {
				return script.Say("All read.")
			}
			return script.Call("page_read", map[string]any{"n": calls})
		})))
		seen := func(_ int, r *pawltest.Received) *pawltest.Fault {
			if strings.Contains(string(r.Body), `"compaction":{"type":"summarize"}`) {
				summaries++
			}
			_, first, _ = strings.Cut(string(r.Body), `"messages":`)
			return nil
		}
		sim, err := pawltest.NewSimulator(model, &pawltest.SimulatorOptions{Quiet: true, Fault: seen})
		if err != nil {
			t.Fatal(err)
		}

		text := fmt.Sprintf("agent: reader\nmodel: anthropic:claude-sonnet-5-5\nlimits: {rounds: 100}\n"+
			"history: {window: {tokens: 12000, native: %v}}\n", native)
		a := agentOf(t, t.TempDir(), text)
		read := pageReader(strings.Repeat("line of the page\n", 100))
		built, err := a.Build(t.Context(), &agentfile.Options{
			Getenv: environment, HTTP: redirected(strings.TrimPrefix(sim.Root, "http://")), Tools: []pawl.Toolset{read}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := built.Agent.Run(t.Context(), llm.User("Read all pages."))
		built.Close()
		sim.Close()
		if err != nil || res.Text() != "All read." || calls != pages+1 || (summaries > 0) != native {
			t.Errorf("native %v: %v after %d calls, %d summaries", native, err, calls, summaries)
		}
		if strings.HasPrefix(first, `[{"role":"assistant","content":[{"content":"summary of`) != native {
			t.Errorf("native %v: the last request begins with %.200s", native, first)
		}
	}
}

// agentOf returns the agent of a file with text in dir.
func agentOf(t *testing.T, dir, text string) *agentfile.Agent {
	t.Helper()
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := agentfile.Load(file, &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	return f.Agents[0]
}

// pageReader returns a tool whose pages are all the same.
func pageReader(page string) *pawl.Tool {
	read := pawl.Func("page_read", "Reads a page.", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		return page, nil
	})
	read.Effect = pawl.EffectRead
	return read
}

// Check reports tools that leave too little room, and Explain what they take.
func TestWindowCheck(t *testing.T) {
	for tokens, want := range map[int]string{2_000: "more than 60 % of the room of 1500", 200_000: ""} {
		text := fmt.Sprintf("agent: reader\nmodel: openai:sim\ntools: [file]\nhistory: {window: {tokens: %d}}\n", tokens)
		a := agentOf(t, t.TempDir(), text)
		o := &agentfile.Options{Getenv: environment}
		got := a.Check(t.Context(), o)
		if want == "" && got != nil || want != "" && !strings.Contains(got.Error(), want) {
			t.Errorf("%d tokens: %v, want %q", tokens, got, want)
		}
		x, err := a.Explain(t.Context(), o, "go")
		if err != nil || x.Window != tokens || x.Room != tokens*3/4 || x.Taken < 900 {
			t.Errorf("%d tokens: %v, %+v", tokens, err, x)
		}
	}
}

// A result of 3 MB from an agent of a file is searched and read in full: its middle is stored, and
// result_read is offered as soon as a result is cut. Without a window nothing is stored.
func TestLargeResultsOfFiles(t *testing.T) {
	var big strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&big, "line %d\n", i)
	}
	for history, want := range map[string]string{
		"":               "[run/1/0: 1 line that matches; there are no more]\n200001: line 200000\n",
		"history: all\n": "Unknown tool",
	} {
		dir := t.TempDir()
		small(t, dir, 128_000)
		offered := []bool{}
		model := script.New(script.Func(func(req *llm.Request) script.Turn {
			return script.Call("page_read", map[string]any{"n": 1})
		}), script.Func(func(req *llm.Request) script.Turn {
			isReader := func(t *llm.ToolSpec) bool { return t.Name == "result_read" }
			offered = append(offered, slices.ContainsFunc(req.Tools, isReader))
			return script.Call("result_read", map[string]any{"id": "run/1/0", "pattern": "^line 200000$"})
		}), script.Say("done"))
		sim, err := pawltest.NewSimulator(model, &pawltest.SimulatorOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		text := "agent: reader\nmodel: {name: \"openai:sim\", base_url: \"" + sim.URL + "\"}\ncatalog: models.json\n" + history
		built, err := agentOf(t, dir, text).Build(t.Context(), &agentfile.Options{
			Getenv: environment, HTTP: http.DefaultTransport,
			Tools: []pawl.Toolset{pageReader(big.String())}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := built.Agent.Run(t.Context(), llm.User("Read."))
		built.Close()
		sim.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := res.Steps[1].Executions[0].Result.Text()
		if history == "" && got != want || history != "" && strings.Contains(got, "line 200000") {
			t.Errorf("%q: got %.200q, want %q", history, got, want)
		}
		if offered[0] != (history == "") {
			t.Errorf("%q: result_read is offered: %v", history, offered[0])
		}
	}
}
