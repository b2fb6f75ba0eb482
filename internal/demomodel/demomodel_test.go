package demomodel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/demomodel"
	"github.com/pawl-go/pawl/llm"
)

// reply returns the next reply of a model.
func reply(t *testing.T, name string, offered []string, msgs ...llm.Message) llm.Message {
	t.Helper()
	m, err := demomodel.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{Messages: msgs}
	for _, tool := range offered {
		req.Tools = append(req.Tools, &llm.ToolSpec{Name: tool})
	}
	res, err := llm.Complete(context.Background(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	return res.Message
}

// Every model answers any text, with a call of a tool that it has or with a text, and gives a
// repeated request the same reply.
func TestAnswersAnything(t *testing.T) {
	tasks := []string{"", " ", "Hello", "?", "Grüße, Welt", "refund", "refund A-1", "40 euros", "write a.txt: x",
		"replace \"a\" with \"b\" in c.go", "run the tests", "where is it?", "find \"", strings.Repeat("x ", 50_000),
		"[({*+?", "\xff\xfe", "Invoice 1 of X: 999999999999999999999999 y at 1e5"}
	offered := []string{"file_list", "file_read", "file_search", "remember", "shell_exec", "todo", "git_status"}
	for _, name := range demomodel.Names() {
		for _, task := range tasks {
			first := reply(t, name, offered, llm.User(task))
			again := reply(t, name, offered, llm.User(task))
			if len(first.Parts) == 0 || len(first.Parts) != len(again.Parts) {
				t.Errorf("%s: %.40q: replies %v, then %v", name, task, first.Parts, again.Parts)
			}
		}
	}
}

// The first answer says what the model is, later ones do not repeat it, and a failed call is
// reported and not repeated.
func TestHonest(t *testing.T) {
	denied := llm.ErrorResult("The user denied it.")
	denied.CallID = "1"
	call := llm.ToolCall{ID: "1", Name: "file_write", Args: []byte(`{"path":"a.txt","content":"x\n"}`)}
	ask := llm.User("write a.txt: x")
	tools := []string{"file_write"}

	answer := reply(t, "minimal", tools, ask, llm.Assistant(call), llm.Results(denied))
	text := answer.Text()
	if !strings.Contains(text, "The user denied it.") || !strings.Contains(text, "demo model") {
		t.Errorf("after a denial the model says %q", text)
	}

	again := reply(t, "minimal", tools, ask, llm.Assistant(call), llm.Results(denied), answer, ask)
	if !again.HasCalls() {
		t.Errorf("a second request for a file has no call: %q", again.Text())
	}
	later := reply(t, "minimal", tools, ask, llm.Assistant(call), llm.Results(denied), answer, ask,
		llm.Assistant(call), llm.Results(denied))
	if strings.Contains(later.Text(), "demo model") {
		t.Errorf("the second answer repeats what the model is: %q", later.Text())
	}
}

func TestUnknownName(t *testing.T) {
	if _, err := demomodel.Open("robot"); err == nil || !strings.Contains(err.Error(), "demo:support") {
		t.Errorf("Open: %v; want an error with the names", err)
	}
}
