package agentfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sentCase is what the model is sent for a row of docs/agent-framework.md. A refused row needs no
// case: no request is sent. Neither does a reported row: the request is as without the key.
type sentCase struct {
	document string   // replaces the row's document; empty means the row's own
	edits    []string // changes of the document: old, new, old, new …
	native   bool     // use_function_calling: true
	earlier  bool     // the conversation has a turn before the task

	// The model's replies, "text" or "TOOL ARGUMENTS", with N for the number of the request. The
	// last one repeats. Empty means that the server fails the first request.
	replies []string

	requests int  // the number of requests; 0 means one
	status   int  // exit status of the command, where replies are given
	at       int  // the request that is compared, from 0
	same     bool // it is as without the row's key
	want     []string
	not      []string

	// A part of the document: the request is the same without it. Empty means no comparison.
	without string
}

// again makes the model call the tool search each time, with other arguments.
var again = []string{`search {"q":N}`}

// untouched is a document without a change.
var untouched = sentCase{document: frameworkBase, same: true}

var sentCases = map[string]sentCase{
	"gateway `use_function_calling`": {without: "use_function_calling: true"},
	"`manager_worker_key`":           {without: "manager_worker_key: k"},
	"`log_details`":                  {without: "log_details: true"},
	"`default_worker` of other planners than WorkerRouterPlanner": {without: "default_worker: one"},
	"`apiVersion`":                     untouched,
	"`kind`: Agent, ManagerAgent":      {document: frameworkManager, want: []string{`one`, `two`, "gpt-6.1-terra"}},
	"`metadata.name`":                  {document: strings.Replace(frameworkBase, "analyst", "other", 1), same: true},
	"`resources.inference_gateways[]`": {document: frameworkBase, want: []string{`"model":"gpt-6.1-terra"`}},
	"gateway `OpenAIGateway`":          {want: []string{"/v1/chat/completions", "Bearer key-of-openai", `"stream":true`}},
	"gateway `GoogleAIGateway`":        {want: []string{"models/gemini-2.5-pro", "key-of-gemini", "search"}},
	"gateway `AnthropicGateway`":       {want: []string{"/v1/messages", "key-of-anthropic", `"model":"claude-sonnet-5-5"`}},
	"gateway `MockInferenceGateway`":   {requests: -1},
	"gateway `model`":                  {want: []string{`"model":"gpt-6-luna"`}},
	"gateway `api_key`": {edits: []string{"OPENAI_API_KEY", "OTHER_KEY", `OTHER_KEY}"`, `OTHER_KEY}", base_url: "SERVER/v1"`},
		want: []string{"Bearer key-of-another"}},
	"gateway `base_url`":                          {edits: []string{"http://localhost:1/v1", "SERVER/elsewhere/v1", "{base_url", `{api_key: "${OTHER_KEY}", base_url`}, want: []string{"/elsewhere/v1/chat/completions"}},
	"gateway `temperature`":                       {want: []string{`"temperature":0`}},
	"gateway `temperature: null`":                 {not: []string{`temperature`}},
	"gateway `tool_choice`: auto, none, required": {native: true, want: []string{`"tool_choice":"required"`}},
	"gateway `tool_choice`: the name of a tool": {native: true,
		want: []string{`"tool_choice":{"type":"function","function":{"name":"search"}}`}},
	"gateway `tool_choice`: object": {native: true,
		want: []string{`"tool_choice":{"type":"function","function":{"name":"search"}}`}},
	"`resources.tools[]`": {document: frameworkBase, native: true, want: []string{`"name":"search"`, `"description":"Searches."`},
		not: []string{`"name":"bare"`}},
	"`spec.policies.$preset`: simple":    {native: true, replies: again, requests: 11, status: 4, at: 10, want: []string{`"tool_choice":"none"`}},
	"`spec.policies.$preset`: with_hitl": {native: true, replies: again, requests: 16, status: 4},
	"`spec.policies.$preset`: manager_with_followups": {
		document: strings.Replace(frameworkManager, "spec:\n", "spec:\n  policies: {$preset: manager_with_followups}\n", 1), want: []string{"one", "two"}},
	"`spec.policies.termination` `max_iterations`": {native: true, replies: again, requests: 4, status: 4},
	"`spec.policies.termination` `terminal_tools`": {native: true, replies: again, requests: 1},
	"`spec.policies.termination` `on_max_iterations`: return_partial": {native: true, edits: []string{"on_max_iterations", "max_iterations: 1, on_max_iterations"},
		replies: again, requests: 2, status: 4, at: 1, want: []string{`"tool_choice":"none"`}},
	"`spec.policies.loop_prevention` `repetition_threshold`": {native: true, replies: []string{`search {"q":1}`}, requests: 8, status: 1, at: 4,
		want: []string{"This call was made before"}},
	"`spec.policies.hitl` `enabled: false`": {native: true, edits: []string{"tools: [search]", "tools: [search, bare]"},
		replies: []string{`bare {}`, "Done."}, requests: 2, at: 1, want: []string{`"role":"tool"`}},
	"`spec.policies.hitl` `scope`: writes, all":                       {native: true, replies: again, requests: 1, status: 3},
	"`spec.policies.hitl` `write_tools`":                              {native: true, replies: again, requests: 1, status: 3},
	"`spec.policies.follow_up`":                                       {want: []string{`"maxItems":5,`}},
	"`spec.planner.type`":                                             untouched,
	"ReActPlanner `tool_descriptions`":                                {native: true, want: []string{`"name":"bare"`, `"description":"Told."`}, not: []string{`"name":"search"`}},
	"ReActPlanner `tool_descriptions[].args`":                         {native: true, want: []string{`"properties":{"a":{"type":"string"},"b":{"type":"string"}}`, `"required":["a","b"]`}},
	"ReActPlanner `tool_descriptions[].args` of a tool with a schema": {native: true, want: []string{`"properties":{"q":{"type":"integer"}}`}},
	"ReActPlanner `tool_descriptions[]` without args":                 {native: true, want: []string{`"properties":{"q":{"type":"integer"}}`}},
	"ReActPlanner `tool_descriptions[]` without args or schema":       {native: true, want: []string{`"name":"bare"`}, not: []string{`"q"`}},
	"ReActPlanner `max_iterations`":                                   {native: true, replies: again, requests: 8, status: 4},
	"ReActPlanner `system_prompt`":                                    {want: []string{"Be brief."}},
	"ReActPlanner `terminal_tools`":                                   {native: true, replies: again, requests: 1},
	"ReActPlanner `use_function_calling: true`":                       {want: []string{`"tools":[{"type":"function"`}},
	"ReActPlanner `use_function_calling: false`":                      {want: []string{"search"}, not: []string{`"tools":[`}},
	"ReActPlanner `max_parallel_tool_calls`": {native: true, edits: []string{"max_parallel_tool_calls: 3", "max_parallel_tool_calls: 1"},
		replies: []string{"search {\"q\":1}\nsearch {\"q\":2}", "Done."}, requests: 2, at: 1, want: []string{"Not run: "}},
	"ReActPlanner `history_filter`: default, worker, orchestrator": {earlier: true, want: []string{"Go."}, not: []string{"Earlier question."}},
	// If the router fails, the default worker is asked.
	"WorkerRouterPlanner `rules`, `default_worker`, `system_prompt`, `worker_keys`": {edits: []string{"worker: one, include: [a]", "worker: one, include: [absent]", "system_prompt: P", "system_prompt: Choose kindly."}, requests: 2,
		want: []string{"Choose kindly.", "one", "Go."}},
	"WorkerRouterPlanner without `inference_gateway`":             {want: []string{`"model":"gpt-6.1-terra"`, "Go."}, not: []string{"two"}},
	"StrategicPlanner `worker_keys`, `planning_prompt`":           {edits: []string{"planning_prompt: P", "planning_prompt: Plan kindly."}, want: []string{"Plan kindly.", "two"}, not: []string{`- one`}},
	"StrategicDecomposerPlanner `worker_keys`, `planning_prompt`": {edits: []string{"inference_gateway: llm", "inference_gateway: llm\n      planning_prompt: Plan kindly."}, want: []string{"Plan kindly.", "one", "two"}},
	"ManagerScriptPlanner `worker_specs`, `planning_prompt`":      {edits: []string{"description: D, tools: [x]", "description: Writes kindly."}, want: []string{"one: Writes kindly."}},
	"LLMRouterPlanner `tool_specs`, `system_prompt`":              {replies: []string{`search {"q":1}`, "Done."}, requests: 2, status: 4, edits: []string{"system_prompt: P", "system_prompt: Choose kindly."}, want: []string{`"tool_choice":"required"`, `"name":"search"`, "Choose kindly."}},
	"SingleActionPlanner `tool_name`, `tool_args`, `terminal`":    {requests: -1},
	"StaticPlanner `keywords`":                                    {edits: []string{"name: bare", "name: mock_search", "tools: [search]", "tools: [mock_search]"}, requests: -1},
	"ChatPlanner `system_prompt`, `max_history_messages`":         {edits: []string{"max_history_messages: 6", "max_history_messages: 6\n      system_prompt: Be kind."}, want: []string{"Be kind.", "Go."}, not: []string{`"tools"`, "search"}},
	"`spec.tools[]`":                         {native: true, want: []string{`"name":"search"`, `"name":"bare"`}},
	"`spec.workers[]` `name`, `config_path`": {want: []string{"one", "two"}},
	"`${NAME}`, `${NAME:-default}`":          {want: []string{`"model":"gpt-5"`}},
}

// frameworkModel is a server in the place of all providers. It records the requests.
type frameworkModel struct {
	mu      sync.Mutex
	replies []string
	sent    []string
}

func (m *frameworkModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a request that broke off has another body
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.sent)
	h := r.Header
	m.sent = append(m.sent, r.URL.Path+"\n"+h.Get("Authorization")+h.Get("X-Api-Key")+h.Get("X-Goog-Api-Key")+"\n"+string(body))
	if len(m.replies) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	delta, finish := map[string]any{"role": "assistant"}, "stop"
	var calls []any
	for i, line := range strings.Split(strings.ReplaceAll(m.replies[min(n, len(m.replies)-1)], "N", fmt.Sprint(n)), "\n") {
		name, args, ok := strings.Cut(line, " ")
		if !ok {
			delta["content"] = line
			continue
		}
		finish = "tool_calls"
		calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("c%d_%d", n, i), "type": "function",
			"function": map[string]string{"name": name, "arguments": args}})
	}
	if calls != nil {
		delta["tool_calls"] = calls
	}
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "x", "choices": []any{map[string]any{"index": 0, "message": delta, "finish_reason": finish}}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk, _ := json.Marshal(map[string]any{"id": "x", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
}

// run makes `pawl run` execute a document, and returns what the model was sent.
func (m *frameworkModel) run(t *testing.T, pawl, text string, earlier bool) (sent []string, out string, status int) {
	t.Helper()
	srv := httptest.NewServer(m)
	defer srv.Close()
	dir := t.TempDir()
	path := frameworkRow{base: strings.ReplaceAll(text, "SERVER", srv.URL)}.write(t, dir)
	cmd := exec.Command(pawl, "run", path, "--allow-commands", "Go.")
	if earlier {
		messages := filepath.Join(dir, "earlier.json")
		said := `[{"role":"user","parts":[{"type":"text","text":"Earlier question."}]},{"role":"assistant","parts":[{"type":"text","text":"Yes."}]}]`
		if err := os.WriteFile(messages, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, "--messages", messages)
	}
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=key-of-openai", "OPENAI_BASE_URL=" + srv.URL + "/v1",
		"GEMINI_API_KEY=key-of-gemini", "GEMINI_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=key-of-anthropic", "ANTHROPIC_BASE_URL=" + srv.URL,
		"OTHER_KEY=key-of-another"}
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return m.sent, string(b), cmd.ProcessState.ExitCode()
}

// For every row of docs/agent-framework.md, `pawl run` sends the model what the row says.
func TestFrameworkSends(t *testing.T) {
	pawl := filepath.Join(t.TempDir(), "pawl")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", pawl, "../../cmd/pawl")
	// The command is a module of its own, which the workspace joins to this one.
	workspace, err := filepath.Abs("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	build.Env = append(os.Environ(), "GOWORK="+workspace)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	page, err := os.ReadFile("../../docs/agent-framework.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]string{}
	for _, base := range []string{frameworkBase, frameworkManager} {
		sent, out, _ := new(frameworkModel).run(t, pawl, base, false)
		if len(sent) != 1 {
			t.Fatalf("%d requests without a row: %s", len(sent), out)
		}
		plain[base] = sent[0]
	}
	sent, out, _ := new(frameworkModel).run(t, pawl, frameworkBase, true)
	if len(sent) != 1 || !strings.Contains(sent[0], "Earlier question.") {
		t.Errorf("without a history_filter the earlier turn is sent; got %s: %s", sent, out)
	}
	rows := map[string]bool{}
	for _, row := range frameworkRows {
		rows[row.key] = true
		t.Run(row.key, func(t *testing.T) { checkSent(t, pawl, row, plain) })
	}
	for line := range strings.Lines(string(page)) {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if strings.HasPrefix(line, "| ") && key != "key" && !rows[key] {
			t.Errorf("the page has a row without a case: %s", key)
		}
	}
	for key := range sentCases {
		if !rows[key] {
			t.Errorf("the page has no row %s", key)
		}
	}
}

func checkSent(t *testing.T, pawl string, row frameworkRow, plain map[string]string) {
	t.Parallel()
	base := row.base
	if base == "" {
		base = frameworkBase
	}
	text := strings.Replace(base, row.old, row.new, 1)
	c, ok := sentCases[row.key]
	switch {
	case c.without != "":
	case !ok && row.state == "accepted and reported":
		c.same = true
	case !ok && row.state == "supported":
		t.Fatal("the row has no case: add one to sentCases")
	}
	if c.document != "" {
		text = c.document
	}
	for i := 0; i < len(c.edits); i += 2 {
		if !strings.Contains(text, c.edits[i]) {
			t.Fatalf("the document has no %q", c.edits[i])
		}
		text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
	}
	if c.native {
		text = strings.Replace(text, gate, gate+"      use_function_calling: true\n", 1)
	}
	m := &frameworkModel{replies: c.replies}
	sent, out, status := m.run(t, pawl, text, c.earlier)
	if row.state == "refused" {
		if len(sent) > 0 || status != 2 {
			t.Errorf("%d requests, status %d: %s", len(sent), status, out)
		}
		return
	}
	if c.requests >= 0 && len(sent) != max(c.requests, 1) || c.requests < 0 && (len(sent) > 0 || status != 0) {
		t.Fatalf("%d requests, status %d: %s", len(sent), status, out)
	}
	if c.requests < 0 {
		return
	}
	if c.replies != nil && status != c.status {
		t.Errorf("status %d, want %d: %s", status, c.status, out)
	}
	got := sent[c.at]
	if c.same && got != plain[base] {
		t.Errorf("got  %s\nwant %s", got, plain[base])
	}
	if c.without != "" {
		less := strings.Replace(text, c.without, "", 1)
		other, _, _ := (&frameworkModel{replies: c.replies}).run(t, pawl, less, c.earlier)
		if !strings.Contains(text, c.without) || len(other) != len(sent) || other[c.at] != got {
			t.Errorf("got %s\nwithout %s: %s", got, c.without, other)
		}
	}
	for _, want := range c.want {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s in it", got, want)
		}
	}
	for _, not := range c.not {
		if strings.Contains(got, not) {
			t.Errorf("got %s\nwithout %s", got, not)
		}
	}
}
