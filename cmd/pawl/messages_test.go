package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/parts"
)

// Anthropic's official client uses an agent as a model: text, tools of the agent, tools of the
// client, continued conversations, files and errors, streamed and whole.
func TestAnthropicsClient(t *testing.T) {
	t.Parallel()
	v := serveClerk(t)
	got := v.node("messages.mjs", "", "@anthropic-ai/sdk")
	want := map[string]string{
		"models":      `["model clerk The clerk 20"]`,
		"model":       `"clerk"`,
		"counted":     `true`,
		"bearer":      `"end_turn"`,
		"toolRunner":  `{"text":"Done: Paris","ran":1}`,
		"wrong token": `{"status":401,"name":"AuthenticationError","type":"authentication_error","code":"wrong_token"}`,
	}
	for mode, failed := range map[string]string{"whole ": `424`, "streamed ": `null`} {
		answer := func(text string) string { return `{"text":"` + text + `","calls":[],"stop":"end_turn","usage":true}` }
		want[mode+"text"] = answer("You said: hello there")
		want[mode+"skipped"] = answer("You said: hello there")
		want[mode+"own tool"] = answer("Done: found Oslo")
		want[mode+"parallel tools"] = answer("Done: found Oslo; found Rome")
		want[mode+"prose"] = answer(`{\"city\":\"Oslo\"}`)
		want[mode+"file"] = answer(`{\"city\":\"Oslo\"}`)
		want[mode+"call"] = `{"text":"","calls":["locate{}"],"stop":"tool_use","usage":true}`
		want[mode+"result"] = answer("Done: Rome")
		want[mode+"next"] = answer("You said: hello again")

		// The status of a stream was sent before the error.
		want[mode+"fails"] = `{"status":` + failed + `,"name":"APIError","type":"api_error","code":"model_failed"}`
		want[mode+"fails after a write"] = want[mode+"fails"]
		want[mode+"no model"] = `{"status":404,"name":"NotFoundError","type":"not_found_error","code":"not_found"}`
	}
	want["whole needs a yes"] = `{"status":423,"name":"APIError","type":"invalid_request_error","code":"needs_decision"}`
	want["streamed needs a yes"] = `{"status":null,"name":"APIError","type":"invalid_request_error","code":"needs_decision"}`
	same(t, got, want)
	v.once(2, 2)
	v.requests(map[string]int{"pay 7": 2, "fail 7": 2, "refund 7": 2})
}

// Claude Code's print mode uses an agent as its model, with its own tools in addition to the
// agent's. It repeats a stream that broke off or failed as a whole request, which states that it is
// the first: each task acts once.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	claude := parts.Built(t, "claude")
	v := serveClerk(t)
	for _, test := range []struct {
		task, want string
		flags      []string
	}{
		{task: "look Oslo", want: "Done: found Oslo"},
		{task: "bash Rome", want: "Done: Rome", flags: []string{"--allowedTools", "Bash"}},
		{task: "slow lose-stream-claude", want: "Done: refunded; held"},
		{task: "refund 7", want: "API Error: 424 the run failed"},
		{task: "pay 7", want: "API Error: 423 the call of pay waits for a decision"},
	} {
		args := append([]string{"-p", test.task, "--model", "clerk"}, test.flags...)
		cmd := exec.CommandContext(t.Context(), claude, args...)
		cmd.Dir = t.TempDir()
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"),
			"HOME=" + cmd.Dir,
			"ANTHROPIC_BASE_URL=" + v.edge.URL,
			"ANTHROPIC_API_KEY=" + servedToken,
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"HTTPS_PROXY=http://127.0.0.1:9", // it reaches nothing else
			"NO_PROXY=127.0.0.1",
		}
		out, err := cmd.Output() // the status is 1 after an error
		if !strings.HasPrefix(string(out), test.want) {
			t.Errorf("%s: got %q, %v, want %q", test.task, out, err, test.want)
		}
	}
	v.once(1, 2)
	v.requests(map[string]int{"pay 7": 2, "refund 7": 2, "slow lose-stream-claude": 2})
}
