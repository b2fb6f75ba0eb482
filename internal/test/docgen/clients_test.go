package docgen

import (
	"fmt"
	"strings"
	"testing"
)

const clientsPage = "docs/clients.md"

// clients are the columns of the page of clients: each with the script that it runs, which has the
// proofs, and the test that runs the script.
var clients = []struct{ name, script, file, test string }{
	{"`openai`, Node", "pawltest/testdata/sdk/agents.mjs", "cmd/pawl/clients_test.go", "TestOpenAIsClient"},
	{"`openai`, Chromium", "cmd/pawl/clients_test.go", "cmd/pawl/clients_test.go", "TestOpenAIsClientInAPage"},
	{"`ai`, four providers", "pawltest/testdata/sdk/vercel.mjs", "cmd/pawl/clients_test.go", "TestVercelsSDK"},
	{"LangChain, JavaScript", "pawltest/testdata/sdk/frameworks.mjs", "cmd/pawl/frameworks_test.go", "TestFrameworks"},
	{"`@openai/agents`", "pawltest/testdata/sdk/frameworks.mjs", "cmd/pawl/frameworks_test.go", "TestFrameworks"},
	{"`@anthropic-ai/sdk`", "pawltest/testdata/sdk/messages.mjs", "cmd/pawl/messages_test.go", "TestAnthropicsClient"},
	{"Claude Code, `-p`", "cmd/pawl/messages_test.go", "cmd/pawl/messages_test.go", "TestClaudeCode"},
	{"`useChat`", "server/testdata/ui/ai.mjs", "server/ui_test.go", "TestUseChat"},
	{"`@ag-ui/client`", "server/testdata/ui/agui.mjs", "server/agui_test.go", "TestAGUI"},
	{"MCP's TypeScript SDK", "pawltest/testdata/sdk/mcp.mjs", "cmd/pawl/clients_test.go", "TestTheMCPClient"},
	{"`@a2a-js/sdk`", "server/testdata/a2a/client.mjs", "server/a2a_test.go", "TestA2AClient"},
	{"MCP inspector, `--cli`", "cmd/pawl/clients_test.go", "cmd/pawl/clients_test.go", "TestTheMCPInspector"},
}

const notThere, notThisClient = "not in the protocol", "not in this client"

// seen is the outcome of a scenario with a client. The proof stands in the client's script, or in
// the named file. Of another test than the client's own, note says what it shows.
type seen struct{ outcome, proof, file, test, note string }

// shown is an outcome with its proof in the client's own script.
func shown(outcome, proof string) seen { return seen{outcome: outcome, proof: proof} }

// sent is an outcome that a test shows with the requests of the client, without the client.
func sent(outcome, file, test string) seen {
	return seen{outcome, "func " + test + "(", file, test, "requests as the client sends them"}
}

// lost is an outcome of the clients whose connections break.
func lost(outcome, proof string) seen {
	return seen{outcome, proof, "pawltest/testdata/sdk/lost.mjs", "TestLostConnections", "the client, whose connections break"}
}

// held is an outcome while a tool is silent for longer than the proxy allows, or with structured
// output in the same test.
func held(outcome, proof, file string) seen {
	return seen{outcome, proof, file, "TestQuietTools", "the client, at a tool of 40 s (`make test`: three heartbeats) and with structured output"}
}

const sdkLost, uiQuiet, a2aClient = "pawltest/testdata/sdk/lost.mjs", "server/testdata/ui/quiet.mjs", "server/testdata/a2a/client.mjs"

var scenarios = []struct {
	name  string
	cells []seen // one for each client
}{
	{"text", []seen{shown("answer", "chat text"), shown("answer", "ask('hello')"), shown("answer", "'text'"), shown("answer", "'text'"), shown("answer", "'text'"), shown("answer", "'text'"), {}, shown("answer", "scene('text'"),
		shown("answer", "scene('text'"), shown("answer", "all.looks"), shown("answer", "out.text"), shown("answer", `"hello":`)}},
	{"tool of the agent", []seen{shown("answer", "chat own tool"), shown("answer", "look Oslo"), shown("answer", "'own tool'"),
		shown("answer", "'own tool'"), shown("answer", "'own tool'"), shown("answer", "'own tool'"), shown("answer", "look Oslo"),
		shown("card", "two tools, one fails"), shown("card", "two tools, one fails"), shown("answer, progress", "all.progress"), shown("answer", "'look Oslo'"), shown("answer", "look Oslo")}},
	{"parallel tools", []seen{shown("answer", "chat parallel tools"), shown("answer", "both Oslo"), shown("answer", "'parallel tools'"),
		shown("answer", "'parallel tools'"), shown("answer", "'parallel tools'"), shown("answer", "'parallel tools'"), {}, shown("two cards", "two tools, one fails"), shown("two calls", "two tools, one fails"), shown("answer", "both Oslo"), shown("answer", "'both Oslo'"), shown("answer", "both Oslo")}},
	{"tool of the client", []seen{shown("executed once", "runTools"), shown("executed once", "locate me"), shown("executed once", "'steps'"),
		shown("executed once", "'client tool'"), shown("executed once", "'client tool'"), shown("executed once", "toolRunner"),
		shown("executed once", "bash Rome"), shown("executed once", "tool of the page"),
		shown("executed once", "tool of the page"), {outcome: notThere}, sent("text is the result", "server/a2a_test.go", "TestA2AConversation"), {outcome: notThere}}},
	{"approval, yes", []seen{shown("error 423, asked once", "chat needs a yes"), shown("error 423, asked once", "'pay 9'"),
		shown("error, asked once", "'needs a yes'"), shown("error 409, asked once", "'needs a yes'"), shown("error 423, asked once", "'needs a yes'"),
		shown("error 423, asked once", "'needs a yes'"), shown("error 423, asked once", `"pay 7"`),
		shown("one write", "scene('approve'"),
		shown("one write", "scene('approve'"), shown("one write", "all.pays"), shown("one write", "out.approved"), shown("error, no write", `"pay 5":`)}},
	{"approval, no", []seen{{outcome: notThere}, {outcome: notThere}, {outcome: notThere}, {outcome: notThere}, {outcome: notThere},
		{outcome: notThere}, {outcome: notThere},
		shown("no write", "scene('deny'"), shown("no write", "scene('deny'"),
		shown("no write", "all.denied"), shown("no write", "out.denied"), {outcome: notThisClient}}},
	{"approval, edited", []seen{{outcome: notThere}, {outcome: notThere}, {outcome: notThere}, {outcome: notThere}, {outcome: notThere},
		{outcome: notThere}, {outcome: notThere},
		shown("one write, as edited", "scene('edited'"),
		shown("one write, as edited", "scene('edited'"), {outcome: notThere}, shown("one write, as edited", "out.edited"), {outcome: notThere}}},
	{"structured output after prose", []seen{shown("the output alone", "chat prose"), shown("the output alone", "'prose'"),
		shown("the output alone", "'prose'"), shown("the output alone", "'prose'"), shown("the output alone", "'prose'"),
		shown("the output alone", "'prose'"), {},
		held("a data part behind the text", "'prose'", uiQuiet), held("the result of the run, behind the text", "'prose'", uiQuiet), {},
		held("the output alone", "message('prose')", a2aClient), {}}},
	{"provider error before a write", []seen{shown("error 424, one request", "chat fails'"), shown("error 424, one request", "'fail 9'"),
		shown("error, one run", "'fails'"), shown("error 409, one request", "'fails'"), shown("error 424, one request", "'fails'"),
		shown("error 424, one request", "'fails'"), {}, shown("error", "failing model'"),
		shown("error", "failing model'"), shown("error", "all.fails"), shown("failed task", "out.failed"), shown("error", `"fail 9":`)}},
	{"provider error after a write", []seen{shown("error 424, one write", "chat fails after a write"), shown("error 424, one write", "refund 9"),
		shown("error, one write", "fails after a write"), shown("error 409, one write", "fails after a write"),
		shown("error 424, one write", "fails after a write"), shown("error 424, one write", "fails after a write"),
		shown("error 424, one write", `"refund 7"`), shown("error, one write", "failing model behind a write"),
		shown("error, one write", "failing model behind a write"), shown("error, one write", "all.failsAfterWrite"), shown("failed task, one write", "out.failedWrite"), shown("error, one write", `"refund 9":`)}},
	{"disconnect", []seen{lost("error, cancelled", "lose-stream"), lost("error, cancelled", "lose-stream"), lost("the same run, or cancelled", "lose-stream"),
		lost("error, cancelled", "lose-stream"), lost("error, cancelled", "lose-stream"), lost("error, cancelled", "lose-stream"),
		shown("the same run", "lose-stream-claude"), shown("cancelled", "scene('stop'"),
		shown("cancelled", "gone client"), shown("continues", "quiet-gone"), shown("continues", "out.disconnected"), {}}},
	{"reconnect", []seen{lost("the same run", "lose-whole"), lost("the same run", "lose-whole"), lost("the same run", "lose-whole"),
		lost("the same run", "lose-whole"), lost("the same run", "lose-whole"), lost("the same run", "lose-whole"), {}, shown("the same message", "reload while it works"),
		shown("the same run", "stop and attach"), shown("the same run", "quiet-lost"), shown("the same task", "out.subscribed"), {outcome: notThisClient}}},
	{"stop", []seen{lost("cancelled", "slow stop-"), lost("cancelled", "slow stop-"), lost("cancelled", "slow stop-"),
		lost("cancelled", "slow stop-"), lost("cancelled", "slow stop-"), lost("cancelled", "slow stop-"), {}, shown("cancelled", "scene('stop'"),
		shown("cancelled", "gone client"), shown("cancelled", "stop-mcp"), shown("cancelled", "out.cancelled"), {outcome: notThisClient}}},
	{"tool of 40 s, a proxy that cuts at 30 s of silence", []seen{held("answer", "slow quiet-", sdkLost), {}, held("answer", "slow quiet-", sdkLost),
		held("answer", "slow quiet-", sdkLost), held("answer", "slow quiet-", sdkLost), held("answer", "slow quiet-", sdkLost), {},
		held("answer", "slow quiet-", uiQuiet),
		held("answer", "slow quiet-", uiQuiet), {}, held("answer", "slow quiet-", a2aClient), {}}},
}

// TestClients writes the page of clients. Each outcome names a proof that exists.
func TestClients(t *testing.T) {
	var b strings.Builder
	b.WriteString("<!-- Made by go test ./internal/test/docgen -run Clients -update. -->\n\n# Clients and scenarios\n\n" +
		"Clients at their default settings against a server of pawl. The tests count writes outside of pawl:\n" +
		"there is never more than one for an approval or a request. An empty cell has no test.\n\n| scenario |")
	for _, c := range clients {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(clients)+1) + "\n")
	other := map[string]string{}
	var order []seen
	for _, s := range scenarios {
		if len(s.cells) != len(clients) {
			t.Fatalf("%s has %d cells, want %d", s.name, len(s.cells), len(clients))
		}
		b.WriteString("| " + s.name + " |")
		for i, c := range s.cells {
			if err := proven(clients[i].script, c); err != nil {
				t.Errorf("%s, %s: %v", s.name, clients[i].name, err)
			}
			mark := ""
			if c.test != "" {
				if other[c.test] == "" {
					order = append(order, c)
					other[c.test] = fmt.Sprintf(" (%d)", len(order))
				}
				mark = other[c.test]
			}
			b.WriteString(" " + c.outcome + mark + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| client | test |\n|---|---|\n")
	for _, c := range clients {
		if err := proven("", seen{proof: "func " + c.test + "(", file: c.file}); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "| %s | `%s` in `%s` |\n", c.name, c.test, c.file)
	}
	for i, c := range order {
		fmt.Fprintf(&b, "| (%d) %s | `%s` |\n", i+1, c.note, c.test)
	}
	if !t.Failed() {
		current(t, clientsPage, b.String())
	}
}

// proven returns an error if the proof of an outcome does not exist.
func proven(script string, c seen) error {
	if c.proof == "" {
		return nil
	}
	if c.file != "" {
		script = c.file
	}
	text, err := read(script)
	if err == nil && !strings.Contains(text, c.proof) {
		err = fmt.Errorf("%s has no %q", script, c.proof)
	}
	return err
}

// The negative control: a proof that does not exist is refused.
func TestClientsRefuses(t *testing.T) {
	if proven(clients[0].script, shown("answer", "chat of another name")) == nil {
		t.Error("a proof that does not exist is accepted")
	}
	if proven("", sent("answer", "server/attach_test.go", "TestOfAnotherName")) == nil {
		t.Error("a test that does not exist is accepted")
	}
}
