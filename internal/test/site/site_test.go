package site

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// questions are what newcomers ask, each with the pages that answer. One of them is among the first
// three hits.
var questions = []struct{ ask, want string }{
	{"how do I stream to a browser", "guide/streaming.html"},
	{"how do I limit cost", "guide/costs.html"},
	{"what is the equivalent of a LangGraph interrupt", "from/langgraph.html"},
	{"how do I define a tool", "guide/tools.html"},
	{"structured output as a Go struct", "guide/structured-output.html"},
	{"human in the loop approval", "guide/approvals.html"},
	{"how do I store a conversation and continue it later", "guide/sessions.html"},
	{"how does an agent remember facts about a user", "guide/memory.html"},
	{"what happens after a crash in the middle of a run", "guide/durable.html"},
	{"handoff to another agent", "guide/teams.html"},
	{"context window is too small for a long conversation", "guide/context.html"},
	{"prompt injection guardrails", "guide/guardrails.html"},
	{"connect an MCP server", "guide/mcp.html"},
	{"how do I test an agent without an API key", "testing.html first-agent.html"},
	{"evals with an LLM as judge", "guide/evals.html"},
	{"process 1000 documents in a batch", "guide/batch.html"},
	{"deploy to production with PostgreSQL", "guide/deployment.html"},
	{"OpenTelemetry tracing", "guide/observability.html"},
	{"rate limit 429 retry", "guide/costs.html"},
	{"write my own model provider", "guide/extending.html"},
	{"migrate from OpenAI Agents SDK", "from/openai-agents.html"},
	{"which models support function calling", "providers.html drivers.html"},
	{"run a shell command in a sandbox", "security.html guide/guardrails.html guide/coding.html"},
	{"first agent quick start", "first-agent.html"},
}

func built(t *testing.T) (map[string][]byte, *Index) {
	t.Helper()
	files, err := Site(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	var x Index
	data, _ := strings.CutPrefix(string(files["index.js"]), "const index = ")
	if err := json.Unmarshal([]byte(strings.TrimSuffix(data, ";\n")), &x); err != nil {
		t.Fatal(err)
	}
	return files, &x
}

// TestQuestions searches the index of the site, in Go and in the script of the page.
func TestQuestions(t *testing.T) {
	files, x := built(t)
	for _, q := range questions {
		hits := x.Search(q.ask)
		var got []string
		for _, h := range hits[:min(3, len(hits))] {
			got = append(got, h.Target)
		}
		right := func(target string) bool { return slices.Contains(strings.Fields(q.want), target) }
		if !slices.ContainsFunc(got, right) {
			t.Errorf("%q finds %q, want one of %q", q.ask, got, q.want)
		}
	}
	node := parts.Program(t, "node", "nodejs")
	var asked []string
	for _, q := range questions {
		asked = append(asked, q.ask)
	}
	list, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "search.js")
	script := string(files["index.js"]) + string(files["search.js"]) + "\nconsole.log(JSON.stringify(" + string(list) +
		".map((q) => search(q).slice(0, 3).map((p) => p.target))));\n"
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for i, q := range questions {
		for j, h := range x.Search(q.ask)[:len(got[i])] {
			if got[i][j] != h.Target {
				t.Errorf("%q: search.js finds %q in place %d, Search %q", q.ask, got[i][j], j+1, h.Target)
			}
		}
	}
}

// TestSite requires that the pages refer to no other host while they load, and that llms.txt has
// each page.
func TestSite(t *testing.T) {
	files, x := built(t)
	for name, data := range files {
		for _, part := range []string{`src="http`, `<link `, "@import", "fetch("} {
			if strings.HasSuffix(name, ".html") && strings.Contains(strings.SplitN(string(data), "<main>", 2)[0], part) {
				t.Errorf("%s loads something with %q", name, part)
			}
		}
	}
	// The pages of the root are about the project: the start, its changes, patches and security.
	aboutProject := []string{"index.html", "CHANGELOG.html", "CONTRIBUTING.html", "SECURITY.html"}
	for _, p := range x.Pages {
		listed := strings.Contains(string(files["llms.txt"]), "("+p.Target+")")
		if !listed && !slices.Contains(aboutProject, p.Target) {
			t.Errorf("llms.txt does not have %s", p.Target)
		}
	}
	if len(files["demo.svg"]) == 0 || !strings.Contains(string(files["index.html"]), `<img src="demo.svg"`) {
		t.Error("the first page does not show demo.svg")
	}
	t.Logf("%d files, index %d KB", len(files), len(files["index.js"])/1024)
}

// TestSiteRefuses shows that links that lead nowhere fail.
func TestSiteRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"# A\n\n[b](b.md)\n":     "leads nowhere",
		"# A\n\n[b](a.md#b)\n":   "no heading #b",
		"text\n":                 "no title",
		"# A\n\n![b](b.svg)\n":   "leads nowhere",
		"# A\n\n[ok](a.md#a)\n":  "",
		"# A\n\n[ok](../x.go)\n": "",
	} {
		_, err := Site(fstest.MapFS{"docs/a.md": {Data: []byte(text)}, "x.go": {}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
