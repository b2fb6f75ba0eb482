package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

// Tool.Repair sees the arguments that neither fit nor have one reading, and only these.
func TestOwnRepair(t *testing.T) {
	type order struct {
		Item string `json:"item"`
		N    int    `json:"n"`
	}
	var seen, ran []string
	own := func(args json.RawMessage) (json.RawMessage, error) {
		seen = append(seen, string(args))
		item, n, ok := strings.Cut(strings.Trim(string(args), `"`), " x ")
		switch {
		case string(args) == "panic":
			panic("a fault of the program")
		case !ok:
			return nil, errors.New("no order")
		}
		// n is a text: it is repaired again
		return json.RawMessage(`{"item":"` + item + `","n":"` + n + `"}`), nil
	}
	for _, test := range []struct {
		args, ran, repairs string
		hook, noRepair     bool
		outcome            pawl.Outcome
	}{
		{args: `{"item":"bolt","n":2}`, ran: "bolt 2", outcome: pawl.OutcomeOK},
		{args: `{"item":"bolt","n":"2"}`, ran: "bolt 2", repairs: "built in", outcome: pawl.OutcomeOK},
		{args: `"bolt x 2"`, ran: "bolt 2", hook: true, repairs: "the tool's own repair", outcome: pawl.OutcomeOK},
		{args: `bolt x 2`, ran: "bolt 2", hook: true, repairs: "the tool's own repair", outcome: pawl.OutcomeOK},
		{args: `"bolt x many"`, hook: true, outcome: pawl.OutcomeInvalid},
		{args: `"bolt"`, hook: true, outcome: pawl.OutcomeInvalid},
		{args: `panic`, hook: true, outcome: pawl.OutcomePanicked},
		{args: `"bolt x 2"`, noRepair: true, outcome: pawl.OutcomeInvalid},
	} {
		seen, ran = nil, nil
		tool := pawl.Func("order", "", func(_ context.Context, in order) (string, error) {
			ran = append(ran, in.Item, string(rune('0'+in.N)))
			return "", nil
		})
		tool.Repair, tool.NoRepair = own, test.noRepair
		res, err := step(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{tool.Clone()},
			Model: together(call("c", "order", test.args))})
		if err != nil {
			t.Fatal(err)
		}
		x := res.Steps[0].Executions[0]
		if x.Outcome != test.outcome || strings.Join(ran, " ") != test.ran || (len(seen) > 0) != test.hook ||
			(len(x.Repairs) > 0) != (test.repairs != "") {
			t.Errorf("%s: %s, ran %q, the hook saw %q, repairs %q, result %q", test.args, x.Outcome, ran, seen, x.Repairs, x.Result.Text())
		}
		if test.hook && test.repairs != "" && (x.Repairs[0] != test.repairs || len(x.Repairs) != 2) {
			t.Errorf("%s: got the repairs %q, want the tool's own and the one after it", test.args, x.Repairs)
		}
		if test.outcome == pawl.OutcomePanicked {
			continue
		}
		for _, v := range []func(json.RawMessage) error{tool.Validate, tool.Spec().Validate} {
			if err := v(json.RawMessage(test.args)); (err == nil) != (test.outcome == pawl.OutcomeOK) {
				t.Errorf("%s: Validate returned %v", test.args, err)
			}
		}
	}
}

// Arguments that a middleware or a person has set are not repaired.
func TestOwnRepairIsForTheModelsArguments(t *testing.T) {
	asked := 0
	tool := says("pay", "paid")
	tool.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	tool.Repair = func(json.RawMessage) (json.RawMessage, error) {
		asked++
		return json.RawMessage(`{"n":1}`), nil
	}
	changes := pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
		c.Args = json.RawMessage(`"one"`)
		return c, nil
	})
	a := &pawl.Agent{Model: together(call("c", "pay", `{"n":1}`)), Tools: []pawl.Toolset{tool},
		Middleware: []pawl.Middleware{changes}}
	res, err := step(t, t.Context(), a)
	if err != nil || outcomes(res)[0] != pawl.OutcomeInvalid || asked != 0 {
		t.Errorf("a middleware's arguments: %v, %v, the hook was called %d times", outcomes(res), err, asked)
	}
	a = &pawl.Agent{Model: together(call("c", "pay", `"one"`)), Tools: []pawl.Toolset{tool},
		Middleware: []pawl.Middleware{asksFor("pay")}}
	res, err = step(t, t.Context(), a)
	if err != nil || len(res.Pending) != 1 || string(res.Pending[0].Call.Args) != `{"n":1}` {
		t.Fatalf("a person is asked about %+v, %v", res, err)
	}
	asked = 0
	edited, err := runtest.Ended(a.Resume(t.Context(), res,
		llm.DecisionMessage(res.Pending[0].Edit("ann", json.RawMessage(`"two"`)))))
	// The hook is called once, for the model's own arguments.
	if err != nil || edited.Stop != pawl.StopPending || asked != 1 {
		t.Errorf("edited arguments: %s, %v, the hook was called %d times", edited.Stop, err, asked)
	}
	if diff := cmp.Diff(edited.Pending[0].Digest, res.Pending[0].Digest); diff != "" {
		t.Error(diff)
	}
}
