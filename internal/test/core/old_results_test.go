package core_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// testdata/release0 holds results that release 0 stored, and the results after they were resumed.
// Release 0 wrote the files; they must not be written again, so -update writes a file only if none
// exists. The agent is part of the fixture, because a question holds a digest of its tool.
func releaseAgent(did *[]string) *pawl.Agent {
	act := func(name string, e pawl.Effect) *pawl.Tool {
		return &pawl.Tool{Name: name, Description: "Does " + name + ".", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), Effect: e,
			Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				*did = append(*did, name+" "+string(c.Args))
				return llm.TextResult("did " + name), nil
			}}
	}
	ask := []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it is money", ValidFor: 24 * time.Hour}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})}
	form := &pawl.Tool{Name: "form", Description: "Asks the user.", Input: json.RawMessage(`{"type":"object"}`), Passive: true}
	clerk := &pawl.Agent{Name: "clerk", Instructions: "You are a clerk.", Model: script.New(script.Call("post", map[string]any{"n": 4}), script.Say("I posted.")),
		Tools: []pawl.Toolset{act("post", pawl.EffectIdempotent)}, Middleware: ask}
	inner := clerk.Tool("A clerk.").Clone()
	inner.Input = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}`)
	return &pawl.Agent{Name: "main", Instructions: "Do the task.", Middleware: ask, Parallel: pawl.Parallel{Limit: 1, NoEarly: true},
		Model: script.New(
			script.Together(script.Call("look", map[string]any{"n": 1}), script.Call("pay", map[string]any{"n": 2}),
				script.Call("form", map[string]any{}), script.Call("post", map[string]any{"n": 3})),
			script.Call("clerk", map[string]any{"task": "Post."}), script.Say("done")),
		Tools: []pawl.Toolset{act("look", pawl.EffectRead), act("post", pawl.EffectWrite), act("pay", pawl.EffectWrite), form, inner}}
}

// answersOf approves the pending approvals and answers the passive call.
func answersOf(res *pawl.Result) []llm.Message {
	var answers []llm.Message
	for _, q := range res.Pending {
		if q.Passive {
			answers = append(answers, llm.DecisionMessage(q.Answer("ann", llm.TextResult("blue"))))
		} else {
			answers = append(answers, llm.DecisionMessage(q.Approve("ann")))
		}
	}
	return answers
}

// A stored result is read, written unchanged, and resumed. Its calls are executed once, and the
// final result equals the result of release 0.
func TestResultsOfRelease0AreResumed(t *testing.T) {
	// its clock starts at the same time in each run, so that no question has expired
	synctest.Test(t, func(t *testing.T) {
		var did []string
		stored := releasedForm(t, "pending.json", func() any {
			res, err := releaseAgent(&did).Run(t.Context(), llm.User("Do it."))
			if err != nil {
				t.Fatal(err)
			}
			return res
		})
		var res pawl.Result
		if err := json.Unmarshal(stored, &res); err != nil {
			t.Fatal(err)
		}
		if again := releasedForm(t, "", func() any { return &res }); string(again) != string(stored) {
			t.Errorf("it is written otherwise than it was read:\n%s", cmp.Diff(string(stored), string(again)))
		}
		if len(res.Pending) != 2 || res.Stop != pawl.StopPending {
			t.Fatalf("stop %s with %d pending calls, want 2", res.Stop, len(res.Pending))
		}
		did = nil
		fresh := res // a Result is resumed once
		end, err := releaseAgent(&did).Resume(t.Context(), &fresh, answersOf(&res)...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`pay {"n":2}`, `post {"n":4}`}, did); diff != "" {
			t.Errorf("what was done (-want +got):\n%s", diff)
		}
		now := func() any { return withoutLabels(end) } // release 0 had none
		want := releasedForm(t, "resumed.json", now)
		got := releasedForm(t, "", now)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("the end (-release 0 +now):\n%s", diff)
		}
		other := releaseAgent(&did) // an answer to another question is not used
		other.Tools[2] = says("pay", "paid")
		did = nil
		if strange, err := runtest.Ended(other.Resume(t.Context(), &res, answersOf(&res)...)); err != nil ||
			strange.Stop != pawl.StopPending || len(did) > 0 {
			t.Errorf("another tool takes the answer: %v was done, error %v", did, err)
		}
	})
}

// withoutLabels returns a result whose messages, replies and executions have no labels.
func withoutLabels(res *pawl.Result) *pawl.Result {
	bare := *res
	bare.Messages = llm.WithoutLabels(res.Messages)
	bare.Steps = slices.Clone(res.Steps)
	for i, s := range bare.Steps {
		executions := slices.Clone(s.Executions)
		for n := range executions {
			executions[n].Result.Label = nil
		}
		bare.Steps[i].Executions = executions
		if s.Response == nil {
			continue
		}
		reply := *s.Response
		reply.Message = llm.WithoutLabels([]llm.Message{reply.Message})[0]
		bare.Steps[i].Response = &reply
	}
	return &bare
}

// releasedForm returns a file of release 0. With -update it creates a missing file. With an empty
// name it returns the form of the value.
func releasedForm(t *testing.T, name string, value func() any) []byte {
	t.Helper()
	path := filepath.Join("testdata", "release0", name)
	_, err := os.Stat(path)
	if name != "" && (err == nil || !*update) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b, err := json.Marshal(value()) // arguments keep their spaces, so there are none
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if name == "" {
		return b
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}
