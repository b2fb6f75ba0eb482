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

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Each row reaches one outcome. The result helps the model to continue and contains no stack trace,
// no Go name and no path of the host.
func TestOutcomes(t *testing.T) {
	type in struct {
		Path string `json:"path"`
		N    int    `json:"n,omitempty"`
	}
	works := pawl.Func("file_read", "", func(context.Context, in) (string, error) { return "text", nil })
	fails := does("fails", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{}, fmt.Errorf("read notes.txt: %w", errors.New("no such file"))
	})
	tells := does("tells", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ErrorResult("no such file"), nil
	})
	panics := does("panics", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{Parts: make([]llm.Part, 0)[len(c.Args):]}, nil
	})
	slow := does("slow", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
		<-ctx.Done()
		return llm.ToolResult{}, ctx.Err()
	})
	slow.Timeout = time.Second
	slowRead := slow.Clone()
	slowRead.Name, slowRead.Effect = "slow_read", pawl.EffectRead
	set := []pawl.Toolset{works, fails, tells, panics, slow, slowRead, passive("person")}
	guard := pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
		if strings.Contains(string(c.Args), "secret") {
			return c, pawl.BlockError("secrets stay here")
		}
		if strings.Contains(string(c.Args), "boom") {
			panic("guard " + string(c.Args))
		}
		return c, nil
	})
	approve := func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		switch s := string(c.Args); {
		case strings.Contains(s, "denied"):
			return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "not this file"}, nil
		case strings.Contains(s, "nothing"):
			return pawl.Approval{}, nil
		case strings.Contains(s, "ask"):
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "who knows"}, nil
		case strings.Contains(s, "fault"):
			panic("approver")
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
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
		{"file_read", ``, pawl.OutcomeInvalid, "The call of file_read has no arguments, but it needs them:\n- missing required field \"path\"\nArguments of the right form, with your own values: {\"path\":\"text\"}", "missing", 0},
		{"file_read", `{"path":`, pawl.OutcomeInvalid, "The arguments of file_read are not valid JSON: it ends too early: an object or a list is not closed. Send one JSON object that fits the tool's schema, for example: {\"path\":\"text\"}. You sent: {\"path\":", "not valid JSON", 0},
		{"file_read", `{"path":"a"} {}`, pawl.OutcomeInvalid, "", "not valid JSON", 0},
		{"file_read", `[]`, pawl.OutcomeInvalid, "The arguments of file_read do not fit its schema:\n- expected object, got array\nArguments of the right form, with your own values: {\"path\":\"text\"}", "", 0},
		{"file_read", `{"path":1,"n":"x","q":2}`, pawl.OutcomeInvalid,
			"The arguments of file_read do not fit its schema:\n- unknown field \"q\"; the fields here are \"n\", \"path\"\n- field n: expected integer, got string \"x\"\n- field path: expected string, got number 1\nArguments of the right form, with your own values: {\"path\":\"text\"}", "", 0},
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
		{"file_read", `{"path":"fault"}`, pawl.OutcomeDenied, "Denied: it could not be found out whether this call may run. Do not repeat it.", "approval policy: panic: approver", 0},
		{"file_read", `{"path":"ask"}`, pawl.OutcomePending, "", "", 0},
		{"person", `{}`, pawl.OutcomePending, "", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			x, res, err := one(t, t.Context(), &pawl.Agent{Tools: set, Middleware: []pawl.Middleware{guard,
				pawl.Approve(approve)}}, call("", test.name, test.args))
			if err != nil {
				t.Errorf("%s %s: the run failed: %v", test.name, test.args, err)
			}
			got := x.Result.Text()
			if x.Outcome != test.want || test.text != "" && got != test.text ||
				!strings.Contains(x.Error, test.record) || x.Attempts != test.attempts {
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

// The list of outcomes is closed. Other tests reach the outcomes that the table above leaves out.
func TestSettledAndFailed(t *testing.T) {
	for o, want := range map[pawl.Outcome][2]bool{
		pawl.OutcomeOK: {true, false}, pawl.OutcomeError: {true, true}, pawl.OutcomeInvalid: {true, true},
		pawl.OutcomeUnknownTool: {true, true},
		pawl.OutcomeBlocked:     {true, false}, pawl.OutcomeDenied: {true, false},
		pawl.OutcomeTimeout: {true, true}, pawl.OutcomeCancelled: {true, false},
		pawl.OutcomePanicked: {true, true}, pawl.OutcomeSkipped: {true, false}, pawl.OutcomePending: {false, false},
		pawl.OutcomeUnknown: {false, false},
	} {
		if got := [2]bool{o.Settled(), o.Failed()}; got != want {
			t.Errorf("%s: got settled, failed %v; want %v", o, got, want)
		}
	}
}

// A model can write any text as arguments. No text makes the pipeline panic.
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

// Arguments are an object, with or without "type": "object" in the schema.
func TestArgumentsAreAnObject(t *testing.T) {
	for _, schema := range []string{`{"properties":{"a":{"type":"string"}}}`, `{}`, `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`} {
		tool := &pawl.Tool{Name: "f", Run: says("f", "ok").Run, Input: json.RawMessage(schema)}
		for _, args := range []string{`[]`, `"a"`, `1`} {
			if x := execute(t, tool, args); x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), "expected object, got ") {
				t.Errorf("%s takes %s: %s, %q", schema, args, x.Outcome, x.Result.Text())
			}
		}
		if x := execute(t, tool, `{"a":"x"}`); x.Outcome != pawl.OutcomeOK {
			t.Errorf("%s: got %s, %s", schema, x.Outcome, x.Result.Text())
		}
	}
}

// Servers write no arguments in several forms. They are {}, where the schema allows it.
func TestNoArguments(t *testing.T) {
	needs := &pawl.Tool{Name: "f", Run: says("f", "ok").Run,
		Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)}
	for _, args := range []string{``, " \n", `null`, ` null `, `""`, `"null"`} {
		if x := execute(t, says("f", "ok"), args); x.Outcome != pawl.OutcomeOK || string(x.Call.Args) != "{}" {
			t.Errorf("%q, where none are needed: %s %s", args, x.Outcome, x.Call.Args)
		}
		x := execute(t, needs, args)
		if x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), `missing required field "a"`) {
			t.Errorf("%q, where some are needed: %s, %s", args, x.Outcome, x.Result.Text())
		}
	}
}

// Transient errors are retried after a pause if the effect of the tool allows it. Other errors are
// not retried.
func TestRetries(t *testing.T) {
	for _, test := range []struct {
		effect pawl.Effect
		err    func(error) error
		faults int
		want   pawl.Outcome
		tries  int
		took   time.Duration
	}{
		{pawl.EffectWrite, pawl.RetryableError, 1, pawl.OutcomeError, 1, 0},
		{pawl.EffectCompose, pawl.RetryableError, 1, pawl.OutcomeError, 1, 0},
		{pawl.EffectIdempotent, pawl.RetryableError, 1, pawl.OutcomeOK, 2, 100 * time.Millisecond},
		{pawl.EffectRead, pawl.RetryableError, 2, pawl.OutcomeOK, 3, 300 * time.Millisecond},
		{pawl.EffectPure, pawl.RetryableError, 9, pawl.OutcomeError, 3, 300 * time.Millisecond},
		{pawl.EffectRead, func(err error) error { return err }, 9, pawl.OutcomeError, 1, 0},
		{pawl.EffectRead, func(err error) error {
			return fmt.Errorf("look: %w", pawl.RetryableError(err))
		}, 1, pawl.OutcomeOK, 2, 100 * time.Millisecond},
		{pawl.EffectRead, pawl.AbortError, 9, pawl.OutcomeError, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			var seen []int
			tool := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
				tries++
				seen = append(seen, pawl.InvocationFrom(ctx).Attempt)
				if tries <= test.faults {
					return llm.ToolResult{}, test.err(errors.New("connection lost"))
				}
				return llm.TextResult("ok"), nil
			})
			tool.Effect = test.effect
			begin := time.Now()
			a := &pawl.Agent{Model: together(named("f")...), Tools: []pawl.Toolset{tool}}
			events, res, _ := collect(a.Stream(t.Context(), llm.User("go")))
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
		does("aborts", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{}, fmt.Errorf("writing: %w", pawl.AbortError(boom))
		}),
		does("finishes", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			return llm.ToolResult{}, pawl.FinishError(llm.TextResult("the report is written"))
		}),
		does("other", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			other++
			return llm.TextResult("fine"), nil
		}),
	}
	run := func(mw []pawl.Middleware, names ...string) (*pawl.Result, error) {
		t.Helper()
		other = 0
		return step(t, t.Context(), &pawl.Agent{Model: together(named(names...)...), Tools: tools, Middleware: mw,
			Parallel: pawl.Parallel{Limit: 1}})
	}
	res, err := run(nil, "aborts", "other")
	var te *pawl.ToolError
	if !errors.Is(err, boom) || !errors.As(err, &te) || te.Execution.Call.Name != "aborts" ||
		res.Stop != pawl.StopFailed || other != 1 {
		t.Errorf("abort: got %s, %v, the other call ran %d times", res.Stop, err, other)
	}
	if got := say(res.Messages[2:]); got != "tool: c0 = error: Stopped: the disk is full\ntool: c1 = fine\n" {
		t.Errorf("abort: got %s", got)
	}
	res, err = run(nil, "finishes", "other")
	if err != nil || res.Stop != pawl.StopFinished || res.Text() != "the report is written" || other != 1 || res.Spent.Requests != 1 {
		t.Errorf("finish: got %s, %q, %v, the other call ran %d times", res.Stop, res.Text(), err, other)
	}
	if x := res.Steps[0].Executions[0]; x.Outcome != pawl.OutcomeOK || x.Ends != pawl.StopFinished || x.Result.IsError {
		t.Errorf("finish: got %+v", x)
	}
	if res, err = run(nil, "finishes", "aborts"); err == nil || res.Stop != pawl.StopFailed {
		t.Errorf("a failure wins over a finish: got %s, %v", res.Stop, err)
	}
	for _, control := range []error{pawl.AbortError(boom), pawl.FinishError(llm.TextResult("enough"))} {
		mw := pawl.Before(func(context.Context, llm.ToolCall) (llm.ToolCall, error) { return llm.ToolCall{}, control })
		res, err = run([]pawl.Middleware{mw}, "other")
		if other != 0 || (err != nil) != (res.Stop == pawl.StopFailed) || res.Stop == pawl.StopAnswer {
			t.Errorf("%v from a middleware: got %s, %v", control, res.Stop, err)
		}
	}
}

func TestExecuteOutsideARun(t *testing.T) {
	if x := (pawl.Toolsets{passive("ask")}).Execute(t.Context(),
		call("", "ask", "{}")); x.Outcome != pawl.OutcomeDenied || !strings.Contains(x.Result.Text(), "needs an answer from outside") {
		t.Errorf("a passive tool: got %s, %q", x.Outcome, x.Result.Text())
	}
	boom := errors.New("server is down")
	if x := (pawl.Toolsets{brokenSet{boom}}).Execute(t.Context(),
		call("c", "f", "")); x.Outcome != pawl.OutcomeError || x.Result.CallID != "c" || !x.Result.IsError {
		t.Errorf("a broken toolset: got %+v", x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if x := (pawl.Toolsets{says("f", "")}).Execute(ctx, call("", "f", "{}")); x.Outcome != pawl.OutcomeCancelled {
		t.Errorf("after the end: got %s", x.Outcome)
	}
	broken := &pawl.Tool{Name: "f", Run: says("f", "").Run, Input: json.RawMessage(`{`)}
	if x := (pawl.Toolsets{broken}).Execute(t.Context(), call("", "f", "{}")); x.Outcome != pawl.OutcomeError ||
		x.Result.Text() != "The tool f cannot be used." {
		t.Errorf("a broken schema: got %s, %q", x.Outcome, x.Result.Text())
	}
}

type brokenSet struct{ err error }

func (b brokenSet) Tools(context.Context) ([]*pawl.Tool, error) { return nil, b.err }

// A single call takes no longer than its own tool, and its timeout timer ends with it.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Int64
		tool := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			d, ok := ctx.Deadline()
			limit.Store(int64(time.Until(d)))
			if !ok {
				limit.Store(-1)
			}
			return llm.TextResult(""), nil
		})
		for _, test := range []struct{ set, want time.Duration }{{0, time.Minute}, {time.Second, time.Second},
			{-1, -1}} {
			c := tool.Clone()
			c.Timeout = test.set
			execute(t, c, `{}`)
			if got := time.Duration(limit.Load()); got != test.want {
				t.Errorf("Timeout %v: the tool had %v, want %v", test.set, got, test.want)
			}
		}
		compose := tool.Clone()
		compose.Effect = pawl.EffectCompose
		if execute(t, compose, `{}`); limit.Load() != -1 {
			t.Errorf("a tool that composes had %v; its calls have limits of their own", time.Duration(limit.Load()))
		}
	})
}
