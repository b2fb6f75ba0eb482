package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// one runs a single call through the pipeline of a and returns its execution, the run's Result and error.
func one(t testing.TB, ctx context.Context, a *pawl.Agent, c pawl.ToolCall) (pawl.Execution, *pawl.Result, error) {
	t.Helper()
	a.Model = together(c)
	res, err := step(t, ctx, a)
	if len(res.Steps) == 0 || len(res.Steps[0].Executions) != 1 {
		t.Fatalf("no execution: %s, %s, %v", res.Stop, res.Cause, err)
	}
	return res.Steps[0].Executions[0], res, err
}

// Every outcome is reached, and what the model is told of it helps it on: it holds no stack, no Go names and no path of the host.
func TestOutcomes(t *testing.T) {
	type in struct {
		Path string `json:"path"`
		N    int    `json:"n,omitempty"`
	}
	works := pawl.Func("file_read", "", func(context.Context, in) (string, error) { return "text", nil })
	fails := does("fails", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		return pawl.ToolResult{}, fmt.Errorf("read notes.txt: %w", errors.New("no such file"))
	})
	tells := does("tells", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		return pawl.ErrorResult("no such file"), nil
	})
	panics := does("panics", func(_ context.Context, c pawl.ToolCall) (pawl.ToolResult, error) {
		return pawl.ToolResult{Parts: make([]pawl.Part, 0)[len(c.Args):]}, nil
	})
	slow := does("slow", func(ctx context.Context, _ pawl.ToolCall) (pawl.ToolResult, error) {
		<-ctx.Done()
		return pawl.ToolResult{}, ctx.Err()
	})
	slow.Timeout = time.Second
	slowRead := slow.Clone()
	slowRead.Name, slowRead.Effect = "slow_read", pawl.Read
	set := []pawl.Toolset{works, fails, tells, panics, slow, slowRead, passive("person")}
	guard := pawl.Before(func(_ context.Context, c pawl.ToolCall) (pawl.ToolCall, error) {
		if strings.Contains(string(c.Args), "secret") {
			return c, pawl.Block("secrets stay here")
		}
		if strings.Contains(string(c.Args), "boom") {
			panic("guard " + string(c.Args))
		}
		return c, nil
	})
	approve := func(_ context.Context, c pawl.ToolCall, _ *pawl.Tool) pawl.Approval {
		switch s := string(c.Args); {
		case strings.Contains(s, "denied"):
			return pawl.Approval{Verdict: pawl.Deny, Reason: "not this file"}
		case strings.Contains(s, "nothing"):
			return pawl.Approval{}
		case strings.Contains(s, "ask"):
			return pawl.Approval{Verdict: pawl.Ask, Reason: "who knows"}
		case strings.Contains(s, "fault"):
			panic("approver")
		}
		return pawl.Approval{Verdict: pawl.Allow}
	}
	for _, test := range []struct {
		name     string
		args     string
		want     pawl.Outcome
		text     string
		record   string // in Execution.Error
		attempts int
	}{
		{"file_read", `{"path":"a"}`, pawl.OutcomeOK, "text", "", 1},
		{"fails", `{}`, pawl.OutcomeError, "read notes.txt: no such file", "no such file", 1},
		{"tells", `{}`, pawl.OutcomeError, "no such file", "no such file", 1},
		{"file_read", ``, pawl.OutcomeInvalid, "The call of file_read has no arguments, but it needs them:\n- missing required field \"path\"", "missing", 0},
		{"file_read", `{"path":`, pawl.OutcomeInvalid, "The arguments of file_read are not valid JSON: it ends too early. Send one JSON object that fits the tool's schema. You sent: {\"path\":", "not valid JSON", 0},
		{"file_read", `{"path":"a"} {}`, pawl.OutcomeInvalid, "", "not valid JSON", 0},
		{"file_read", `[]`, pawl.OutcomeInvalid, "The arguments of file_read do not fit its schema:\n- expected object, got array", "", 0},
		{"file_read", `{"path":1,"n":"x","q":2}`, pawl.OutcomeInvalid,
			"The arguments of file_read do not fit its schema:\n- unknown field \"q\"\n- field n: expected integer, got string \"x\"\n- field path: expected string, got number 1", "", 0},
		{"fileread", `{}`, pawl.OutcomeUnknownTool,
			`Unknown tool "fileread". Available tools: file_read, fails, tells, panics, slow, slow_read, person. Did you mean "file_read"?`, "Unknown tool", 0},
		{"weather", `{}`, pawl.OutcomeUnknownTool, `Unknown tool "weather". Available tools: file_read, fails, tells, panics, slow, slow_read, person`, "", 0},
		{"", `{}`, pawl.OutcomeUnknownTool, `Unknown tool "". Available tools: file_read, fails, tells, panics, slow, slow_read, person`, "", 0},
		{"file_read", `{"path":"secret"}`, pawl.OutcomeBlocked, "Blocked: secrets stay here", "secrets stay here", 0},
		{"file_read", `{"path":"denied"}`, pawl.OutcomeDenied, "Denied: not this file", "not this file", 0},
		{"file_read", `{"path":"nothing"}`, pawl.OutcomeDenied, "Denied: this call may not run. Do not repeat it.", "", 0},
		{"slow", `{}`, pawl.OutcomeTimeout, "slow did not end within 1s. What it does may have happened.", "deadline", 1},
		{"slow_read", `{}`, pawl.OutcomeTimeout, "slow_read did not end within 1s.", "deadline", 3},
		{"panics", `{}`, pawl.OutcomePanicked, "The tool failed unexpectedly and gave no result.", "slice bounds out of range", 1},
		{"file_read", `{"path":"boom"}`, pawl.OutcomePanicked, "The tool failed unexpectedly and gave no result.", "guard", 0},
		{"file_read", `{"path":"fault"}`, pawl.OutcomePanicked, "The tool failed unexpectedly and gave no result.", "approver", 0},
		{"file_read", `{"path":"ask"}`, pawl.OutcomePending, "", "", 0},
		{"person", `{}`, pawl.OutcomePending, "", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			x, res, err := one(t, t.Context(), &pawl.Agent{Tools: set, Middleware: []pawl.Middleware{guard}, Approve: approve}, call("", test.name, test.args))
			if err != nil {
				t.Errorf("%s %s: the run failed: %v", test.name, test.args, err)
			}
			got := x.Result.Text()
			if x.Outcome != test.want || test.text != "" && got != test.text || !strings.Contains(x.Error, test.record) || x.Attempts != test.attempts {
				t.Errorf("%s %s:\n got %s after %d attempts, %q, error %q\nwant %s after %d, %q, %q", test.name, test.args,
					x.Outcome, x.Attempts, got, x.Error, test.want, test.attempts, test.text, test.record)
			}
			if x.Outcome != pawl.OutcomePending && x.Outcome != pawl.OutcomeOK != x.Result.IsError {
				t.Errorf("%s: IsError is %t", x.Outcome, x.Result.IsError)
			}
			if x.Outcome.Settled() != (res.Stop == pawl.StopAnswer) {
				t.Errorf("%s: the run stopped as %s", x.Outcome, res.Stop)
			}
			if x.Started.IsZero() || x.Ended.Before(x.Started) {
				t.Errorf("%s: from %v to %v", x.Outcome, x.Started, x.Ended)
			}
			noInternals(t, got)
		})
	}
}

// noInternals fails when a text for the model holds what it cannot use and should not see.
func noInternals(t testing.TB, text string) {
	t.Helper()
	for _, word := range []string{"goroutine", ".go:", "pawl.", "runtime", "/work", "/home", "/usr", "0x", "main.", "struct", "out of range"} {
		if strings.Contains(text, word) {
			t.Errorf("the model is told %q, which says %q", text, word)
		}
	}
}

// The list of outcomes is closed; those that are not in the table above are reached elsewhere.
func TestSettledAndFailed(t *testing.T) {
	for o, want := range map[pawl.Outcome][2]bool{
		pawl.OutcomeOK: {true, false}, pawl.OutcomeError: {true, true}, pawl.OutcomeInvalid: {true, true}, pawl.OutcomeUnknownTool: {true, true},
		pawl.OutcomeBlocked: {true, false}, pawl.OutcomeDenied: {true, false}, pawl.OutcomeTimeout: {true, true}, pawl.OutcomeCancelled: {true, false},
		pawl.OutcomePanicked: {true, true}, pawl.OutcomeSkipped: {true, false}, pawl.OutcomePending: {false, false}, pawl.OutcomeUnknown: {false, false},
	} {
		if got := [2]bool{o.Settled(), o.Failed()}; got != want {
			t.Errorf("%s: got settled, failed %v; want %v", o, got, want)
		}
	}
}

// Arguments are written by a model, so they can be anything; the pipeline lives.
func TestArgumentsFromHell(t *testing.T) {
	tool := &pawl.Tool{Name: "f", Run: says("f", "ok").Run, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0,"multipleOf":3},
		"f":{"type":"number","maximum":10},"u":{"type":"array","uniqueItems":true},"e":{"enum":[1,2]},"c":{"const":1.5}}}`)}
	deep := strings.Repeat("[", 1<<20)
	for _, args := range []string{`{"n":1e400}`, `{"n":1e2000000}`, `{"n":-1e99999999999999999999}`, `{"n":1e-2000000}`, `{"f":1e99999999}`, `{"f":-0}`,
		`{"u":[1e99999999,1e99999999]}`, `{"e":1e99999999}`, `{"c":1e99999999}`, `{"n":` + strings.Repeat("9", 100000) + `}`,
		deep, `{"x":` + deep + strings.Repeat("]", 1<<20) + `}`, strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000),
		strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000), `{"u":[` + strings.Repeat(`1e5000,`, 5000) + `1]}`,
		"\x00", "\xff\xfe", `{"n":NaN}`, `{"a":1,}`, `{"\ud800":1}`, strings.Repeat(" ", 1<<20), `{"u":[` + strings.Repeat(`{},`, 5000) + `1]}`} {
		x := execute(t, tool, args)
		if x.Outcome != pawl.OutcomeOK && x.Outcome != pawl.OutcomeInvalid {
			t.Errorf("%.40s: got %s, %.200s, %.200s", args, x.Outcome, x.Result.Text(), x.Error)
		}
		if n := len(x.Result.Text()); n > 4096 {
			t.Errorf("%.40s: the model is told %d bytes", args, n)
		}
		noInternals(t, x.Result.Text())
	}
}

// Arguments are an object, whether or not the schema says so.
func TestArgumentsAreAnObject(t *testing.T) {
	for _, schema := range []string{`{"properties":{"a":{"type":"string"}}}`, `{}`, `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`} {
		tool := &pawl.Tool{Name: "f", Run: says("f", "ok").Run, Input: json.RawMessage(schema)}
		for _, args := range []string{`[]`, `"a"`, `null`, `1`} {
			if x := execute(t, tool, args); x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), "expected object, got ") {
				t.Errorf("%s takes %s: %s, %q", schema, args, x.Outcome, x.Result.Text())
			}
		}
		if x := execute(t, tool, `{"a":"x"}`); x.Outcome != pawl.OutcomeOK {
			t.Errorf("%s: got %s, %s", schema, x.Outcome, x.Result.Text())
		}
	}
	if x := execute(t, says("f", "ok"), ``); x.Outcome != pawl.OutcomeOK || string(x.Call.Args) != "{}" {
		t.Errorf("no arguments, where none are needed: %s %s", x.Outcome, x.Call.Args)
	}
}

func TestMiddlewareChangesCallsAndResults(t *testing.T) {
	var got []string
	tool := &pawl.Tool{Name: "f", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`),
		Run: func(ctx context.Context, c pawl.ToolCall) (pawl.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			got = append(got, fmt.Sprintf("%s %s %s, invocation %s %s %s", c.ID, c.Name, c.Args, v.Call.ID, v.Call.Name, v.Call.Args))
			return pawl.TextResult("one"), nil
		}}
	before := func(change func(pawl.ToolCall) pawl.ToolCall) pawl.Middleware {
		return pawl.Before(func(_ context.Context, c pawl.ToolCall) (pawl.ToolCall, error) { return change(c), nil })
	}
	after := pawl.After(func(_ context.Context, c pawl.ToolCall, r pawl.ToolResult, err error) (pawl.ToolResult, error) {
		return pawl.TextResult(r.Text() + ", seen"), err
	})
	run := func(ms ...pawl.Middleware) pawl.Execution {
		t.Helper()
		got = nil
		x, _, err := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{tool, says("g", "from g")}, Middleware: ms}, call("", "f", `{"a":1}`))
		if err != nil {
			t.Error(err)
		}
		return x
	}
	x := run(before(func(c pawl.ToolCall) pawl.ToolCall { c.Args = json.RawMessage(`{"a":2}`); return c }), after)
	if x.Outcome != pawl.OutcomeOK || string(x.Call.Args) != `{"a":2}` || x.Result.Text() != "one, seen" || x.Result.CallID != "c0" {
		t.Errorf("changed: got %+v", x)
	}
	if diff := cmp.Diff(got, []string{`c0 f {"a":2}, invocation c0 f {"a":2}`}); diff != "" {
		t.Error(diff)
	}
	x = run(before(func(c pawl.ToolCall) pawl.ToolCall { c.Args = json.RawMessage(`{"a":"x"}`); return c }), after)
	if x.Outcome != pawl.OutcomeInvalid || got != nil {
		t.Errorf("changed to what does not fit: got %s, ran %v", x.Outcome, got)
	}
	if x = run(before(func(c pawl.ToolCall) pawl.ToolCall { c.Name = "g"; return c })); x.Outcome != pawl.OutcomeInvalid && x.Result.Text() != "from g" {
		t.Errorf("changed to another tool: got %+v", x)
	}
	if x = run(before(func(c pawl.ToolCall) pawl.ToolCall { c.Name = "none"; return c })); x.Outcome != pawl.OutcomeUnknownTool {
		t.Errorf("changed to no tool: got %+v", x)
	}
	// A call keeps its id, whatever a middleware makes of it.
	x = run(before(func(c pawl.ToolCall) pawl.ToolCall { return pawl.ToolCall{Name: "f", Args: json.RawMessage(`{"a":3}`)} }))
	if x.Outcome != pawl.OutcomeOK || x.Call.ID != "c0" || got[0] != `c0 f {"a":3}, invocation c0 f {"a":3}` {
		t.Errorf("replaced: got %+v, %q", x.Call, got)
	}
	// The first is outermost, and one may answer without passing the call on.
	var order []string
	note := func(name string) pawl.Middleware {
		return pawl.Middleware{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, c pawl.ToolCall) (pawl.ToolResult, error) {
				order = append(order, name)
				defer func() { order = append(order, "/"+name) }()
				return next(ctx, c)
			}
		}}
	}
	cached := pawl.Middleware{Tool: func(pawl.ToolFunc) pawl.ToolFunc {
		return func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) { return pawl.TextResult("cached"), nil }
	}}
	x = run(note("a"), pawl.Middleware{}, note("b"), cached, note("c"))
	if diff := cmp.Diff(order, []string{"a", "b", "/b", "/a"}); diff != "" || x.Result.Text() != "cached" || x.Attempts != 0 || got != nil {
		t.Errorf("got %q after %d attempts, order %s", x.Result.Text(), x.Attempts, diff)
	}
	x = run(pawl.After(func(context.Context, pawl.ToolCall, pawl.ToolResult, error) (pawl.ToolResult, error) {
		panic("after")
	}))
	if x.Outcome != pawl.OutcomePanicked || len(got) != 1 {
		t.Errorf("a panic after the call: got %s, ran %v", x.Outcome, got)
	}
}

// A middleware that passes a call on twice, to repeat it, is counted so.
func TestMiddlewareThatRepeatsACall(t *testing.T) {
	tries := 0
	flaky := does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		if tries++; tries < 3 {
			return pawl.ToolResult{}, errors.New("busy")
		}
		return pawl.TextResult("at last"), nil
	})
	again := pawl.Middleware{Tool: func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, c pawl.ToolCall) (res pawl.ToolResult, err error) {
			for range 3 {
				if res, err = next(ctx, c); err == nil {
					break
				}
			}
			return res, err
		}
	}}
	x, _, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{flaky}, Middleware: []pawl.Middleware{again}}, call("", "f", "{}"))
	if x.Outcome != pawl.OutcomeOK || x.Attempts != 3 {
		t.Errorf("got %s after %d attempts, want ok after 3", x.Outcome, x.Attempts)
	}
}

// A middleware never takes a call that waits for one that was done.
func TestMiddlewareSeesThatACallWaits(t *testing.T) {
	var told []string
	after := pawl.After(func(_ context.Context, c pawl.ToolCall, r pawl.ToolResult, err error) (pawl.ToolResult, error) {
		told = append(told, fmt.Sprint(c.Name, " ", err != nil))
		return pawl.TextResult("all is well"), nil
	})
	x, res, _ := one(t, t.Context(), &pawl.Agent{Tools: []pawl.Toolset{passive("ask")}, Middleware: []pawl.Middleware{after}}, call("", "ask", "{}"))
	if x.Outcome != pawl.OutcomePending || res.Stop != pawl.StopPending || !slices.Equal(told, []string{"ask true"}) {
		t.Errorf("got %s, %s, told %q", x.Outcome, res.Stop, told)
	}
}

// Faults that may pass are repeated where the effect allows it, with a pause; the rest are not.
func TestRetries(t *testing.T) {
	for _, test := range []struct {
		effect pawl.Effect
		err    func(error) error
		faults int
		want   pawl.Outcome
		tries  int
		took   time.Duration
	}{
		{pawl.Write, pawl.Retryable, 1, pawl.OutcomeError, 1, 0},
		{pawl.Compose, pawl.Retryable, 1, pawl.OutcomeError, 1, 0},
		{pawl.Idempotent, pawl.Retryable, 1, pawl.OutcomeOK, 2, 100 * time.Millisecond},
		{pawl.Read, pawl.Retryable, 2, pawl.OutcomeOK, 3, 300 * time.Millisecond},
		{pawl.Pure, pawl.Retryable, 9, pawl.OutcomeError, 3, 300 * time.Millisecond},
		{pawl.Read, func(err error) error { return err }, 9, pawl.OutcomeError, 1, 0},
		{pawl.Read, func(err error) error { return fmt.Errorf("look: %w", pawl.Retryable(err)) }, 1, pawl.OutcomeOK, 2, 100 * time.Millisecond},
		{pawl.Read, pawl.Abort, 9, pawl.OutcomeError, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			var seen []int
			tool := does("f", func(ctx context.Context, _ pawl.ToolCall) (pawl.ToolResult, error) {
				tries++
				seen = append(seen, pawl.InvocationFrom(ctx).Attempt)
				if tries <= test.faults {
					return pawl.ToolResult{}, test.err(errors.New("connection lost"))
				}
				return pawl.TextResult("ok"), nil
			})
			tool.Effect = test.effect
			begin := time.Now()
			a := &pawl.Agent{Model: together(named("f")...), Tools: []pawl.Toolset{tool}}
			events, res, _ := collect(a.Stream(t.Context(), pawl.User("go")))
			x := res.Steps[0].Executions[0]
			if x.Outcome != test.want || tries != test.tries || x.Attempts != tries || time.Since(begin) != test.took {
				t.Errorf("%v, %d faults: got %s after %d tries (%d counted) in %v", test.effect, test.faults, x.Outcome, tries, x.Attempts, time.Since(begin))
			}
			var told []int
			notices := 0
			for _, e := range events {
				if e.Kind == pawl.EventCallStarted {
					told = append(told, e.Attempt)
				}
				if e.Kind == pawl.EventNotice && e.Code == "retry" {
					notices++
				}
			}
			if !slices.Equal(told, seen) || seen[len(seen)-1] != tries || notices != tries-1 {
				t.Errorf("attempts told %v, seen %v, %d notices", told, seen, notices)
			}
		})
	}
}

func TestAbortAndFinish(t *testing.T) {
	boom := errors.New("the disk is full")
	other := 0
	tools := []pawl.Toolset{
		does("aborts", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
			return pawl.ToolResult{}, fmt.Errorf("writing: %w", pawl.Abort(boom))
		}),
		does("finishes", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
			return pawl.ToolResult{}, pawl.Finish(pawl.TextResult("the report is written"))
		}),
		does("other", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
			other++
			return pawl.TextResult("fine"), nil
		}),
	}
	run := func(mw []pawl.Middleware, names ...string) (*pawl.Result, error) {
		t.Helper()
		other = 0
		return step(t, t.Context(), &pawl.Agent{Model: together(named(names...)...), Tools: tools, Middleware: mw, Executor: pawl.Parallel{Limit: 1}})
	}
	res, err := run(nil, "aborts", "other")
	var te *pawl.ToolError
	if !errors.Is(err, boom) || !errors.As(err, &te) || te.Execution.Call.Name != "aborts" || res.Stop != pawl.StopFailed || other != 1 {
		t.Errorf("abort: got %s, %v, the other call ran %d times", res.Stop, err, other)
	}
	if got := say(res.Messages[2:]); got != "tool: c0 = error: Stopped: the disk is full\ntool: c1 = fine\n" {
		t.Errorf("abort: got %s", got)
	}
	res, err = run(nil, "finishes", "other")
	if err != nil || res.Stop != pawl.StopFinished || res.Text() != "the report is written" || other != 1 || res.Spent.Requests != 1 {
		t.Errorf("finish: got %s, %q, %v, the other call ran %d times", res.Stop, res.Text(), err, other)
	}
	if x := res.Steps[0].Executions[0]; x.Outcome != pawl.OutcomeOK || x.Ends != pawl.EndsFinished || x.Result.IsError {
		t.Errorf("finish: got %+v", x)
	}
	if res, err = run(nil, "finishes", "aborts"); err == nil || res.Stop != pawl.StopFailed {
		t.Errorf("a failure wins over a finish: got %s, %v", res.Stop, err)
	}
	for _, control := range []error{pawl.Abort(boom), pawl.Finish(pawl.TextResult("enough"))} {
		mw := pawl.Before(func(context.Context, pawl.ToolCall) (pawl.ToolCall, error) { return pawl.ToolCall{}, control })
		res, err = run([]pawl.Middleware{mw}, "other")
		if other != 0 || (err != nil) != (res.Stop == pawl.StopFailed) || res.Stop == pawl.StopAnswer {
			t.Errorf("%v from a middleware: got %s, %v", control, res.Stop, err)
		}
	}
}

// A result is cut to its head and tail, at runes, to no more than MaxResult bytes, and says what is missing.
func TestResultsAreCapped(t *testing.T) {
	for _, limit := range []int{0, -1, 100, 1000, 1001, 1002, 1003, 10} {
		for _, unit := range []string{"x", "ø", "世", "🦊", "\x80"} {
			full := strings.Repeat(unit, 50000/len(unit))
			tool := does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
				return pawl.ToolResult{Parts: []pawl.Part{text(full), pawl.Media{URL: "u"}, text("short")}, Data: json.RawMessage(`{}`)}, nil
			})
			tool.MaxResult = limit
			got := execute(t, tool, `{}`).Result
			if limit == -1 {
				if got.Text() != full+"short" {
					t.Errorf("no bound: got %d bytes", len(got.Text()))
				}
				continue
			}
			bound := limit
			if limit == 0 {
				bound = 32 << 10
			}
			body := got.Parts[0].(pawl.Text).Text
			if n := len(got.Text()); n > bound && limit > 150 {
				t.Errorf("limit %d: %d bytes are told", limit, n)
			}
			if utf8.ValidString(full) && !utf8.ValidString(body) {
				t.Errorf("limit %d: a rune is cut in %q", limit, body)
			}
			var left int
			head, rest, ok := strings.Cut(body, "\n[… ")
			if _, err := fmt.Sscanf(rest, "%d bytes left out", &left); err != nil || !ok {
				t.Fatalf("limit %d: no mark in %.200q", limit, body)
			}
			_, tail, _ := strings.Cut(rest, "…]\n")
			if limit > 10 && len(head)+len(tail)+left != len(full) || !strings.HasPrefix(full, head) || !strings.HasSuffix(full, tail) {
				t.Errorf("limit %d of %q: %d + %d bytes are kept, %d said to be left out, of %d", limit, unit, len(head), len(tail), left, len(full))
			}
			if limit > 150 && (len(head) < bound/3 || len(tail) < bound/6) {
				t.Errorf("limit %d: head of %d, tail of %d", limit, len(head), len(tail))
			}
		}
	}
}

// A tool cannot put into the transcript what no provider could send.
func TestResultsHoldTextAndMediaOnly(t *testing.T) {
	tool := does("f", func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		return pawl.ToolResult{Parts: []pawl.Part{text("a"), nil, pawl.ToolCall{ID: "x"}, pawl.Reasoning{Text: "hm"}, pawl.Media{URL: "u"}}}, nil
	})
	x := execute(t, tool, `{}`)
	for _, p := range x.Result.Parts {
		switch p.(type) {
		case pawl.Text, pawl.Media:
		default:
			t.Errorf("the result holds %T", p)
		}
	}
	if _, err := json.Marshal(x); err != nil {
		t.Error(err)
	}
}

func TestApproval(t *testing.T) {
	ran := 0
	tool := &pawl.Tool{Name: "write", Input: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, pawl.ToolCall) (pawl.ToolResult, error) {
		ran++
		return pawl.TextResult("written"), nil
	}}
	read := says("read", "fine")
	read.Effect = pawl.Read
	newAgent := func() *pawl.Agent {
		return &pawl.Agent{Tools: []pawl.Toolset{tool, read}, Approve: pawl.AskBeforeWrites,
			Model: together(call("w", "write", `{"b": 1, "a": 2}`), call("r", "read", `{}`))}
	}
	a := newAgent()
	pending, err := step(t, t.Context(), a)
	if err != nil || pending.Stop != pawl.StopPending || ran != 0 || len(pending.Pending) != 1 {
		t.Fatalf("got %+v, %v", pending, err)
	}
	w := pending.Pending[0]
	if w.Key != "run/1/0" || w.Call.ID != "w" || w.Outcome != pawl.OutcomePending || w.Why != "it may change the world" || w.Digest == "" || w.Passive || w.Attempt != 0 {
		t.Errorf("got %+v", w)
	}
	if got := say(pending.Messages[2:]); got != "tool: r = fine\n" {
		t.Errorf("the call that needs no approval is to run: got %s", got)
	}
	settle := func(d pawl.Decision) (*pawl.Result, []pawl.Event) {
		t.Helper()
		ran = 0
		events, res, err := collect(a.ResumeStream(t.Context(), pending, pawl.Decide(d)))
		if err != nil {
			t.Fatal(err)
		}
		mustBeValid(t, res)
		return res, events
	}
	if res, _ := settle(w.Approve("ann")); res.Stop != pawl.StopAnswer || ran != 1 || res.Steps[0].Executions[0].Decision.By != "ann" {
		t.Errorf("approved: got %s, ran %d times", res.Stop, ran)
	} else if got := say(res.Messages[2:3]); got != "tool: w = written\ntool: r = fine\n" {
		t.Errorf("approved: got %s", got)
	}
	if res, _ := settle(w.Deny("ann", "not today")); res.Stop != pawl.StopAnswer || ran != 0 || res.Steps[0].Executions[0].Outcome != pawl.OutcomeDenied {
		t.Errorf("denied: got %s, ran %d times", res.Stop, ran)
	} else if got := say(res.Messages[2:3]); got != "tool: w = error: Denied: not today\ntool: r = fine\n" {
		t.Errorf("denied: got %s", got)
	}
	if res, _ := settle(w.Answer("ann", pawl.TextResult("by hand"))); ran != 0 || res.Steps[0].Executions[0].Outcome != pawl.OutcomeOK {
		t.Errorf("answered: ran %d times, %+v", ran, res.Steps[0].Executions[0])
	} else if got := say(res.Messages[2:3]); got != "tool: w = by hand\ntool: r = fine\n" {
		t.Errorf("answered: got %s", got)
	}
	wrong := w.Approve("eve")
	wrong.Digest = strings.Repeat("0", len(w.Digest))
	res, events := settle(wrong)
	if res.Stop != pawl.StopPending || ran != 0 || res.Pending[0].Digest != w.Digest {
		t.Errorf("wrong digest: got %s, ran %d times", res.Stop, ran)
	}
	if !slices.ContainsFunc(events, func(e pawl.Event) bool { return e.Kind == pawl.EventNotice && e.Code == "decision_refused" }) {
		t.Error("wrong digest: nobody was told")
	}
	// The digest binds the arguments in their canonical form, the tool's schema, and the place.
	a.Model = together(call("w", "write", `{"a":2,"b":1}`), call("r", "read", `{}`))
	if same, _ := step(t, t.Context(), a); same.Pending[0].Digest != w.Digest {
		t.Error("the same arguments in another order have another digest")
	}
	a.Model = together(call("w", "write", `{"a":2,"b":1.0}`), call("r", "read", `{}`))
	if other, _ := step(t, t.Context(), a); other.Pending[0].Digest == w.Digest {
		t.Error("other arguments have the same digest")
	}
	a.Model = together(call("r", "read", `{}`), call("w", "write", `{"a":2,"b":1}`))
	if other, _ := step(t, t.Context(), a); other.Pending[0].Digest == w.Digest {
		t.Error("another place has the same digest")
	}
	a = newAgent()
	changed := tool.Clone()
	changed.Input = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	a.Tools[0] = changed
	if res, _ := settle(w.Approve("ann")); res.Stop != pawl.StopPending || ran != 0 {
		t.Errorf("another schema: got %s, ran %d times", res.Stop, ran)
	}
	// A call that a middleware changes after it was approved needs a new word.
	a = newAgent()
	a.Middleware = []pawl.Middleware{pawl.Before(func(_ context.Context, c pawl.ToolCall) (pawl.ToolCall, error) {
		c.Args = json.RawMessage(`{"changed":true}`)
		return c, nil
	})}
	res, _ = settle(w.Approve("ann"))
	if res.Stop != pawl.StopPending || ran != 0 || string(res.Pending[0].Call.Args) != `{"changed":true}` {
		t.Errorf("changed: got %s, ran %d times, %+v", res.Stop, ran, res.Pending)
	}
}

// An approver that answers because the run ends has denied nothing.
func TestAnApproverWhoseRunEndsDecidesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := &pawl.Agent{Tools: []pawl.Toolset{says("f", "")}, Approve: func(ctx context.Context, _ pawl.ToolCall, _ *pawl.Tool) pawl.Approval {
		cancel(errors.New("shut down"))
		<-ctx.Done()
		return pawl.Approval{Verdict: pawl.Deny, Reason: "nobody is there"}
	}}
	x, res, err := one(t, ctx, a, call("", "f", "{}"))
	if err == nil || x.Outcome != pawl.OutcomeCancelled || len(res.Calls()) != 1 {
		t.Errorf("got %s, %v, transcript\n%s", x.Outcome, err, say(res.Messages))
	}
}

// A middleware that gives up because the run ends leaves its call open, as if it had not been taken.
func TestAMiddlewareWhoseRunEndsLeavesItsCallOpen(t *testing.T) {
	for _, cause := range []error{errors.New("shut down"), pawl.ErrCancelled} {
		ctx, cancel := context.WithCancelCause(t.Context())
		limiter := pawl.Before(func(ctx context.Context, c pawl.ToolCall) (pawl.ToolCall, error) {
			cancel(cause)
			<-ctx.Done()
			return c, fmt.Errorf("wait for a turn: %w", ctx.Err())
		})
		x, res, _ := one(t, ctx, &pawl.Agent{Tools: []pawl.Toolset{says("f", "")}, Middleware: []pawl.Middleware{limiter}}, call("", "f", "{}"))
		if open := len(res.Calls()); x.Outcome != pawl.OutcomeCancelled || (open == 1) != (cause != pawl.ErrCancelled) {
			t.Errorf("%v: got %s, open %d, transcript\n%s", cause, x.Outcome, open, say(res.Messages))
		}
	}
}

func TestExecuteOutsideARun(t *testing.T) {
	if x := pawl.Execute(t.Context(), passive("ask"), call("", "ask", "{}")); x.Outcome != pawl.OutcomeDenied || !strings.Contains(x.Result.Text(), "needs an answer from outside") {
		t.Errorf("a passive tool: got %s, %q", x.Outcome, x.Result.Text())
	}
	boom := errors.New("server is down")
	if x := pawl.Execute(t.Context(), brokenSet{boom}, call("c", "f", "")); x.Outcome != pawl.OutcomeError || x.Result.CallID != "c" || !x.Result.IsError {
		t.Errorf("a broken toolset: got %+v", x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if x := pawl.Execute(ctx, says("f", ""), call("", "f", "{}")); x.Outcome != pawl.OutcomeCancelled {
		t.Errorf("after the end: got %s", x.Outcome)
	}
	broken := &pawl.Tool{Name: "f", Run: says("f", "").Run, Input: json.RawMessage(`{`)}
	if x := pawl.Execute(t.Context(), broken, call("", "f", "{}")); x.Outcome != pawl.OutcomeError || x.Result.Text() != "The tool f cannot be used." {
		t.Errorf("a broken schema: got %s, %q", x.Outcome, x.Result.Text())
	}
}

type brokenSet struct{ err error }

func (b brokenSet) Tools(context.Context) ([]*pawl.Tool, error) { return nil, b.err }

// A single call is not held longer than its own tool takes, nor does its timeout outlive it.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Int64
		tool := does("f", func(ctx context.Context, _ pawl.ToolCall) (pawl.ToolResult, error) {
			d, ok := ctx.Deadline()
			limit.Store(int64(time.Until(d)))
			if !ok {
				limit.Store(-1)
			}
			return pawl.TextResult(""), nil
		})
		for _, test := range []struct{ set, want time.Duration }{{0, time.Minute}, {time.Second, time.Second}, {-1, -1}} {
			c := tool.Clone()
			c.Timeout = test.set
			execute(t, c, `{}`)
			if got := time.Duration(limit.Load()); got != test.want {
				t.Errorf("Timeout %v: the tool had %v, want %v", test.set, got, test.want)
			}
		}
		compose := tool.Clone()
		compose.Effect = pawl.Compose
		if execute(t, compose, `{}`); limit.Load() != -1 {
			t.Errorf("a tool that composes had %v; its calls have limits of their own", time.Duration(limit.Load()))
		}
	})
}

// The context of a call behaves like any other: what is derived from it ends with it, for its reason, and it is over when the call is.
func TestTheContextOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		outer := context.WithValue(t.Context(), key{}, "value")
		var kept context.Context
		tool := does("f", func(ctx context.Context, c pawl.ToolCall) (pawl.ToolResult, error) {
			kept = ctx
			if ctx.Value(key{}) != "value" || ctx.Err() != nil {
				t.Errorf("got %v, %v", ctx.Value(key{}), ctx.Err())
			}
			child, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if d, ok := child.Deadline(); !ok || time.Until(d) != time.Second {
				t.Errorf("the derived deadline is in %v", time.Until(d))
			}
			ended := make(chan error, 1)
			stop := context.AfterFunc(ctx, func() { ended <- ctx.Err() })
			defer stop()
			if pawl.InvocationFrom(child) == nil || pawl.InvocationFrom(child).Call.Name != "f" {
				t.Error("a derived context has no invocation")
			}
			if string(c.Args) == `{"quick":true}` {
				return pawl.TextResult(""), nil
			}
			<-child.Done()
			if !errors.Is(child.Err(), context.DeadlineExceeded) || context.Cause(child) == nil || context.Cause(child) != context.Cause(ctx) {
				t.Errorf("got %v because of %v", child.Err(), context.Cause(child))
			}
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("AfterFunc saw %v", err)
			}
			return pawl.ToolResult{}, child.Err()
		})
		tool.Timeout = time.Second
		if x := pawl.Execute(outer, tool, call("", "f", "{}")); x.Outcome != pawl.OutcomeTimeout {
			t.Errorf("got %s", x.Outcome)
		}
		if x := pawl.Execute(outer, tool, call("", "f", `{"quick":true}`)); x.Outcome != pawl.OutcomeOK {
			t.Errorf("got %s", x.Outcome)
		}
		select {
		case <-kept.Done():
		default:
			t.Error("the context outlives the call")
		}
		if kept.Err() == nil {
			t.Error("the context has no error after the call")
		}
	})
}
