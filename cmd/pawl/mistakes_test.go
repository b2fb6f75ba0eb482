package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// compileMistakes are statements that the compiler rejects. They may use ctx, agent, model and
// tool.
var compileMistakes = []string{
	`agent.Run("Hello")`,
	`agent.Run(ctx, "Hello")`,
	`text := agent.Run(ctx, llm.User("Hello")); _ = text`,
	`agent.Run(ctx, pawl.User("Hello"))`,
	`_ = pawl.Agent{Model: "openai:gpt-6.1-terra"}`,
	`_ = openai.New("gpt-6.1-terra")`,
	`_ = pawl.Agent{Model: model, Tools: []*pawl.Tool{tool}}`,
	`_ = pawl.Agent{Model: model, Tools: tool}`,
	`_ = pawl.Agent{Model: model, Limits: pawl.Limits{Time: "10m"}}`,
	`_ = pawl.Agent{Model: model, Prompt: "Be brief."}`,
	`_ = pawl.Func("add", "Adds.", func(a, b int) int { return a + b })`,
	`_ = pawl.Func("now", "Returns the time.", func() (string, error) { return "", nil })`,
	`tool.Effect = "write"`,
	`_ = pawl.Approve(true)`,
	`agent.Run(ctx, []llm.Message{llm.User("Hello")})`,
	`for event := range agent.Stream(ctx) { event.Print() }`,
	`res, err := agent.Run(ctx); fmt.Println(res.Content, err)`,
	`answer, err := pawl.Into[string](ctx, agent, llm.User("Hello")); _, _ = answer, err`,
	`var r pawl.Runner = agent; answer, _, err := pawl.Into[string](ctx, r); _, _ = answer, err`,
	`_ = agent.Check()`,
}

// The values that agentMistakes use.
var (
	m = script.New()
	f = &pawl.Tool{Name: "f", Run: pawl.Func("f", "", func(context.Context, struct{}) (string, error) { return "", nil }).Run}
)

// agentMistakes are agents with faults that Agent.Check reports. m is a model and f a tool.
var agentMistakes = []*pawl.Agent{
	{Tools: []pawl.Toolset{f}},
	{Model: openai.New("gpt-6.1-terra", nil)},
	{Model: openai.New("gpt-6.1-terra", &openai.Options{Key: "my-key"})},
	{Model: openai.New("m", &openai.Options{Key: "my-key", BaseURL: "localhost:8080"})},
	{Model: m, Tools: []pawl.Toolset{f, nil}},
	{Model: m, Tools: []pawl.Toolset{f, f}},
	{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Run: f.Run}}},
	{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "g"}}},
	{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "g", Run: f.Run, Input: json.RawMessage(`{`)}}},
	{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "g", Run: f.Run, Input: json.RawMessage(`{"type":"string"}`)}}},
	{Model: m, Tools: []pawl.Toolset{&pawl.Tool{Name: "g", Run: f.Run,
		Input: json.RawMessage(`{"city":{"type":"string"},"additionalProperties":false}`)}}},
	{Model: m, Choice: llm.ToolChoice{Mode: llm.ToolNamed, Names: []string{"g"}}, Tools: []pawl.Toolset{f}},
	{Model: m, Output: json.RawMessage(`{"type":"objekt"}`)},
	{Model: m, Limits: pawl.Limits{Rounds: -2}},
	{Model: m, Limits: pawl.Limits{Tokens: -1}},
	{Model: m, Limits: pawl.Limits{Cost: math.NaN()}},
	{Model: openai.New("my-model", &openai.Options{Key: "my-key", BaseURL: "http://localhost:1"}), Limits: pawl.Limits{Cost: 1}},
	{Model: m, Limits: pawl.Limits{LoopThreshold: 100}},
	{Model: m, Settings: llm.Settings{MaxTokens: -1}},
	{Model: m, Middleware: []pawl.Middleware{pawl.Approve(nil)}},
	{Model: m, Middleware: []pawl.Middleware{pawl.Before(nil)}},
}

// fileMistakes are agents' files that pawl check reports.
var fileMistakes = []string{
	"",
	"model: gpt-6.1-terra",
	"model: opanai:gpt-6.1-terra",
	"model: openai:gpt-6.1-terra\ninstruction: Be brief.",
	"model: openai:gpt-6.1-terra\nmodel: openai:gpt-6-luna",
	"model: {name: openai:m, key_env: sk-abc123}",
	"model: {name: openai:m, base_url: ''}",
	"model: {name: openai:m, key: sk-abc123}",
	"model: openai:gpt-6.1-terra\ntools: files",
	"model: openai:gpt-6.1-terra\ntools: [files]",
	"model: openai:gpt-6.1-terra\ntools: [{mcp: github}]",
	"model: openai:gpt-6.1-terra\nlimits: {rounds: many}",
	"model: openai:gpt-6.1-terra\nlimits: {rounds: -1}",
	"model: openai:gpt-6.1-terra\nlimits: {time: 10}",
	"model: openai:gpt-6.1-terra\nlimits: {cost: 0}",
	"model: openai:my-own\nlimits: {cost: 1}",
	"model: openai:gpt-6.1-terra\napprove: {ask: [file_writ]}\ntools: [file]",
	"model: ${MY_MODEL}",
	"model: openai:gpt-6.1-terra\ninstructions: ${TEAM} answers.",
	"model: openai:gpt-6.1-terra\n  instructions: Be brief.",
	"model: openai:gpt-6.1-terra\noutput: answer.json",
	"model: openai:gpt-6.1-terra\ntool_choice: file_read",
}

// commandMistakes are command lines. SERVER is a server that knows neither the key nor the model.
// agent.yaml is a file with an agent and mine.yaml one with the key_env MY_KEY.
var commandMistakes = []string{
	"pawl",
	"pawl fly",
	"pawl run Hello",
	"pawl run --model gpt-6.1-terra Hello",
	"pawl run --model openai:gpt-6.1-terra Hello",
	"pawl run --model openai:gpt-6.1-terra",
	"pawl run --model openai:gpt-6.1-terra --rounds 3 Hello",
	"pawl run --modle openai:gpt-6.1-terra Hello",
	"pawl run --model openai:gpt-6.1-terra --max-rounds many Hello",
	"pawl run --model openai:gpt-6.1-terra --max-time 10 Hello",
	"pawl run --model openai:gpt-6.1-terra --max-time 0s Hello",
	"pawl run --model openai:gpt-6.1-terra --max-cost cheap Hello",
	"pawl run --model openai:gpt-6.1-terra --max-cost 0 Hello",
	"pawl run --model openai:gpt-6.1-terra --tools files Hello",
	"pawl run --model openai:gpt-6.1-terra --root nowhere --tools file Hello",
	"pawl run --model openai:gpt-6.1-terra --key-env MY_KEY Hello",
	"pawl run --model openai:gpt-6.1-terra --base-url '' Hello",
	"pawl run --model openai-chat:m --base-url localhost:8080 --key-env SET_KEY Hello",
	"pawl run --model openai-chat:m --base-url SERVER/v1 --key-env SET_KEY Hello",
	"pawl run --model openai-chat:m --base-url SERVER/models/v1 --key-env SET_KEY Hello",
	"pawl run --model openai:gpt-6.1-terra --messages nowhere.json Hello",
	"pawl run --model openai:gpt-6.1-terra --output nowhere.json Hello",
	"pawl run --model openai:gpt-6.1-terra --save nowhere/run.json Hello",
	"pawl run --model openai:gpt-6.1-terra --approve Hello",
	"pawl run nofile.yaml Hello",
	"pawl run agent.txt Hello",
	"pawl run agent.yaml --agent b Hello",
	"pawl run mine.yaml Hello",
	"pawl check nofile.yaml",
	"pawl check search.yaml",
	"pawl run search.yaml Hello",
	"pawl init agent.yaml",
	"pawl runs show r1",
	"pawl serve --addr :8080 agent.yaml",
	"pawl tools show file_reed",
	"pawl models show gpt-6.1-terra",
}

// TestMistakesPage makes every mistake of docs/mistakes.md and compares the page with the messages.
// make docs writes the page.
func TestMistakesPage(t *testing.T) {
	soak.Sequential(t)
	var page strings.Builder
	page.WriteString(mistakesHead)
	count := 0
	table := func(title, text string, rows [][2]string) {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| mistake | message |\n|---|---|\n", title, text)
		for _, r := range rows {
			fmt.Fprintf(&page, "| %s | %s |\n", cell(r[0]), cell(r[1]))
			if strings.TrimSpace(r[1]) == "" {
				t.Errorf("%s: no message", r[0])
			}
			count++
		}
	}
	table("Go that does not compile", "The compiler's messages, in functions with a `ctx`, an `agent`, a `model` and a `tool`.", compiled(t))
	table("Agents with faults", "The error of `Agent.Check`, which every run returns as well before it starts. `m` is a model and "+
		"`f` a tool.", checkedAgents(t))
	table("Agents' files", "What `pawl check` prints. The first line of each file is `agent: a`.", checkedFiles(t))
	table("The command line", "What the command prints, on a machine without keys. `agent.yaml` and `search.yaml` are "+
		"agents, the second with web search, and `mine.yaml` has the `key_env` MY_KEY.", commandLines(t))
	page.WriteString("\n")
	if count < 50 {
		t.Errorf("%d mistakes, want at least 50", count)
	}
	path := filepath.Join("..", "..", "docs", "mistakes.md")
	want := strings.TrimRight(page.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("docs/mistakes.md is not what the programs say; make docs writes it. Got -, want +\n%s", diff)
	}
}

const mistakesHead = `<!-- Made from the mistakes of cmd/pawl/mistakes_test.go. Change them there, then: make docs -->

# Mistakes and their messages

Mistakes that are easy to make at the start, each with its message. A test makes every one of them.
`

// cell returns text as code in a cell of a table.
func cell(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "|", `\|`)
		if line = strings.ReplaceAll(line, "\t", "    "); strings.TrimSpace(line) == "" {
			continue
		}
		fence := "`"
		for strings.Contains(line, fence) {
			fence += "`"
		}
		if fence != "`" {
			line = " " + line + " "
		}
		lines = append(lines, fence+line+fence)
	}
	if lines == nil {
		return "(empty)"
	}
	return strings.Join(lines, "<br>")
}

// compiled returns the messages of the compiler. The page has the messages of one version of Go;
// with another version the page counts, and every mistake must still be an error.
func compiled(t *testing.T) (rows [][2]string) {
	var src strings.Builder
	src.WriteString("package main\n\nimport (\n\"context\"\n\"fmt\"\n\n\"github.com/pawl-go/pawl\"\n\"github.com/pawl-go/pawl/llm\"\n" +
		"\"github.com/pawl-go/pawl/provider/openai\"\n)\n\nvar _ = fmt.Sprint(pawl.NoRounds, llm.RoleUser, openai.New)\n\n")
	first := strings.Count(src.String(), "\n") + 1
	for i, code := range compileMistakes {
		fmt.Fprintf(&src, "func f%d(ctx context.Context, agent *pawl.Agent, model llm.Model, tool *pawl.Tool) { %s }\n", i, code)
	}
	src.WriteString("func main() {}\n")
	path := writer(t, t.TempDir())("main.go", src.String())
	out, err := exec.Command("go", "build", "-o", os.DevNull, "-gcflags=-e", path).CombinedOutput()
	if err == nil {
		t.Fatal("the mistakes compile")
	}
	messages := map[int]string{}
	at := 0
	place := regexp.MustCompile(`^\S*main\.go:(\d+):\d+: (.*)`)
	for line := range strings.Lines(string(out)) {
		if found := place.FindStringSubmatch(line); found != nil {
			at, _ = strconv.Atoi(found[1])
			if messages[at] != "" {
				at = 0 // one mistake may have several errors, and the first counts
				continue
			}
			messages[at] = found[2] + "\n"
		} else if strings.HasPrefix(line, "\t") {
			messages[at] += line
		}
	}
	old := pageMessages(t)
	for i, code := range compileMistakes {
		message := messages[first+i]
		if message == "" {
			t.Errorf("%s: it compiles\n%s", code, out)
		}
		if had, ok := old[cell(code)]; ok && !*update && !strings.HasPrefix(runtime.Version(), "go1.26") {
			message = had
		}
		rows = append(rows, [2]string{code, message})
	}
	return rows
}

// pageMessages returns the compiler's messages on the page, by the cell of their mistake.
func pageMessages(t *testing.T) map[string]string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mistakes.md"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if mistake, message, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok {
			message = strings.TrimSuffix(strings.TrimSpace(message), " |")
			all[mistake] = strings.ReplaceAll(strings.Trim(message, "`"), "`<br>`", "\n")
		}
	}
	return all
}

// checkedAgents returns the errors of Agent.Check, with the agents as this file has them.
func checkedAgents(t *testing.T) (rows [][2]string) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	src, err := os.ReadFile("mistakes_test.go")
	if err != nil {
		t.Fatal(err)
	}
	file, err := goparser.ParseFile(token.NewFileSet(), "mistakes_test.go", src, goparser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "agentMistakes" {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			text := string(src[e.Pos()-file.FileStart : e.End()-file.FileStart])
			texts = append(texts, "pawl.Agent"+strings.Join(strings.Fields(text), " "))
		}
		return false
	})
	if len(texts) != len(agentMistakes) {
		t.Fatalf("%d texts for %d agents", len(texts), len(agentMistakes))
	}
	for i, a := range agentMistakes {
		err := a.Check(t.Context())
		if err == nil {
			t.Errorf("%s has no fault", texts[i])
			continue
		}
		rows = append(rows, [2]string{texts[i], err.Error()})
	}
	return rows
}

// pawlIn runs the command in a folder, on a machine without keys, and returns its output.
func pawlIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	name, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "SET_KEY=a-key-of-a-test", "GORACE=atexit_sleep_ms=0", "NO_COLOR=1"}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(out), dir+string(filepath.Separator), "")
}

func checkedFiles(t *testing.T) (rows [][2]string) {
	for _, text := range fileMistakes {
		dir := t.TempDir()
		writer(t, dir)("agent.yaml", "agent: a\n"+text+"\n")
		rows = append(rows, [2]string{text, pawlIn(t, dir, "check", "agent.yaml")})
	}
	return rows
}

// totals matches the line with the usage of a run, which has times.
var totals = regexp.MustCompile(`(?m)^\d+ requests?, .*$`)

func commandLines(t *testing.T) (rows [][2]string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/models/") {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"The model m does not exist."}}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided."}}`)
	}))
	defer server.Close()
	for _, line := range commandMistakes {
		dir := t.TempDir()
		write := writer(t, dir)
		write("agent.yaml", "agent: a\nmodel: openai:gpt-6.1-terra\n")
		write("mine.yaml", "agent: a\nmodel: {name: openai-chat:m, base_url: '"+server.URL+"/v1', key_env: MY_KEY}\n")
		write("search.yaml", "agent: a\nmodel: {name: openai-chat:m, base_url: '"+server.URL+"/v1', key_env: SET_KEY}\ntools: [search]\n")
		args := strings.Fields(strings.ReplaceAll(line, "SERVER", server.URL))[1:]
		for i, a := range args {
			args[i] = strings.Trim(a, "'")
		}
		out := pawlIn(t, dir, args...)
		out = totals.ReplaceAllString(strings.ReplaceAll(out, server.URL, "SERVER"), "")
		rows = append(rows, [2]string{line, out})
	}
	return rows
}
