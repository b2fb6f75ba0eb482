package agentfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/script"
)

// The set todo brings the tool and what recites its list.
func TestTodoSet(t *testing.T) {
	dir := t.TempDir()
	text := "agent: a\nmodel: openai:sim\ntools: [todo, {command: {name: look, description: Looks., run: [cat], effect: read, " +
		"input: {type: object, properties: {n: {type: integer}}}}}]\n"
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	turns := []script.Turn{script.Call("todo", `{"items":[{"text":"write the test","state":"open"}]}`)}
	for i := range 10 {
		turns = append(turns, script.Call("look", fmt.Sprintf(`{"n":%d}`, i)))
	}
	_, _, received := played(t, dir, script.New(append(turns, script.Say("Done."))...), "Go.")
	bodies := strings.Split(strings.TrimSpace(received), "\n")
	for i, b := range bodies {
		if want := i == len(bodies)-1; strings.Contains(b, "Open: write the test") != want {
			t.Errorf("request %d recites the list: %v, want %v", i+1, !want, want)
		}
	}
}

// The key memory brings the set remember, and a later run recalls what an earlier one stored. Over
// the wire the recall is a call and its result behind the message of the user. With recall off
// there is none.
func TestMemoryKey(t *testing.T) {
	dir := t.TempDir()
	write := func(memory string) {
		t.Helper()
		text := "agent: a\nmodel: openai:sim\nstore: {db: pawl.db, user: anna}\nmemory: " + memory + "\n"
		if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	calls, _, _ := played(t, dir, script.New(script.Call("remember", `{"content":"Anna drinks green tea."}`), script.Say("Noted.")), "I drink green tea.")
	if calls != "remember ok" {
		t.Errorf("calls %s", calls)
	}
	recalls := func(user string) (calls string, sent bool) {
		calls, answer, received := played(t, dir, script.New(script.Say("What?"), script.Say("Green.")), user)
		at := strings.Index(received, user)
		return calls + ", " + answer, strings.Contains(received[at:], "Anna drinks green tea.") && strings.Count(received, "\n") == 1
	}
	if got, sent := recalls("Which tea do I drink?"); got != "memory_list ok, Green." || !sent {
		t.Errorf("%s, sent %v", got, sent)
	}
	write("{recall: off}")
	if got, sent := recalls("Which tea do I drink?"); got != ", What?" || sent {
		t.Errorf("recall off: %s, sent %v", got, sent)
	}
}

// With scope agent, another agent of the user does not see what an agent stores.
func TestMemoryScope(t *testing.T) {
	dir := t.TempDir()
	as := func(name, scope string, turns ...script.Turn) string {
		t.Helper()
		text := "agent: " + name + "\nmodel: openai:sim\nstore: {db: pawl.db, user: anna}\nmemory: {scope: " + scope + "}\n"
		if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, received := played(t, dir, script.New(turns...), "Which tea?")
		return received
	}
	as("clerk", "agent", script.Call("remember", `{"content":"Anna buys oolong tea."}`), script.Say("Noted."))
	as("cook", "user", script.Call("remember", `{"content":"Anna drinks green tea."}`), script.Say("Noted."))
	for _, c := range []struct {
		name, scope   string
		oolong, green bool
	}{{"clerk", "agent", true, true}, {"cook", "agent", false, true}, {"cook", "user", false, true}} {
		got := as(c.name, c.scope, script.Say("So."), script.Say("So."))
		if strings.Contains(got, "oolong") != c.oolong || strings.Contains(got, "green") != c.green {
			t.Errorf("%s, scope %s: %s", c.name, c.scope, got)
		}
	}
}
