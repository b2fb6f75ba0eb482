package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// A server of bad models lists its behaviours, judges its clients, and ends with its context.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var said strings.Builder
	go func() {
		status := command(ctx, []string{"serve"}, w, &said)
		w.Close()
		ended <- status
	}()
	root, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	root = strings.TrimSpace(root)
	get := func(path string, into any) string {
		t.Helper()
		res, err := http.Get(root + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatalf("%s: %v in %s", path, err, b)
			}
		}
		return string(b)
	}
	if home := get("/", nil); !strings.Contains(home, "unknown-tool") {
		t.Errorf("the page does not list unknown-tool: %s", home)
	}
	var b struct {
		Task   string
		Define []struct {
			Name  string
			Input json.RawMessage
		}
	}
	get("/b/unknown-tool", &b)
	if len(b.Define) != 1 || b.Define[0].Name != "weather" {
		t.Fatalf("got the tools %+v, want weather", b.Define)
	}
	tool := &pawl.Tool{Name: b.Define[0].Name, Input: b.Define[0].Input, Passive: true}
	agent := &pawl.Agent{Model: openai.NewChat("any", &openai.Options{BaseURL: root + "/b/unknown-tool/v1",
		Key: "k"}), Tools: []pawl.Toolset{tool}}
	if _, err := agent.Run(t.Context(), llm.User(b.Task)); err != nil {
		t.Fatal(err)
	}
	var verdict struct {
		Requests      int
		Valid, Passed bool
		Wrong         []string
	}
	get("/b/unknown-tool/verdict", &verdict)
	if verdict.Requests != 2 || !verdict.Valid || !verdict.Passed {
		t.Errorf("got the verdict %+v", verdict)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if status := <-ended; status != 0 {
		t.Fatalf("got the status %d: %s", status, said.String())
	}
	if !strings.HasSuffix(said.String(), "stopped\n") {
		t.Errorf("got %q on standard error", said.String())
	}
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		status int
		out    []string // each matches standard output
		not    string   // does not
		stderr string
	}{
		{
			name: "a line says how pawl did on each API",
			args: []string{"run", "--only", "^(unknown-tool|args-cut|finish-window-full)$"},
			out: []string{
				`(?m)^BEHAVIOUR +CHAT +RESPONSES +ANTHROPIC +GEMINI +THE MODEL …$`,
				`(?m)^unknown-tool +ok +ok +ok +ok +calls a tool that does not exist$`,
				`(?m)^finish-window-full +- +- +ok +- `,
				`(?m)^behaviours: 3; plays: 18 in .* s; failed: 0$`,
			},
			stderr: `^$`,
		},
		{
			name:   "one API, as JSON",
			args:   []string{"run", "--only", "^unknown-tool$", "--api", "gemini", "--json"},
			out:    []string{`"id": "unknown-tool"`, `"mode": "whole"`},
			not:    "openai",
			stderr: `^$`,
		},
		{
			name:   "what each stands for",
			args:   []string{"run", "--only", "^unknown-tool$", "--api", "openai-chat", "--verbose"},
			out:    []string{`stands for T1.0-1 D2 IA-T35 OA-D10`},
			stderr: `^$`,
		},
		{name: "help", args: []string{"run", "--help"}, out: []string{`^Usage: hostile run\|serve`}, stderr: `^$`},
		{name: "no command", status: 2, stderr: `^hostile: which command\? run or serve`},
		{name: "another command", args: []string{"walk"}, status: 2, stderr: `^hostile: no command is named "walk": there are run and serve$`},
		{name: "an argument", args: []string{"run", "all"}, status: 2, stderr: `^hostile: run takes flags only, not "all"$`},
		{
			name: "no such behaviour", args: []string{"run", "--only", "^nonsense$"}, status: 2,
			stderr: `^hostile: --only \^nonsense\$: no behaviour has such an id; hostile run prints all ids$`,
		},
		{name: "no expression", args: []string{"run", "--only", "("}, status: 2, stderr: `^hostile: --only takes a regular expression`},
		{
			name: "no such API", args: []string{"run", "--api", "openai"}, status: 2,
			stderr: `^hostile: --api: no API is named "openai": there are openai-chat, openai-responses, ` +
				`anthropic-messages, gemini$`,
		},
		{name: "no address", args: []string{"serve", "--addr", "nowhere"}, status: 2, stderr: `^hostile: --addr nowhere: `},
		{name: "a flag of the other command", args: []string{"run", "--addr", "x"}, status: 2, stderr: `^hostile: .*addr`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, stderr strings.Builder
			if status := command(t.Context(), tt.args, &out, &stderr); status != tt.status {
				t.Errorf("got the status %d, want %d", status, tt.status)
			}
			for _, want := range tt.out {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("nothing matches %s in\n%s", want, out.String())
				}
			}
			if tt.not != "" && strings.Contains(out.String(), tt.not) {
				t.Errorf("%s is in\n%s", tt.not, out.String())
			}
			if got := strings.TrimSuffix(stderr.String(), "\n"); !regexp.MustCompile(tt.stderr).MatchString(got) {
				t.Errorf("got %q on standard error, want a match of %s", got, tt.stderr)
			}
		})
	}
}

// A run whose context ends is interrupted.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr strings.Builder
	if status := command(ctx, []string{"run", "--only", "^unknown-tool$"}, &out, &stderr); status != 130 {
		t.Errorf("got the status %d (%s), want 130", status, stderr.String())
	}
}
