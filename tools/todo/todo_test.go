package todo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/todo"
)

func items(pairs ...string) string {
	var list []todo.Item
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, todo.Item{State: pairs[i], Text: pairs[i+1]})
	}
	b, _ := json.Marshal(map[string]any{"items": list})
	return string(b)
}

func look() *pawl.Tool {
	t := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	t.Effect = pawl.EffectRead
	return t
}

func agent(m llm.Model, more ...*pawl.Tool) *pawl.Agent {
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{todo.New(), look()},
		Limits:     pawl.Limits{Rounds: 100, LoopThreshold: -1},
		Middleware: []pawl.Middleware{todo.Middleware()}}
	for _, t := range more {
		a.Tools = append(a.Tools, t)
	}
	return a
}

func TestList(t *testing.T) {
	calls := []struct {
		args    string
		outcome pawl.Outcome
		text    string
	}{
		{`{}`, pawl.OutcomeOK, "The list is empty."},
		{items("done", "read", "doing", "write", "open", "test"), pawl.OutcomeOK, "1 of 3 done; next: write"},
		{`{}`, pawl.OutcomeOK, "[x] read\n[>] write\n[ ] test"},
		{items("doing", "a", "doing", "b"), pawl.OutcomeError, "2 items are doing; do one at a time, and leave the others open"},
		{items("open", strings.Repeat("é", 101)), pawl.OutcomeOK, "0 of 1 done"},
		{items("open", strings.Repeat("é", 201)), pawl.OutcomeInvalid, "text"},
		{items(strings.Split(strings.Repeat("open,x,", 51), ",")[:102]...), pawl.OutcomeInvalid, "items"},
		{items("later", "a"), pawl.OutcomeInvalid, "state"},
		{items("done", "read", "dropped", "write", "open", "test"), pawl.OutcomeOK, "1 of 3 done; next: test"},
		{items("done", "read", "dropped", "write"), pawl.OutcomeOK, "1 of 2 done; nothing is open"},
		{`{"items":[]}`, pawl.OutcomeOK, "0 of 0 done; nothing is open"},
	}
	var turns []script.Turn
	for _, c := range calls {
		turns = append(turns, script.Call("todo", json.RawMessage(c.args)))
	}
	res, err := agent(script.New(append(turns, script.Say("Done."))...)).Run(t.Context(), llm.User("go"))
	tooltest.Must(t, err)
	for i, c := range calls {
		if x := res.Steps[i].Executions[0]; x.Outcome != c.outcome || !strings.Contains(x.Result.Text(), c.text) {
			t.Errorf("%s: %s, %q; want %s, %q", c.args, x.Outcome, x.Result.Text(), c.outcome, c.text)
		}
	}
}

// A list of 43 items is recited at most every 10 rounds, at the end of the last result of a round,
// in at most 600 bytes, and no message that was sent changes. Rounds with a call of todo delay it.
func TestRecital(t *testing.T) {
	var list []string
	for i := range 43 {
		list = append(list, "open", fmt.Sprintf("item %d of the long list", i))
	}
	turns := []script.Turn{script.Call("todo", json.RawMessage(items(list...)))}
	for i := range 45 {
		turn := script.Together(script.Call("look", nil), script.Call("look", nil))
		if i == 24 {
			list[0] = "done"
			turn = script.Call("todo", json.RawMessage(items(list...)))
		}
		turns = append(turns, turn)
	}
	var notices []string
	m := script.New(append(turns, script.Say("Done."))...)
	res := (*pawl.Result)(nil)
	for e, err := range agent(m).Stream(t.Context(), llm.User("go")) {
		tooltest.Must(t, err)
		if e.Kind == pawl.EventNotice {
			notices = append(notices, e.Code+": "+e.Text)
		}
		if e.Kind == pawl.EventRunEnded {
			res = e.Result
		}
	}
	var at []int
	for i, s := range res.Steps {
		for j, x := range s.Executions {
			if text := x.Result.Text(); strings.Contains(text, "Open: ") {
				at = append(at, i+1)
				tail := strings.TrimPrefix(text, "seen\n\n")
				if j != len(s.Executions)-1 || len(tail) > 600 ||
					!strings.HasPrefix(tail, "Open: item ") || !strings.HasSuffix(tail, "…") {
					t.Errorf("step %d, call %d: %d bytes: %s", i+1, j, len(tail), text)
				}
			}
		}
	}
	if want := []int{11, 21, 36, 46}; !reflect.DeepEqual(at, want) {
		t.Errorf("recited in steps %v, want %v", at, want)
	}
	requests := m.Requests()
	for i := 1; i < len(requests); i++ {
		before := requests[i-1].Messages
		if !reflect.DeepEqual(requests[i].Messages[:len(before)], before) {
			t.Fatalf("request %d changes what request %d sent", i, i-1)
		}
	}
	if want := []string{"todo_open: the answer leaves items open: 1 of 43 done; next: item 1 of the long list"}; !reflect.DeepEqual(notices, want) {
		t.Errorf("notices %q, want %q", notices, want)
	}
	if got, err := todo.Of(res.Values); err != nil || len(got.Items) != 43 || got.Items[0].State != "done" {
		t.Errorf("the list of the result: %v, %v", got, err)
	}
}

// A list without open items is not recited and gives no notice.
func TestNothingOpen(t *testing.T) {
	turns := []script.Turn{script.Call("todo", json.RawMessage(items("done", "a", "dropped", "b")))}
	for range 15 {
		turns = append(turns, script.Call("look", nil))
	}
	for e, err := range agent(script.New(append(turns, script.Say("Done."))...)).Stream(t.Context(), llm.User("go")) {
		tooltest.Must(t, err)
		if e.Kind == pawl.EventNotice || e.Execution != nil && strings.Contains(e.Execution.Result.Text(), "Open:") {
			t.Errorf("%s %s", e.Kind, e.Text)
		}
	}
}

// The list survives Resume from JSON.
func TestResume(t *testing.T) {
	turns := []script.Turn{script.Call("todo", json.RawMessage(items("open", "ask the user"))), script.Call("ask", nil)}
	for range 9 {
		turns = append(turns, script.Call("look", nil))
	}
	turns = append(turns, script.Say("Later."))
	ask := pawl.Func("ask", "Asks.", func(context.Context, struct{}) (string, error) { return "", nil })
	ask.Passive = true
	a := agent(script.New(turns...), ask)
	res, _ := a.Run(t.Context(), llm.User("go"))
	b, err := json.Marshal(res)
	tooltest.Must(t, err)
	var stored pawl.Result
	tooltest.Must(t, json.Unmarshal(b, &stored))
	w := stored.Pending[0]
	answer := llm.TextResult("yes")
	yes := llm.Decision{Key: w.Key, Digest: w.Digest, Result: &answer}
	res, err = a.Resume(t.Context(), &stored, llm.DecisionMessage(yes))
	tooltest.Must(t, err)
	if last := res.Steps[len(res.Steps)-2].Executions[0]; !strings.HasSuffix(last.Result.Text(), "\n\nOpen: ask the user") {
		t.Errorf("the resumed run recites nothing: %q", last.Result.Text())
	}
	if list, err := todo.Of(res.Values); err != nil || list.String() != "[ ] ask the user" {
		t.Errorf("the resumed run has %q, %v", list, err)
	}
}

// What was sent never changes: each request begins with the one before, byte for byte, also where
// the list is recited. The control recites it at the end of each request, and breaks this.
func TestRecitalKeepsThePrefix(t *testing.T) {
	for _, control := range []bool{false, true} {
		turns := []script.Turn{script.Call("todo", json.RawMessage(items("open", "oil the wheel")))}
		for range 45 {
			turns = append(turns, script.Together(script.Call("look", nil), script.Call("look", nil)))
		}
		m := script.New(append(turns, script.Say("Done."))...)
		a := agent(m)
		if control {
			recite := func(inner llm.Model) llm.Model { return &late{inner} }
			a.Middleware = append(a.Middleware, pawl.Middleware{Model: recite})
		}
		res, err := a.Run(t.Context(), llm.User("go"))
		tooltest.Must(t, err)
		recitals, broken, before := 0, 0, "["
		for _, step := range res.Steps {
			for _, x := range step.Executions {
				recitals += strings.Count(x.Result.Text(), "Open: ")
			}
		}
		for _, req := range m.Requests() {
			b, err := json.Marshal(req.Messages)
			tooltest.Must(t, err)
			if !strings.HasPrefix(string(b), before) {
				broken++
			}
			before = strings.TrimSuffix(string(b), "]")
		}
		if recitals != 4 || (broken > 0) != control {
			t.Errorf("control %v: %d recitals, and %d of %d requests change what was sent", control, recitals, broken, len(m.Requests()))
		}
	}
}

// late recites at the end of each request.
type late struct{ inner llm.Model }

func (l *late) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	r := *req
	r.Messages = append(slices.Clone(req.Messages), llm.User("Open: oil the wheel"))
	return l.inner.Stream(ctx, &r)
}

func TestDefinition(t *testing.T) {
	if got := tooltest.Call(t, todo.New(), `{}`); got != "error: there is no run here, and the list belongs to a run" {
		t.Error(got)
	}
}

func ExampleNew() {
	a := agent(script.New(
		script.Call("todo", json.RawMessage(items("doing", "read the code", "open", "write the test"))),
		script.Say("I stop here.")))
	res, err := a.Run(context.Background(), llm.User("Fix it."))
	list, _ := todo.Of(res.Values)
	fmt.Println(res.Steps[0].Executions[0].Result.Text())
	fmt.Println(list, err)
	// Output:
	// 0 of 2 done; next: read the code
	// [>] read the code
	// [ ] write the test <nil>
}
