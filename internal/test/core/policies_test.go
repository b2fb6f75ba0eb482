package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// verdict is a policy that always returns the same decision.
func verdict(v pawl.Verdict, reason string) pawl.Approver {
	return func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: v, Reason: reason}, nil
	}
}

func failing(err error) pawl.Approver {
	return func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAllow}, err
	}
}

// notices returns the codes of the notices among events.
func notices(events []pawl.Event) (codes []string) {
	for _, e := range events {
		if e.Kind == pawl.EventNotice {
			codes = append(codes, e.Code)
		}
	}
	return codes
}

func TestTheStrictestPolicyCounts(t *testing.T) {
	allow, ask, deny := verdict(pawl.VerdictAllow, ""), verdict(pawl.VerdictAsk, "who knows"), verdict(pawl.VerdictDeny, "never")
	broken := failing(errors.New("the policy server is down"))
	panics := func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) { panic("oops") }
	for _, test := range []struct {
		name string
		all  []pawl.Approver
		want pawl.Outcome
		text string // of the result, or the reason why the call is pending
	}{
		{"none", nil, pawl.OutcomeOK, "ran"},
		{"allow", []pawl.Approver{allow, allow}, pawl.OutcomeOK, "ran"},
		{"allow, ask", []pawl.Approver{allow, ask}, pawl.OutcomePending, "who knows"},
		{"ask, allow", []pawl.Approver{ask, allow}, pawl.OutcomePending, "who knows"},
		{"ask, ask", []pawl.Approver{ask, verdict(pawl.VerdictAsk, ""), verdict(pawl.VerdictAsk, "it costs")}, pawl.OutcomePending, "who knows; it costs"},
		{"ask, deny", []pawl.Approver{ask, deny}, pawl.OutcomeDenied, "Denied: never"},
		{"deny, allow", []pawl.Approver{deny, allow}, pawl.OutcomeDenied, "Denied: never"},
		{"no verdict", []pawl.Approver{allow, verdict(0, "")}, pawl.OutcomeDenied, "Denied: this call may not run. Do not repeat it."},
		{"unknown verdict", []pawl.Approver{verdict(17, "")}, pawl.OutcomeDenied, "Denied: this call may not run. Do not repeat it."},
		{"error", []pawl.Approver{allow, broken}, pawl.OutcomeDenied, "Denied: it could not be found out whether this call may run. Do not repeat it."},
		{"panic", []pawl.Approver{panics, allow}, pawl.OutcomeDenied, "Denied: it could not be found out whether this call may run. Do not repeat it."},
	} {
		// with another middleware before, between and after them
		for _, around := range []bool{false, true} {
			ran := 0
			var ws []pawl.Middleware
			for _, w := range policies(test.all...) {
				if around {
					ws = append(ws, pawl.After(func(_ context.Context, _ llm.ToolCall, res llm.ToolResult,
						err error) (llm.ToolResult, error) {
						return res, err
					}))
				}
				ws = append(ws, w)
			}
			tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				ran++
				return llm.TextResult("ran"), nil
			})
			x, res, err := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{tool}, Middleware: ws}, call("", "f", "{}"))
			text := x.Result.Text()
			if x.Outcome == pawl.OutcomePending {
				text = res.Pending[0].Why
			}
			if err != nil || x.Outcome != test.want || text != test.text ||
				(ran == 1) != (test.want == pawl.OutcomeOK) {
				t.Errorf("%s (around %t): got %v, %s, %q, ran %d; want %s, %q", test.name, around, err, x.Outcome, text, ran, test.want, test.text)
			}
		}
	}
	// A policy may end the run.
	boom := errors.New("enough")
	_, res, err := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{says("f", "")},
		Middleware: policies(failing(pawl.AbortError(boom)))}, call("", "f", "{}"))
	if !errors.Is(err, boom) || res.Stop != pawl.StopFailed {
		t.Errorf("abort: got %v, %s", err, res.Stop)
	}
}

// Deny holds for a passive tool too, whose caller would execute it. Otherwise a passive call is
// pending as without a policy.
func TestDenyHoldsForPassiveTools(t *testing.T) {
	for v, want := range map[pawl.Verdict]pawl.Outcome{pawl.VerdictAllow: pawl.OutcomePending,
		pawl.VerdictAsk: pawl.OutcomePending, pawl.VerdictDeny: pawl.OutcomeDenied} {
		x, res, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{passive("f")},
			Middleware: policies(verdict(v, "why"))}, call("", "f", "{}"))
		if x.Outcome != want || want == pawl.OutcomePending && (res.Pending[0].Why != "" ||
			!res.Pending[0].Expires.IsZero()) {
			t.Errorf("verdict %d: got %s, %+v", v, x.Outcome, res.Pending)
		}
	}
}

// asked is an agent with one call that needs an approval. It records the arguments of each
// execution.
func asked(t *testing.T, ws ...pawl.Middleware) (*pawl.Agent, *pawl.Result, *[]string) {
	t.Helper()
	var ran []string
	tool := does("write", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		ran = append(ran, string(c.Args))
		return llm.TextResult("written"), nil
	})
	tool.Effect = pawl.EffectWrite
	tool.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	a := &pawl.Agent{Model: script.New(script.Call("write", `{"n":1}`), script.Say("done")), Tools: []pawl.Toolset{tool}, Middleware: ws}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || res.Stop != pawl.StopPending || len(ran) != 0 {
		t.Fatalf("got %v, %s, ran %v; want a call that waits", err, res.Stop, ran)
	}
	return a, res, &ran
}

func within(d time.Duration) pawl.Middleware {
	return pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAsk, ValidFor: d}, nil
	})
}

// An approval is used within the time that the policies set, from the approval on. The age of the
// question does not count.
func TestAYesExpires(t *testing.T) {
	for _, test := range []struct {
		name     string
		ws       []pawl.Middleware
		after    time.Duration // from the approval to its use
		validFor time.Duration // 0 means no limit
		late     bool
	}{
		{"default", []pawl.Middleware{within(0)}, 1000 * time.Hour, 0, false},
		{"in time", []pawl.Middleware{within(30 * time.Minute)}, 29 * time.Minute, 30 * time.Minute, false},
		{"late", []pawl.Middleware{within(30 * time.Minute)}, 31 * time.Minute, 30 * time.Minute, true},
		{"own time", []pawl.Middleware{within(time.Minute)}, 2 * time.Minute, time.Minute, true},
		{"the shortest", []pawl.Middleware{within(time.Hour), within(time.Minute), within(-1)}, 2 * time.Minute, time.Minute, true},
		{"one without limit", []pawl.Middleware{within(0), within(time.Minute)}, 2 * time.Minute, time.Minute, true},
		{"never", []pawl.Middleware{within(-1)}, 1000 * time.Hour, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, res, ran := asked(t, test.ws...)
			w := roundTrip(t, res).Pending[0]
			if w.ValidFor != test.validFor {
				t.Fatalf("%s: valid for %v, want %v", test.name, w.ValidFor, test.validFor)
			}
			// A question without an answer waits for days, and is the same one.
			time.Sleep(100 * time.Hour)
			res, err := runtest.Ended(a.Resume(t.Context(), roundTrip(t, res)))
			if err != nil || res.Pending[0].ValidFor != w.ValidFor || res.Pending[0].Digest != w.Digest {
				t.Fatalf("%s: asked again: got %v, %+v, want the same question", test.name, err, res.Pending)
			}
			yes := w.Approve("ann")
			yes.At = time.Now()
			time.Sleep(test.after)
			from := roundTrip(t, res)
			events, res, err := collect(a.ResumeStream(t.Context(), from, llm.DecisionMessage(yes)))
			if err != nil || (len(*ran) == 0) != test.late {
				t.Fatalf("%s: got %v, %s, ran %v", test.name, err, res.Stop, *ran)
			}
			if !test.late {
				return
			}
			// The question is asked again, and a notice reports it. A new approval counts, and so
			// does a late denial of the old question.
			if res.Stop != pawl.StopPending || res.Pending[0].Digest != w.Digest ||
				!slices.Equal(notices(events), []string{"decision_expired"}) {
				t.Errorf("%s: late: got %s, %+v, notices %v", test.name, res.Stop, res.Pending, notices(events))
			}
			late := w.Deny("ann", "no")
			late.At = yes.At
			no, err := a.Resume(t.Context(), from, llm.DecisionMessage(late))
			if err != nil || no.Stop != pawl.StopAnswer || !strings.Contains(say(no.Messages), "Denied: no") {
				t.Errorf("%s: a late no: got %v, %s", test.name, err, no.Stop)
			}
			if res, err = a.Resume(t.Context(), res,
				llm.DecisionMessage(res.Pending[0].Approve("ann"))); err != nil || res.Stop != pawl.StopAnswer ||
				len(*ran) != 1 {
				t.Errorf("%s: a new yes: got %v, %s, ran %v", test.name, err, res.Stop, *ran)
			}
		})
	}
}

// A question about other arguments is a new question: an approval of the old one is not used.
func TestAChangedQuestionNeedsItsOwnYes(t *testing.T) {
	args := `{"n":1}`
	a, res, ran := asked(t, within(0), pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
		c.Args = json.RawMessage(args)
		return c, nil
	}))
	old := res.Pending[0]
	args = `{"n":2}`
	events, res, err := collect(a.ResumeStream(t.Context(), res, llm.DecisionMessage(old.Approve("ann"))))
	if err != nil || len(res.Pending) != 1 || res.Pending[0].Digest == old.Digest || len(*ran) > 0 ||
		!slices.Equal(notices(events), []string{"decision_refused"}) {
		t.Errorf("got %v, %+v, ran %v, notices %v; want another question", err, res.Pending, *ran, notices(events))
	}
}

// A decision is used once. An executed call has its result, and an interrupted call asks again
// under another digest.
func TestADecisionIsUsedOnce(t *testing.T) {
	a, res, ran := asked(t, within(0))
	yes := res.Pending[0].Approve("ann")
	if _, err := a.Resume(t.Context(), res, llm.DecisionMessage(yes, yes)); err == nil ||
		!strings.Contains(err.Error(), `two decisions for "run/1/0"`) || len(*ran) != 0 {
		t.Errorf("given twice: got %v, ran %v", err, *ran)
	}
	no := res.Pending[0].Deny("bob", "")
	if _, err := a.Resume(t.Context(), res, llm.DecisionMessage(yes), llm.DecisionMessage(no)); err == nil ||
		len(*ran) != 0 {
		t.Errorf("yes and no: got %v, ran %v", err, *ran)
	}
	done, err := a.Resume(t.Context(), res, llm.DecisionMessage(yes))
	if err != nil || len(*ran) != 1 {
		t.Fatalf("got %v, ran %v", err, *ran)
	}
	if _, err := a.Resume(t.Context(), done, llm.DecisionMessage(yes), llm.User("more")); err == nil || len(*ran) != 1 {
		t.Errorf("used again: got %v, ran %v", err, *ran)
	}

	// The same call in a later reply is a new question.
	a.Model = script.New(script.Say("played"), script.Say("played"), script.Call("write", `{"n":1}`), script.Say("done"))
	later, err := runtest.Ended(a.Resume(t.Context(), done, llm.User("again")))
	if err != nil || later.Stop != pawl.StopPending || later.Pending[0].Digest == yes.Digest {
		t.Fatalf("got %v, %s, %+v", err, later.Stop, later.Pending)
	}
	if _, err := a.Resume(t.Context(), later, llm.DecisionMessage(yes)); err == nil || len(*ran) != 1 {
		t.Errorf("used for a later call: got %v, ran %v", err, *ran)
	}
	moved := yes
	moved.Key = later.Pending[0].Key
	events, still, err := collect(a.ResumeStream(t.Context(), later, llm.DecisionMessage(moved)))
	if err != nil || still.Stop != pawl.StopPending || len(*ran) != 1 || !slices.Equal(notices(events), []string{"decision_refused"}) {
		t.Errorf("moved to a later call: got %v, %s, ran %v, notices %v", err, still.Stop, *ran, notices(events))
	}
}

// The start of a call uses up its approval, also if the outcome is unknown.
func TestAYesIsUsedUpByAnInterruptedWrite(t *testing.T) {
	a, res, _ := asked(t, within(0))
	ctx, shutDown := context.WithCancelCause(t.Context())
	runs := 0
	a.Tools = []pawl.Toolset{&pawl.Tool{Name: "write", Effect: pawl.EffectWrite, Input: a.Tools[0].(*pawl.Tool).Input,
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			runs++
			shutDown(errors.New("shut down"))
			<-ctx.Done()
			return llm.ToolResult{}, ctx.Err()
		}}}
	yes := res.Pending[0].Approve("ann")
	broken, err := runtest.Ended(a.Resume(ctx, res, llm.DecisionMessage(yes)))
	if err == nil || runs != 1 || len(broken.Pending) != 1 || broken.Pending[0].Outcome != pawl.OutcomeUnknown {
		t.Fatalf("got %v, ran %d times, %+v", err, runs, broken.Pending)
	}
	events, still, err := collect(a.ResumeStream(t.Context(), roundTrip(t, broken), llm.DecisionMessage(yes)))
	if err != nil || still.Stop != pawl.StopPending || runs != 1 || !slices.Equal(notices(events), []string{"decision_refused"}) {
		t.Errorf("the old yes: got %v, %s, ran %d times, notices %v", err, still.Stop, runs, notices(events))
	}
	// A policy that now denies the call overrides an approval of its retry.
	a.Middleware = policies(verdict(pawl.VerdictDeny, "not any more"))
	end, err := a.Resume(t.Context(), roundTrip(t, broken), llm.DecisionMessage(broken.Pending[0].Approve("ann")))
	if err != nil || runs != 1 || !strings.Contains(say(end.Messages), "Denied: not any more It was begun before and interrupted") {
		t.Errorf("denied: got %v, ran %d times\n%s", err, runs, say(end.Messages))
	}
}

// An approver may change the arguments. The new arguments are validated, recorded, reported to the
// model, and passed to the policies.
func TestAnEditedCall(t *testing.T) {
	small := pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if strings.Contains(string(c.Args), "13") {
			return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "13 is out of the question"}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	for _, test := range []struct {
		args, want, ran string
		stop            pawl.StopReason
	}{
		{`{"n":2}`, "(Not run as you asked: the approver changed the arguments to {\"n\":2})\nwritten", `{"n":2}`, pawl.StopAnswer},
		{`{"n":"2"}`, "", "", pawl.StopPending}, // arguments of a person are not repaired
		{`{"m":2}`, "", "", pawl.StopPending},
		{`{"n":`, "", "", pawl.StopPending},
		{`{"n":13}`, "error: Denied: 13 is out of the question", "", pawl.StopAnswer},
	} {
		a, res, ran := asked(t, within(0), small)
		w := res.Pending[0]
		d := roundTripDecision(t, w.Edit("ann", json.RawMessage(test.args)))
		events, res, err := collect(a.ResumeStream(t.Context(), res, llm.DecisionMessage(d)))
		if err != nil || res.Stop != test.stop || strings.Join(*ran, " ") != test.ran {
			t.Errorf("%s: got %v, %s, ran %v", test.args, err, res.Stop, *ran)
			continue
		}
		mustBeValid(t, res)
		if test.stop == pawl.StopPending {
			if !slices.Equal(notices(events), []string{"decision_refused"}) || res.Pending[0].Digest != w.Digest {
				t.Errorf("%s: got notices %v, %+v, want the same question", test.args, notices(events), res.Pending)
			}
			continue
		}
		if got := say(res.Messages[2:3]); got != fmt.Sprintf("tool: call_1_0 = %s\n", test.want) {
			t.Errorf("%s: the model is told %s", test.args, got)
		}
		x := res.Steps[0].Executions[0]
		if test.ran != "" && (string(x.Call.Args) != test.ran || x.Decision == nil ||
			string(x.Decision.Args) != test.args) {
			t.Errorf("%s: the record says %s, %+v", test.args, x.Call.Args, x.Decision)
		}
		if got := string(res.Messages[1].Calls()[0].Args); got != `{"n":1}` {
			t.Errorf("%s: the transcript says that the model wrote %s", test.args, got)
		}
	}
}

func roundTripDecision(t *testing.T, d llm.Decision) llm.Decision {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil && !json.Valid(d.Args) {
		return d // it cannot be stored, but a program can return it
	}
	var out llm.Decision
	if err := errors.Join(err, json.Unmarshal(b, &out)); err != nil {
		t.Fatal(err)
	}
	return out
}

// Approval has a fixed place in any order of the list: it receives the call after Tool has changed
// it, and Approved comes after the approval. A call that Approved changes is a new call, which is
// validated and decided again.
func TestTheLayersOfMiddleware(t *testing.T) {
	var order []string
	note := func(name string) func(pawl.ToolFunc) pawl.ToolFunc {
		return func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				order = append(order, name)
				return next(ctx, c)
			}
		}
	}
	policy := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		order = append(order, "policy")
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	a, b := pawl.Middleware{Tool: note("tool 1"), Approved: note("approved 1")}, pawl.Middleware{Approved: note("approved 2"), Tool: note("tool 2")}
	for _, ws := range [][]pawl.Middleware{{policy, a, b}, {a, policy, b}, {a, b, policy}} {
		order = nil
		tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			order = append(order, "run")
			return llm.TextResult(""), nil
		})
		if x, _, err := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{tool}, Middleware: ws},
			call("", "f", "{}")); err != nil || x.Outcome != pawl.OutcomeOK {
			t.Fatalf("got %v, %s", err, x.Outcome)
		}
		if want := []string{"tool 1", "tool 2", "policy", "approved 1", "approved 2", "run"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	}

	for args, want := range map[string]pawl.Outcome{`{"n":2}`: pawl.OutcomePending,
		`{"n":"x"}`: pawl.OutcomeInvalid, `{ "n":1}`: pawl.OutcomePending, `{"n":1}`: pawl.OutcomeOK} {
		change := pawl.Middleware{Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				c.Args = json.RawMessage(args)
				return next(ctx, c)
			}
		}}
		a, res, ran := asked(t, change, within(0))
		w := res.Pending[0]
		res, err := runtest.Ended(a.Resume(t.Context(), res, llm.DecisionMessage(w.Approve("ann"))))
		x := res.Steps[0].Executions[0]
		if args == `{ "n":1}` { // the same call in another spelling: the approval holds
			want = pawl.OutcomeOK
		}
		if err != nil || x.Outcome != want || (len(*ran) == 1) != (want == pawl.OutcomeOK) {
			t.Errorf("changed to %s after it was approved: got %v, %s, ran %v; want %s", args, err, x.Outcome, *ran, want)
		}
		if want == pawl.OutcomePending &&
			(res.Pending[0].Digest == w.Digest || string(res.Pending[0].Call.Args) != args) {
			t.Errorf("changed to %s: got %+v, want a new question", args, res.Pending)
		}
	}
}

func TestCheckSeesTheToolsOfTheRun(t *testing.T) {
	fault := errors.New("no tool is named wriet")
	a := &pawl.Agent{Model: script.New(script.Say("hi")), Tools: []pawl.Toolset{says("write", ""), says("read", "")},
		Middleware: []pawl.Middleware{{Check: func(tools []*pawl.Tool) error {
			if len(tools) != 2 || tools[0].Name != "write" {
				t.Errorf("got %v", tools)
			}
			return fault
		}}}}
	if res, err := a.Run(t.Context(), llm.User("go")); res != nil || !errors.Is(err, fault) {
		t.Errorf("got %v, %v, want that nothing begins", res, err)
	}
}

func TestDigestNamesACallByWhatItIs(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	base := (&pawl.Tool{Name: "f", Input: schema}).Digest(json.RawMessage(`{"a":1,"b":2}`))
	for _, test := range []struct {
		tool *pawl.Tool
		args string
		same bool
	}{
		{&pawl.Tool{Name: "f", Input: json.RawMessage(`{"properties":{"a":{"type":"integer"}}, "type":"object"}`)}, `{ "b":2, "a":1}`, true},
		{&pawl.Tool{Name: "g", Input: schema}, `{"a":1,"b":2}`, false},
		{&pawl.Tool{Name: "f"}, `{"a":1,"b":2}`, false},
		{&pawl.Tool{Name: "f", Input: schema}, `{"a":1.0,"b":2}`, false},
		{&pawl.Tool{Name: "f", Input: schema}, `{"a":1}`, false},
	} {
		if got := test.tool.Digest(json.RawMessage(test.args)); (got == base) != test.same {
			t.Errorf("%s %s %s: same %t, want %t", test.tool.Name, test.tool.Input, test.args, got == base, test.same)
		}
	}
}

// A call that started while its reply was streamed may be dropped. A policy that asks a person
// waits until the reply is complete.
func TestAPolicyCanWaitUntilTheCallIsCertain(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun, seen, questions := time.Now(), 0, []time.Duration(nil)
			policy := pawl.Approve(func(ctx context.Context, _ llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
				seen++
				if !pawl.InvocationFrom(ctx).WaitForReply() {
					return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
				}
				questions = append(questions, time.Since(begun))
				return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
			})
			m := modelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					if len(req.Messages) > 1 {
						yield(llm.Delta{Part: llm.Text{Text: "done"}, Finish: llm.FinishReasonStop}, nil)
						return
					}
					if !yield(llm.Delta{Part: call("c", "look", "{}"), Done: true}, nil) {
						return
					}
					time.Sleep(time.Second)
					if breaks {
						yield(llm.Delta{}, errors.New("the connection was lost"))
						return
					}
					yield(llm.Delta{Finish: llm.FinishReasonToolCalls}, nil)
				}
			})
			look := says("look", "seen")
			look.Effect = pawl.EffectRead
			_, res, err := collect((&pawl.Agent{Model: m, Tools: []pawl.Toolset{look},
				Middleware: []pawl.Middleware{policy}}).Stream(t.Context(), llm.User("go")))
			if seen != 1 {
				t.Fatalf("the policy saw %d calls, want one", seen)
			}
			switch {
			case breaks && (err == nil || len(questions) > 0):
				t.Errorf("dropped: got %v, and a person was asked after %v", err, questions)
			case !breaks && (err != nil || res.Stop != pawl.StopAnswer ||
				!slices.Equal(questions, []time.Duration{time.Second})):
				t.Errorf("got %v, %v, and a person was asked after %v, want a second", res, err, questions)
			}
		})
	}
}
