package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/edge"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// serving is pawl serve in a process of its own, with an agent clerk on the simulator. The clerk
// looks things up, and pays after an approval.
type serving struct {
	t     *testing.T
	dir   string // of the agent's file, and of the command
	url   string
	edge  *edge.Edge // of the scripts
	token string     // the token that curl sends
	bank  *bank
	stop  func() // ends the process with Ctrl-C and waits for it; the end of the test does the same
}

const servedToken = "all-all-all-all-all"

// bank is the state that the tools of clerk use.
type bank struct {
	paid atomic.Int64
	back atomic.Int64              // refunds, which need no approval
	gate chan struct{}             // closing it answers /wait
	edge atomic.Pointer[edge.Edge] // has the state of /hold
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/look":
		fmt.Fprint(w, "found "+r.FormValue("at"))
	case "/pay":
		b.paid.Add(1)
		fmt.Fprint(w, "paid")
	case "/refund":
		b.back.Add(1)
		fmt.Fprint(w, "refunded")
	case "/hold":
		if b.edge.Load().Hold(r.Context(), r.FormValue("name")) == nil {
			fmt.Fprint(w, "held")
		}
	case "/wait":
		select {
		case <-b.gate:
			fmt.Fprint(w, "waited")
		case <-r.Context().Done():
		}
	}
}

const clerkFile = `agent: clerk
title: The clerk
description: Looks things up and pays invoices.
resources: [notes.html, "*.png", link.md]
prompts:
  - name: visit
    description: Plans a visit.
    text: "Plan a {tone} visit to {city}."
    arguments: [{name: city, required: true}, {name: tone, values: [short, silly, long]}]
    resources: ["pawl://files/clerk/notes.html", "pawl://files/clerk/dot.png"]
skills: [skills]
model: openai-chat:sim
approve: {allow: [refund]}
tools:
  - http: {name: refund, description: Refunds an invoice., method: POST, url: "BANK/refund", input: {type: object, properties: {invoice: {type: integer}}, required: [invoice]}}
  - http: {name: look, description: Looks something up., url: "BANK/look", query: {at: "{at}"}, effect: read, input: {type: object, properties: {at: {type: string}}, required: [at]}}
  - http: {name: hold, description: Waits., url: "BANK/hold", query: {name: "{name}"}, effect: read, input: {type: object, properties: {name: {type: string}}, required: [name]}}
  - http: {name: wait, description: Waits., url: "BANK/wait", effect: read}
  - http: {name: pay, description: Pays an invoice., method: POST, url: "BANK/pay", input: {type: object, properties: {invoice: {type: integer}}, required: [invoice]}}
`

// clerkTurn returns the model's reply for clerk.
func clerkTurn(req *llm.Request) script.Turn {
	say := func(text string) script.Turn {
		turn := script.Say(text)
		turn.Usage = &llm.Usage{Input: 30, Output: 12}
		return turn
	}
	asked := ""
	for _, m := range req.Messages {
		if m.Role == llm.RoleUser {
			asked = m.Text()
		}
	}
	asked = asked[strings.LastIndexByte(asked, '\n')+1:] // Claude Code begins with reminders
	word, rest, _ := strings.Cut(asked, " ")
	if res := script.Results(req); res != nil {
		said := res[0].Text()
		switch {
		case word == "prose":
			return sayCity(req, say)
		case word == "refund":
			return script.Fail(&llm.ProviderError{Status: 400, Message: "made to fail"})
		case len(res) > 1:
			said += "; " + res[1].Text()
		}
		return say("Done: " + said)
	}
	switch word {
	case "both":
		return script.Together(script.Call("look", `{"at":"`+rest+`"}`), script.Call("look", `{"at":"Rome"}`))
	case "prose":
		return script.Together(script.Say("Let me look first."), script.Call("look", `{"at":"Oslo"}`))
	case "slow":
		return script.Together(script.Call("refund", `{"invoice":1}`), script.Call("hold", `{"name":"`+rest+`"}`))
	case "look":
		return script.Call("look", `{"at":"`+rest+`"}`)
	case "pay", "refund":
		return script.Call(word, `{"invoice":`+rest+`}`)
	case "locate", "wait":
		turn := script.Call(word, `{}`)
		turn.Usage = &llm.Usage{Input: 30, Output: 12}
		return turn
	case "object":
		return sayCity(req, say)
	case "bash":
		return script.Call("Bash", `{"command":"echo `+rest+`","description":"Says it."}`)
	case "patch":
		return script.Call("patch", `{"input":"*** \"x\""}`)
	case "desk":
		return script.Call("desk__locate", `{}`)
	case "count":
		return say(fmt.Sprint(len(req.Messages)))
	case "fail":
		return script.Fail(&llm.ProviderError{Status: 400, Message: "made to fail"})
	}
	return say("You said: " + word + " " + rest)
}

// sayCity returns the answer as JSON. Vercel's provider for Anthropic wants it as the arguments of
// a tool json unless it knows the model.
func sayCity(req *llm.Request, say func(string) script.Turn) script.Turn {
	const city = `{"city":"Oslo"}`
	if slices.ContainsFunc(req.Tools, func(t *llm.ToolSpec) bool { return t.Name == "json" }) {
		turn := script.Call("json", city)
		turn.Usage = say("").Usage
		return turn
	}
	return say(city)
}

// serveClerk starts pawl serve and ends it with Ctrl-C at the end of the test. Its status must be
// 0; it is not 0 if the race detector reports a race.
func serveClerk(t *testing.T, flags ...string) *serving {
	t.Helper()
	dir := t.TempDir()
	v := &serving{t: t, dir: dir, token: servedToken, bank: &bank{gate: make(chan struct{})}}
	sim, err := pawltest.NewSimulator(&script.Model{Turns: []script.Turn{script.Loop(script.Func(clerkTurn))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	hall := httptest.NewServer(v.bank)
	t.Cleanup(hall.Close)
	file := filepath.Join(dir, "clerk.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(clerkFile, "BANK", hall.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"notes.html": "Mind the test-key.", "dot.png": "\x89PNG\r\n", ".hidden.md": "hidden",
		"skills/greet/SKILL.md": "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n"} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pawl := filepath.Join(dir, "pawl") // under this name the test program is the command
	if err := os.Symlink(self, pawl); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pawl, append([]string{"serve", file, "--http", ":0", "--token-env", "PAWL_TOKEN", "--db",
		filepath.Join(dir, "pawl.db")}, flags...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "OPENAI_BASE_URL=" + sim.URL,
		"OPENAI_API_KEY=test-key", "PAWL_TOKEN=" + servedToken, "GORACE=atexit_sleep_ms=0"}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(said, &all))
	line, err := lines.ReadString('\n')
	if err == nil {
		_, v.url, _ = strings.Cut(strings.TrimSpace(line), "serving clerk on ")
	}
	told := make(chan struct{})
	go func() { defer close(told); io.Copy(io.Discard, lines) }()
	v.stop = sync.OnceFunc(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		<-told
		if err := cmd.Wait(); err != nil {
			t.Errorf("pawl serve: %v\n%s", err, all.String())
		}
	})
	t.Cleanup(v.stop)
	if v.url == "" {
		t.Fatalf("pawl serve says %q, %v", line, err)
	}
	v.edge = edge.New(t, v.url, edge.Options{})
	v.bank.edge.Store(v.edge)
	return v
}

// node runs a script of the official clients, of a kind, and returns its findings. It skips the
// test if the clients are not installed.
func (v *serving) node(file, kind string, needs ...string) map[string]json.RawMessage {
	v.t.Helper()
	node := parts.Packages(v.t, sdkFolder, needs...)
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, file, v.edge.URL, servedToken, kind)
	cmd.Dir = sdkFolder
	cmd.Env = append(os.Environ(), "PAWL_DIR="+v.dir, "PAWL="+filepath.Join(v.dir, "pawl"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", file, err, stderr.Bytes())
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(out, &got); err != nil {
		v.t.Fatalf("%s: %v: %s", file, err, out)
	}
	return got
}

// same compares the findings of a script with the expected findings. Both have the same names.
func same(t *testing.T, got map[string]json.RawMessage, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if diff := cmp.Diff(string(got[name]), w); diff != "" {
			t.Errorf("%s: got -, want +\n%s", name, diff)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: not expected: %s", name, got[name])
		}
	}
}

// Vercel's AI SDK uses an agent as a model through its providers for Chat Completions, Responses,
// OpenAI-compatible servers and Messages. The script covers text, tools of the agent, tools of the
// client over several steps, continued conversations, objects and errors, streamed and whole.
func TestVercelsSDK(t *testing.T) {
	t.Parallel()
	v := serveClerk(t)
	got := v.node("vercel.mjs", "", "ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod")
	want := map[string]string{}
	const failed = `"the run failed: run/1/model: openai-chat: invalid_request (400): made to fail"`
	first := func(end string) string { return strings.Replace(end, "run/1", "run/0", 1) }
	for _, api := range []string{"chat ", "responses ", "compatible ", "messages "} {
		for _, mode := range []string{"whole ", "streamed "} {
			at := mode + api
			want[at+"text"] = `{"text":"You said: hello there","finish":"stop","steps":1,"usage":true}`
			want[at+"own tool"] = `{"text":"Done: found Oslo","finish":"stop","steps":1,"usage":true}`
			want[at+"steps"] = `{"text":"Done: Rome","finish":"stop","steps":2,"usage":true,"ran":1}`
			want[at+"next"] = `{"text":"You said: hello again","finish":"stop","steps":1,"usage":true}`
			want[at+"steps again"] = `{"text":"Done: Rome","finish":"stop","steps":2,"usage":true,"ran":2}`
			want[at+"object"] = `{"city":"Oslo"}`
			want[at+"prose"] = `{"city":"Oslo"}`
			want[at+"parallel tools"] = `{"text":"Done: found Oslo; found Rome","finish":"stop","steps":1,"usage":true}`
			want[at+"no model"] = `{"name":"AI_APICallError","status":404,"says":"no agent"}`
			want[at+"needs a yes"] = `{"name":"AI_APICallError","status":423,"says":"waits for a decision"}`
			want[at+"fails after a write"] = `{"name":"AI_APICallError","status":424,"says":` + failed + `}`
			want[at+"fails"] = first(want[at+"fails after a write"])
			if mode == "streamed " { // the status was sent before; each provider invents its own
				want[at+"pieces"] = "true"
				want[at+"needs a yes"] = `{"name":"AI_APICallError","status":500,"says":"waits for a decision"}`
				want[at+"fails after a write"] = `{"name":"AI_APICallError","status":500,"says":` + failed + `}`
				want[at+"fails"] = first(want[at+"fails after a write"])
			}
		}
	}
	for _, api := range []string{"streamed compatible ", "streamed messages "} {
		want[api+"needs a yes"] = `{"name":null,"status":null,"says":"waits for a decision"}`
		want[api+"fails after a write"] = `{"name":null,"status":null,"says":` + failed + `}`
		want[api+"fails"] = first(want[api+"fails after a write"])
	}
	same(t, got, want)
	const json = 4 // calls of the client's tool json, which gets no result
	v.once(8+json, 8)
	posts := map[string]int{}
	for n := range 8 {
		for _, word := range []string{"pay ", "fail ", "refund "} {
			posts[word+strconv.Itoa(n+1)] = 1
			if n == 1 || n == 3 { // streams of chat and responses that begin with an error
				posts[word+strconv.Itoa(n+1)] = 3
			}
		}
	}
	v.requests(posts)
}

// The official client of OpenAI uses an agent as a model: text, tools of the agent, tools of the
// client, continued conversations and errors, streamed and whole.
func TestOpenAIsClient(t *testing.T) {
	t.Parallel()
	v := serveClerk(t)
	got := v.node("agents.mjs", "", "openai")
	want := map[string]string{"models": `["clerk"]`, "model": `"clerk"`, "runTools": `{"text":"Done: Paris","ran":1}`, "wrong token": `{"status":401,"name":"AuthenticationError","code":"wrong_token"}`}
	for _, mode := range []string{"whole ", "streamed "} {
		for _, api := range []string{"chat ", "responses "} {
			stop, calls := `"stop"`, `"tool_calls"`
			if api == "responses " {
				stop, calls = `"completed"`, `"completed"`
			}
			want[mode+api+"text"] = `{"text":"You said: hello there","calls":[],"finish":` + stop + `,"usage":true}`
			want[mode+api+"own tool"] = `{"text":"Done: found Oslo","calls":[],"finish":` + stop + `,"usage":true}`
			want[mode+api+"call"] = `{"text":"","calls":["locate{}"],"finish":` + calls + `,"usage":true}`
			want[mode+api+"result"] = `{"text":"Done: Rome","calls":[],"finish":` + stop + `,"usage":true}`
			want[mode+api+"no model"] = `{"status":404,"name":"NotFoundError","code":"not_found"}`
		}
		want[mode+"chat next"] = `{"text":"You said: hello again","calls":[],"finish":"stop","usage":true}`
		want[mode+"responses patch"] = `{"asks":["custom_tool_call  patch *** \"x\""],"stored":["custom_tool_call  patch *** \"x\""],"ends":"Done: ok","items":["message","custom_tool_call","custom_tool_call_output"],"cancel":"completed"}`
		want[mode+"responses desk"] = `{"asks":["function_call desk locate {}"],"stored":["function_call desk locate {}"],"ends":"Done: ok","items":["message","function_call","function_call_output"],"cancel":"completed"}`
		want[mode+"responses stored"] = `{"text":"You said: hello there","seen":["1","3","5"],"file":{"nothing":"{\"city\":\"Oslo\"}"}}`
		want[mode+"responses next"] = `{"text":"Done: found back","calls":[],"finish":"completed","usage":true}`
		want[mode+"responses again"] = `{"text":"Done: Rome","status":"completed","gone":404}`
	}
	for _, mode := range []string{"whole ", "streamed "} {
		want[mode+"chat parallel tools"] = `{"text":"Done: found Oslo; found Rome","calls":[],"finish":"stop","usage":true}`
		want[mode+"chat prose"] = `{"text":"{\"city\":\"Oslo\"}","calls":[],"finish":"stop","usage":true}`
	}
	want["whole chat fails"] = `{"status":424,"name":"APIError","code":"model_failed"}`
	want["streamed chat fails"] = `{"status":null,"name":"APIError","code":"model_failed"}`
	want["whole chat needs a yes"] = `{"status":423,"name":"APIError","code":"needs_decision"}`
	want["streamed chat needs a yes"] = `{"status":null,"name":"APIError","code":"needs_decision"}`
	for _, api := range []string{"chat", "responses"} {
		want["whole "+api+" fails after a write"] = `{"status":424,"name":"APIError","code":"model_failed"}`
		want["streamed "+api+" fails after a write"] = `{"status":null,"name":"APIError","code":"model_failed"}`
	}
	same(t, got, want)
	v.once(2, 4)
	v.requests(map[string]int{"pay 7": 2, "fail 7": 2, "refund 7": 2, "refund 8": 2})
}

// The official client of OpenAI works in a web page of an origin that is named, and no page of
// another origin reaches the server, not even one of this machine.
func TestOpenAIsClientInAPage(t *testing.T) {
	t.Parallel()
	b := startPages(t)
	named, other := b.serve(t), b.serve(t)
	v := serveClerk(t, "--origin", named)
	const object = `{"city":"Oslo"}`
	for url, want := range map[string]string{
		named: "You said: hello|Done: found Oslo|Done: found Oslo; found Rome|Done: Rome 1|" + object + "|424 model_failed|424 model_failed|423 needs_decision|1",
		other: "Connection error."} {
		var got string
		err := b.eval(t, url, `(async () => {
			const { default: OpenAI } = await import('/modules/openai/index.mjs');
			const client = new OpenAI({ apiKey: '`+servedToken+`', baseURL: '`+v.edge.URL+`/v1', dangerouslyAllowBrowser: true });
			const ask = async (content, more) => (await client.chat.completions.create({ model: 'clerk', messages: [{ role: 'user', content }], ...more })).choices[0].message.content;
			const streamed = async (content) => {
				let text = '';
				const body = { model: 'clerk', messages: [{ role: 'user', content }], stream: true };
				for await (const chunk of await client.chat.completions.create(body)) text += chunk.choices[0].delta.content ?? '';
				return text.trim();
			};
			const located = async () => {
				let ran = 0;
				const locate = { name: 'locate', description: 'd', parameters: { type: 'object' }, parse: JSON.parse, function: () => (ran++, 'Rome') };
				const runner = client.chat.completions.runTools({ model: 'clerk', messages: [{ role: 'user', content: 'locate me' }], tools: [{ type: 'function', function: locate }] });
				return (await runner.finalContent()) + ' ' + ran;
			};
			const city = { name: 'city', schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } };
			const failure = (content) => ask(content).catch((e) => e.status + ' ' + e.code);
			try {
				const all = [(await ask('hello')).trim(), await streamed('look Oslo'), await ask('both Oslo'), await located()];
				all.push(await ask('prose', { response_format: { type: 'json_schema', json_schema: city } }));
				for (const content of ['fail 9', 'refund 9', 'pay 9']) all.push(await failure(content));
				return [...all, (await client.models.list()).data.length].join('|');
			} catch (e) {
				return e.message;
			}
		})()`, &got)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", url, got, err, want)
		}
	}
	v.once(1, 1)
	v.requests(map[string]int{"fail 9": 1, "refund 9": 1, "pay 9": 1})
}

// once checks that the requests of a client, which repeats them at its default settings, acted and
// asked once each.
func (v *serving) once(asked, refunds int) {
	v.t.Helper()
	if n := v.bank.paid.Load(); n != 0 {
		v.t.Errorf("paid %d times", n)
	}
	if n := v.bank.back.Load(); n != int64(refunds) {
		v.t.Errorf("%d requests refunded %d times", refunds, n)
	}
	var inbox struct {
		Waiting []json.RawMessage `json:"waiting"` // runs
	}
	if v.get("/v1/pending?limit=100", &inbox); len(inbox.Waiting) != asked {
		v.t.Errorf("%d requests asked %d questions", asked, len(inbox.Waiting))
	}
}

// requests checks how often the clients sent their tasks.
func (v *serving) requests(want map[string]int) {
	v.t.Helper()
	if diff := cmp.Diff(v.edge.Posts(), want); diff != "" {
		v.t.Errorf("requests by task: got -, want +\n%s", diff)
	}
}

// The official MCP client calls the agent at /mcp. The client asks the person the agent's
// questions, and each call is a stored run.
func TestTheMCPClient(t *testing.T) {
	t.Parallel()
	v := serveClerk(t)
	v.edge = edge.New(t, v.url, edge.Options{Silence: 300 * time.Millisecond})
	v.bank.edge.Store(v.edge)
	got := v.node("mcp.mjs", "", "@modelcontextprotocol/sdk")
	same(t, got, map[string]string{
		"server": `"pawl"`, "tools": `["clerk"]`, "progress": "true", "stranger": "401",
		"looks":           `{"text":"Done: found Oslo","error":false}`,
		"pays":            `{"text":"Done: paid","error":false}`,
		"denied":          `{"text":"Done: Error: Denied: The person said no.","error":false}`,
		"mute":            `{"text":"Not run: pay needs a person's approval, and this client cannot ask for it (it has no elicitation).","error":true}`,
		"both":            `{"text":"Done: found Oslo; found Rome","error":false}`,
		"fails":           `{"text":"clerk stopped without an answer: run/0/model: openai-chat: invalid_request (400): made to fail","error":true}`,
		"failsAfterWrite": `{"text":"clerk stopped without an answer: run/1/model: openai-chat: invalid_request (400): made to fail","error":true}`,
		"reconnects":      `{"text":"Done: refunded; held","error":false}`, "gone": `"error"`, "stopped": `"error"`,
	})
	v.requests(map[string]int{"pay 5": 1, "pay 6": 1, "pay 8": 1, "fail 9": 1, "refund 9": 1, "slow quiet-lost": 1, "slow quiet-gone": 1, "slow stop-mcp": 1})
	if n := v.bank.paid.Load(); n != 1 {
		t.Errorf("paid %d times, want once", n)
	}
	if n := v.bank.back.Load(); n != 4 {
		t.Errorf("4 requests refunded %d times", n)
	}
	var list struct {
		Runs []struct{ ID, State, Stop, Task string }
	}
	v.get("/v1/runs", &list)
	for _, run := range list.Runs {
		v.curl("/v1/runs/" + run.ID + "/events") // until it ends
	}
	v.get("/v1/runs", &list)
	states := map[string]int{}
	for _, run := range list.Runs {
		if want := map[string]string{"slow quiet-gone": "answer", "slow stop-mcp": "cancelled"}[run.Task]; want != "" && run.Stop != want {
			t.Errorf("%s: %s, want %s", run.Task, run.Stop, want)
		}
		if !strings.HasPrefix(run.ID, "mcp_") {
			t.Errorf("a run is named %s", run.ID)
		}
		states[run.State+" "+run.Stop]++
	}
	if diff := cmp.Diff(states, map[string]int{"over answer": 6, "over cancelled": 2, "failed failed": 2}); diff != "" {
		t.Errorf("runs: got -, want +\n%s", diff)
	}
}

// The inspector's command line calls the agent at /mcp.
func TestTheMCPInspector(t *testing.T) {
	t.Parallel()
	const inspector = "@modelcontextprotocol/inspector/cli/build/cli.js"
	npm := filepath.Join("..", "..", "mcp", "testdata", "npm")
	parts.Packages(t, npm, inspector)
	cli, err := filepath.Abs(filepath.Join(npm, "node_modules", inspector))
	if err != nil {
		t.Fatal(err)
	}
	v := serveClerk(t, "--token-env=") // it sends no headers of its own
	var all sync.WaitGroup
	for task, want := range map[string]string{
		"hello": `false You said: hello `, "look Oslo": `false Done: found Oslo`, "both Oslo": `false Done: found Oslo; found Rome`,
		"pay 5":    `true Not run: pay needs a person's approval, and this client cannot ask for it (it has no elicitation).`,
		"fail 9":   `true clerk stopped without an answer: run/0/model: openai-chat: invalid_request (400): made to fail`,
		"refund 9": `true clerk stopped without an answer: run/1/model: openai-chat: invalid_request (400): made to fail`,
	} {
		all.Go(func() {
			out, err := exec.CommandContext(t.Context(), "node", cli, "--cli", v.edge.URL+"/mcp", "--transport", "http",
				"--method", "tools/call", "--tool-name", "clerk", "--tool-arg", "task="+task).CombinedOutput()
			var res struct {
				Content []struct{ Text string }
				IsError bool
			}
			if err != nil || json.Unmarshal(out, &res) != nil || len(res.Content) != 1 {
				t.Errorf("%s: %v: %s", task, err, out)
			} else if got := fmt.Sprint(res.IsError, " ", res.Content[0].Text); got != want {
				t.Errorf("%s: got %s, want %s", task, got, want)
			}
		})
	}
	all.Wait()
	v.requests(map[string]int{"pay 5": 1, "fail 9": 1, "refund 9": 1})
	v.once(0, 1)
}

// The official MCP client reads the files, prompts and skills of the agent from pawl serve and from
// pawl mcp serve. From pawl serve it also reads the runs and artifacts of its own token, and
// nothing of another tenant or without the scope read.
func TestTheMCPClientReads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte(`[{"name":"a","token":"aaaaaaaaaaaaaaaa","scopes":["all"],"tenant":"a"},
		{"name":"b","token":"bbbbbbbbbbbbbbbb","scopes":["all"],"tenant":"b"}, {"name":"c","token":"cccccccccccccccc","scopes":["tools"],"tenant":"a"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := serveClerk(t, "--tokens", file).node("mcp_data.mjs", "", "@modelcontextprotocol/sdk")
	ofFile := `{"tools":[["clerk","The clerk","Looks things up and pays invoices."]],"files":["pawl://files/clerk/dot.png","pawl://files/clerk/notes.html"],` +
		`"text":{"uri":"pawl://files/clerk/notes.html","mimeType":"text/html","text":"Mind the [redacted]."},` +
		`"blob":{"uri":"pawl://files/clerk/dot.png","mimeType":"image/png","blob":"iVBORw0K"},` +
		`"outside":[-32602,-32602,-32602,-32602,-32602,-32602],` +
		`"prompts":[["greet","How to greet."],["visit","Plans a visit."]],` +
		`"prompt":[{"role":"user","content":{"type":"text","text":"Plan a short visit to {tone} Oslo."}},` +
		`{"role":"user","content":{"type":"resource","resource":{"uri":"pawl://files/clerk/notes.html","mimeType":"text/html","text":"Mind the [redacted]."}}},` +
		`{"role":"user","content":{"type":"image","data":"iVBORw0K","mimeType":"image/png"}}],` +
		`"skill":[{"role":"user","content":{"type":"text","text":"Say hello."}}],"missing":-32602,"tones":{"values":["short","silly"]}}`
	none := `{"runs":[],"ids":[],"read":-32602,"artifact":-32602,"subscribe":-32602,"file":"pawl://files/clerk/notes.html"}`
	same(t, got, map[string]string{
		"served": ofFile, "local": ofFile, "listed": "2", "run": `["application/json","answer",true,false]`,
		"artifact": `["text/plain",200006]`, "updated": "[true]", "stranger": none, "caller": none,
	})
}

// get sends a GET request to pawl serve.
func (v *serving) get(path string, out any) {
	v.t.Helper()
	if err := json.Unmarshal([]byte(v.curl(path)), out); err != nil {
		v.t.Fatalf("%s: %v", path, err)
	}
}

// curl sends a request to pawl serve with the program curl.
func (v *serving) curl(path string, args ...string) string {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "curl",
		append([]string{"-sS", "--max-time", "60", "-H", "Authorization: Bearer " + v.token, v.url + path}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		v.t.Fatalf("curl %s: %v", path, err)
	}
	return string(out)
}

// curl starts a run and reads its events. It is killed and then resumes from the last complete
// event: no event is lost or duplicated.
func TestCurlGoesOn(t *testing.T) {
	v := serveClerk(t)
	v.curl("/v1/runs", "-H", "Content-Type: application/json", "-d", `{"id":"r","input":"wait"}`)
	cut := exec.Command("curl", "-sSN", "-H", "Authorization: Bearer "+servedToken, v.url+"/v1/runs/r/events")
	out, err := cut.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cut.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []byte
	for b := make([]byte, 7); !bytes.Contains(seen, []byte("event: call_started\ndata: {")); {
		n, err := out.Read(b)
		if seen = append(seen, b[:n]...); err != nil {
			t.Fatalf("%v: %s", err, seen)
		}
	}
	if err := cut.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cut.Wait() // curl was killed
	first := events(string(seen))
	if n := strings.Count(string(seen), "event: "); len(first) != n-1 {
		t.Fatalf("%d events are whole of %d: it was not cut in the middle of one", len(first), n)
	}
	close(v.bank.gate)
	last := strings.Fields(first[len(first)-1])[1] // id: …
	rest := events(v.curl("/v1/runs/r/events", "-H", "Last-Event-ID: "+last))
	whole := events(v.curl("/v1/runs/r/events"))
	if diff := cmp.Diff(append(first, rest...), whole); diff != "" {
		t.Errorf("in two parts -, at once +\n%s", diff)
	}
	if len(rest) == 0 || !strings.Contains(whole[len(whole)-1], "event: run_ended") {
		t.Errorf("%d events came after it was cut; the last is %q", len(rest), whole[len(whole)-1])
	}
	end := strings.Fields(whole[len(whole)-1])[1]
	if status := v.curl("/v1/runs/r/events", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Last-Event-ID: "+
		end); status != "204" {
		t.Errorf("after the end: %s", status)
	}
}

// events returns the events of a complete stream.
func events(stream string) (all []string) {
	for {
		e, rest, ok := strings.Cut(stream, "\n\n")
		if !ok {
			return all
		}
		if !strings.HasPrefix(e, ":") {
			all = append(all, e)
		}
		stream = rest
	}
}

// An MCP session belongs to the token that created it. Another token cannot act in it, even with
// the session's ID.
func TestSessionsOfMCPAreNotShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	list := `[{"name":"a","token":"aaaaaaaaaaaaaaaa","scopes":["all"],"tenant":"a"},{"name":"b","token":"bbbbbbbbbbbbbbbb","scopes":["all"],"tenant":"b"}]`
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	v := serveClerk(t, "--tokens", file)
	defer http.DefaultClient.CloseIdleConnections()
	post := func(token, session, body string) (status int, id, said string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", v.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + token,
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header.Get("Mcp-Session-Id"), string(b)
	}
	a, b := strings.Repeat("a", 16), strings.Repeat("b", 16)
	_, session, _ := post(a, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	post(a, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"clerk","arguments":{"task":"look Oslo"}}}`
	if status, _, said := post(a, session, call); status != 200 || !strings.Contains(said, "found Oslo") {
		t.Errorf("its own: %d %s", status, said)
	}
	if status, _, said := post(b, session, call); status != 404 && status != 403 {
		t.Errorf("somebody else's: %d %s", status, said)
	}
	for token, want := range map[string]int{a: 1, b: 0} {
		var list struct{ Runs []json.RawMessage }
		v.token = token
		if v.get("/v1/runs", &list); len(list.Runs) != want {
			t.Errorf("%s has %d runs, want %d", token, len(list.Runs), want)
		}
	}
}
