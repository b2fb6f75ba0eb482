package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

type refund struct {
	Order string  `json:"order"`
	Euros float64 `json:"euros"`
}

// A typed policy decides about the calls of its tool, and denies what it cannot read.
func TestTypedApproval(t *testing.T) {
	tool := pawl.Func("refund", "", func(_ context.Context, in refund) (string, error) { return "paid " + in.Order, nil })
	other := pawl.Func("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
	decide := func(_ context.Context, in refund) (pawl.Approval, error) {
		switch {
		case in.Order == "panic":
			panic("a fault of the program")
		case in.Order == "down":
			return pawl.Approval{Verdict: pawl.VerdictAllow}, errors.New("the desk is closed")
		case in.Euros > 100:
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it is much"}, nil
		case in.Euros < 0:
			return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "no"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	}
	run := func(m pawl.Middleware, args string, tools ...pawl.Toolset) (*pawl.Result, error) {
		a := &pawl.Agent{Model: script.New(script.Together(script.Call("refund", args), script.Call("look", nil)), script.Say("done")),
			Tools: tools, Middleware: []pawl.Middleware{m}}
		return runtest.Ended(a.Run(t.Context(), llm.User("go")))
	}
	for args, want := range map[string]pawl.Outcome{
		`{"order":"a","euros":40}`:    pawl.OutcomeOK,
		`{"order":"a","euros":"40"}`:  pawl.OutcomeOK, // repaired first
		`{"order":"a","euros":900}`:   pawl.OutcomePending,
		`{"order":"a","euros":-1}`:    pawl.OutcomeDenied,
		`{"order":"down","euros":1}`:  pawl.OutcomeDenied,
		`{"order":"panic","euros":1}`: pawl.OutcomeDenied,
	} {
		res, err := run(policy.Approve(tool, decide), args, tool.Clone(), other)
		if err != nil {
			t.Fatal(err)
		}
		xs := res.Steps[0].Executions
		if xs[0].Outcome != want || want != pawl.OutcomePending && xs[1].Outcome != pawl.OutcomeOK {
			t.Errorf("%s: got %s and %s, want %s", args, xs[0].Outcome, xs[1].Outcome, want)
		}
	}
	// The schema of the tool allows what its policy cannot read.
	wide := &pawl.Tool{Name: "refund", Input: []byte(`{"type":"object"}`), Run: tool.Run}
	res, err := run(policy.Approve(wide, decide), `{"euros":{}}`, wide, other)
	if err != nil || res.Steps[0].Executions[0].Outcome != pawl.OutcomeDenied {
		t.Errorf("unreadable arguments: %v, %+v", err, res)
	}
	for want, m := range map[string]pawl.Middleware{
		"has no tool refund": policy.Approve(tool, decide),
		"was given no tool":  policy.Approve(nil, decide),
		"that decides":       policy.Approve[refund](tool, nil),
		`no such property`: policy.Approve(tool, func(context.Context, struct{ Amount int }) (pawl.Approval, error) {
			return pawl.Approval{Verdict: pawl.VerdictAllow}, nil // 0 is little
		}),
	} {
		tools := []pawl.Toolset{other}
		if want == "no such property" {
			tools = append(tools, tool.Clone())
		}
		if _, err := run(m, `{}`, tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
