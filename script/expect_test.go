package script_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

func TestExpect(t *testing.T) {
	look := &pawl.Tool{Name: "look", Passive: true}
	req := after(1)
	req.Tools = []*llm.ToolSpec{look.Spec()}
	for _, tt := range []struct {
		want script.Matcher
		err  string // empty means that the expectation is met
	}{
		{script.Asked("go"), ""},
		{script.Asked("stay"), `the user was to say "stay", and said "go"`},
		{script.Returned("look", "result"), ""},
		{script.Returned("look", "nothing"), `look was to give "nothing", and gave "result 0"`},
		{script.Returned("fly", "x"), "there is no result of it"},
		{script.Offered("look"), ""},
		{script.Offered("look", "fly"), `the tools were to be ["look" "fly"], and are ["look"]`},
		{script.Conversation(req.Messages...), ""},
		{script.Conversation(llm.System("be brief"), llm.User("go\nfar"), req.Messages[2],
			llm.Results(llm.ToolResult{CallID: "c0", Parts: []llm.Part{llm.Text{Text: "result 1"}}})),
			"  system: be brief\n  user: go\n-   far\n  assistant: (call c0) look {}\n- tool: (result c0) result 1\n+ tool: (result c0) result 0\n"},
	} {
		_, _, err := ask(t, script.New(script.Say("x"), script.Expect(script.Say("y"), tt.want)), req)
		var unexpected *script.UnexpectedError
		if errors.As(err, &unexpected) != (tt.err != "") || err != nil &&
			(!strings.Contains(err.Error(), tt.err) || unexpected.Turn != 2) {
			t.Errorf("got %v\nwant %s", err, tt.err)
		}
	}
	all := script.Together(script.Expect(script.Say("a"), script.Asked("stay")), script.Expect(script.Say("b"), script.Asked("fly")))
	var unexpected *script.UnexpectedError
	if _, _, err := ask(t, script.New(all), after(0)); !errors.As(err, &unexpected) || len(unexpected.Faults) != 2 {
		t.Errorf("put together: got %v", err)
	}
}

func TestFirst(t *testing.T) {
	m := script.New(script.First(script.Expect(script.Say("stays"), script.Asked("stay")),
		script.Expect(script.Loop(script.Say("goes")), script.Asked("go"))))
	if resp, _, err := ask(t, m, after(0)); err != nil || resp.Message.Text() != "goes" {
		t.Errorf("got %q, %v", resp.Message.Text(), err)
	}
	_, _, err := ask(t, m, &llm.Request{Messages: []llm.Message{llm.User("fly")}})
	var unexpected *script.UnexpectedError
	if !errors.As(err, &unexpected) || len(unexpected.Faults) != 3 || !strings.Contains(err.Error(), `not reply 2: the user was to say "go"`) {
		t.Errorf("got %v", err)
	}
}

func TestTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script.Say("one two three")
		slow.Size, slow.Delay, slow.Pace = 5, time.Minute, time.Second
		start := time.Now()
		var pieces []string
		var at []time.Duration
		for d, err := range script.New(slow).Stream(t.Context(), after(0)) {
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := d.Part.(llm.Text); ok {
				pieces = append(pieces, p.Text)
			}
			at = append(at, time.Since(start))
		}
		if diff := cmp.Diff(pieces, []string{"one t", "wo th", "ree"}); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(at, []time.Duration{60e9, 61e9, 62e9, 63e9}); diff != "" {
			t.Error(diff)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failing := script.Fail(errors.New("boom"))
		failing.Delay = time.Hour
		for _, turn := range []script.Turn{slow, failing} {
			start = time.Now()
			_, err := llm.Complete(ctx, script.New(turn), after(0))
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
				t.Errorf("it goes on for %v after the context ended: %v", time.Since(start), err)
			}
		}
	})
}
