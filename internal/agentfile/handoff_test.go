package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Agents of one file hand a conversation over. Both have a tool with the same name.
func TestHandoffs(t *testing.T) {
	search := "tools: [{command: {name: search, description: Searches., run: [cat], effect: read, input: {type: object, properties: {q: {type: integer}}}}}]\n"
	text := "agent: desk\nmodel: openai:sim\ninstructions: You greet.\nhandoffs: [billing, {agent: sales, description: Sells.}]\nhandoff_pass: texts\n" + search +
		"---\nagent: billing\nmodel: openai:sim\ninstructions: You bill.\n" + search + "---\nagent: sales\nmodel: openai:sim\ninstructions: You sell.\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	turns := []script.Turn{script.Call("search", `{"q":1}`), script.Call("transfer_to_billing", `{"note":"She paid twice."}`),
		script.Call("search", `{"q":2}`), script.Say("Refunded.")}
	calls, answer, received := played(t, dir, script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
		next := turns[0]
		turns = turns[1:]
		return next
	}))), "Help.")
	if calls != "search ok, transfer_to_billing ok, search ok" || answer != "Refunded." {
		t.Errorf("calls %s, answer %s", calls, answer)
	}
	bodies := strings.Split(strings.TrimSpace(received), "\n")
	if b := bodies[0]; len(bodies) != 4 || !strings.Contains(b, `"instructions":"You greet.`) ||
		!strings.Contains(b, "transfer_to_sales") || !strings.Contains(b, "Sells.") {
		t.Errorf("received\n%s", received)
	}
	if b := bodies[2]; !strings.Contains(b, "You bill.") || !strings.Contains(b, "She paid twice.") ||
		strings.Contains(b, `\"q\":1`) || strings.Contains(b, `"instructions":"You greet.`) {
		t.Errorf("billing received\n%s", b)
	}
}

// Mistakes in handoffs have their place.
func TestHandoffMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"agent: a\nmodel: openai:sim\nhandoffs: [bb]\n---\nagent: b\nmodel: openai:sim\n":                                 ":3:12: no agent of this file is named \"bb\"",
		"agent: a\nmodel: openai:sim\nhandoffs: [b]\nteam: {workers: [b]}\n---\nagent: b\nmodel: openai:sim\n":            ":3:1: an agent leads a team, or hands over",
		"agent: a\nmodel: openai:sim\nhandoffs: [b]\n---\nagent: b\nmodel: openai:sim\nhandoffs: [a]\n":                   "list all agents in the handoffs of the first",
		"agent: a\nmodel: openai:sim\nhandoffs: [b]\nhandoff_pass: some\n---\nagent: b\nmodel: openai:sim\n":              ":4:15: \"some\" is none of them",
		"agent: a\nmodel: openai:sim\nhandoffs: [b]\napprove: {ask: [transfer_to_c]}\n---\nagent: b\nmodel: openai:sim\n": "transfer_to_c",
	} {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := agentfile.Load(file, nil)
		if err == nil {
			for _, a := range f.Agents {
				for _, one := range a.Check(t.Context(), &agentfile.Options{Getenv: func(string) string { return "k" }}) {
					if err == nil {
						err = one
					}
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
	}
}
