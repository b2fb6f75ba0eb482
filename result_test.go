package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/script"
)

// stops are runs that end without a plain answer, by the reason and the limit.
var stops = map[string]struct {
	reason pawl.StopReason
	limit  pawl.LimitName
	text   string // of the result; empty is not compared
	next   string // in the error
	is     error  // found by errors.Is
	agent  func(cancel context.CancelCauseFunc) *pawl.Agent
}{
	"pending": {reason: pawl.StopPending, next: "f; Resume with a Decision",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			return &pawl.Agent{Model: script.New(script.Call("f", nil)), Tools: []pawl.Toolset{says("f", "x")},
				Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
		}},
	"rounds": {reason: pawl.StopLimit, limit: "rounds", text: "enough", next: "raise Limits.Rounds",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			return &pawl.Agent{Model: script.New(script.Call("f", nil), script.Say("enough")), Tools: []pawl.Toolset{says("f", "x")},
				Limits: pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitAnswer}}
		}},
	"tokens": {reason: pawl.StopLimit, limit: "tokens", text: `{"city":"Oslo","days":[]}`, next: "raise Limits.Tokens",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			m := script.New(used(script.Say(`{"city":"Oslo","days":[]}`), llm.Usage{Input: 16, Output: 1}))
			return &pawl.Agent{Model: m, Limits: pawl.Limits{Tokens: 1}}
		}},
	"cost": {reason: pawl.StopLimit, limit: "cost", text: `{"city":"Oslo","days":[]}`, next: "raise Limits.Cost",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			m := script.New(used(script.Say(`{"city":"Oslo","days":[]}`), llm.Usage{Cost: 0.017}))
			return &pawl.Agent{Model: catalog.Price{Input: 1000}.Of(m), Limits: pawl.Limits{Cost: 0.000001}}
		}},
	"cost, finished by a tool": {reason: pawl.StopLimit, limit: "cost", text: "bye", next: "raise Limits.Cost",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			m := script.New(used(script.Call("end", nil), llm.Usage{Cost: 0.017}))
			end := does("end", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				return llm.ToolResult{}, pawl.FinishError(llm.TextResult("bye"))
			})
			return &pawl.Agent{Model: catalog.Price{Input: 1000}.Of(m), Tools: []pawl.Toolset{end},
				Limits: pawl.Limits{Cost: 0.000001}}
		}},
	"stalled": {reason: pawl.StopStalled, next: "change the instructions",
		agent: func(context.CancelCauseFunc) *pawl.Agent {
			return &pawl.Agent{Model: script.New(script.Loop(script.Call("f", nil))), Tools: []pawl.Toolset{says("f", "x")},
				Limits: pawl.Limits{Rounds: 20, AtLimit: pawl.AtLimitAnswer}}
		}},
	"time": {reason: pawl.StopLimit, limit: "time", next: "raise Limits.Time", is: pawl.ErrTime,
		agent: ending(pawl.ErrTime)},
	"cancelled": {reason: pawl.StopCancelled, next: "can be continued", is: pawl.ErrCancelled,
		agent: ending(pawl.ErrCancelled)},
	"interrupted": {reason: pawl.StopCancelled, next: "Resume executes the open calls", is: context.Canceled,
		agent: ending(nil)},
}

// used returns turn with a usage.
func used(turn script.Turn, u llm.Usage) script.Turn {
	turn.Usage = &u
	return turn
}

// ending returns agents whose call ends the context with cause.
func ending(cause error) func(context.CancelCauseFunc) *pawl.Agent {
	return func(cancel context.CancelCauseFunc) *pawl.Agent {
		f := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			cancel(cause)
			return llm.ToolResult{}, ctx.Err()
		})
		return &pawl.Agent{Model: script.New(script.Call("f", nil)), Tools: []pawl.Toolset{f}}
	}
}

// A run has no error if and only if there is a plain answer.
func TestAnAnswerOrAnError(t *testing.T) {
	for way, run := range map[string]func(context.Context, *pawl.Agent) (*pawl.Result, error){
		"Run": func(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
			return a.Run(ctx, llm.User("go"))
		},
		"Once": func(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
			return a.Once(ctx, llm.User("go"))
		},
		"Resume": func(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
			return a.Resume(ctx, &pawl.Result{}, llm.User("go"))
		},
		"Stream": func(ctx context.Context, a *pawl.Agent) (res *pawl.Result, err error) {
			for e, failed := range a.Stream(ctx, llm.User("go")) {
				if err != nil || res != nil && failed == nil {
					t.Errorf("%s came after the end, %v", e.Kind, err)
				}
				res, err = e.Result, failed
				if stop := (*pawl.StopError)(nil); errors.As(err, &stop) {
					res = stop.Result
				}
			}
			return res, err
		},
		"ResumeStream": func(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
			return pawl.Collect(a.ResumeStream(ctx, &pawl.Result{}, llm.User("go")), nil)
		},
		"Into": func(ctx context.Context, a *pawl.Agent) (*pawl.Result, error) {
			_, res, err := pawl.Into[forecast](ctx, a, llm.User("go"))
			return res, err
		},
	} {
		for name, test := range stops {
			ctx, cancel := context.WithCancelCause(t.Context())
			a := test.agent(cancel)
			if way == "Into" && name == "rounds" {
				continue // "enough" is no forecast: the run fails
			}
			res, err := run(ctx, a)
			var stop *pawl.StopError
			var unfit *pawl.OutputError
			if !errors.As(err, &stop) || errors.As(err, &unfit) || stop.Result != res || stop.Reason != test.reason ||
				res.Stop != test.reason || res.Limit != test.limit || !strings.Contains(err.Error(), test.next) ||
				test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s, %s: got the error %v with %+v", name, way, err, res)
				continue
			}
			if test.text != "" && res.Text() != test.text {
				t.Errorf("%s, %s: got the text %q", name, way, res.Text())
			}
			for _, other := range []error{pawl.ErrCancelled, pawl.ErrTime, context.Canceled} {
				if errors.Is(err, other) != (other == test.is) {
					t.Errorf("%s, %s: errors.Is(%v, %v) is wrong", name, way, err, other)
				}
			}
			if p := stop.Result.Pending; test.reason == pawl.StopPending && (len(p) != 1 || p[0].Call.Name != "f") {
				t.Errorf("%s, %s: pending %+v", name, way, p)
			}
			b, _ := json.Marshal(res)
			stored := new(pawl.Result)
			if json.Unmarshal(b, stored) != nil || stored.Err() == nil || stored.Err().Error() != err.Error() ||
				errors.Is(stored.Err(), pawl.ErrCancelled) != (test.is == pawl.ErrCancelled) {
				t.Errorf("%s, %s: stored, it has the error %v, want %v", name, way, stored.Err(), err)
			}
			cancel(nil)
		}
	}
}

func TestErrOfResults(t *testing.T) {
	for stop, want := range map[pawl.StopReason]string{pawl.StopAnswer: "", pawl.StopFinished: "",
		pawl.StopFailed: "failed: lost; Resume tries again"} {
		err := (&pawl.Result{Stop: stop, Cause: "lost"}).Err()
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%s: got %v", stop, err)
			}
		} else if want != "" {
			t.Errorf("%s: no error", stop)
		}
	}
	lost := errors.New("lost")
	turn := script.Fail(lost)
	_, err := (&pawl.Agent{Model: script.New(turn)}).Run(t.Context(), llm.User("go"))
	var stop *pawl.StopError
	if !errors.Is(err, lost) || errors.As(err, &stop) {
		t.Errorf("a failed run has the error %v", err)
	}
}

func TestCollect(t *testing.T) {
	kinds := 0
	a := &pawl.Agent{Model: script.New(script.Say("hello"))}
	res, err := pawl.Collect(a.Stream(t.Context(), llm.User("go")), func(pawl.Event) { kinds++ })
	if err != nil || res.Text() != "hello" || kinds < 5 {
		t.Errorf("got %+v, %v after %d events", res, err, kinds)
	}
	none := func(func(pawl.Event, error) bool) {}
	if res, err := pawl.Collect(none, nil); res != nil || err == nil {
		t.Errorf("no events: got %+v, %v", res, err)
	}
	// A Runner of another package may yield the end alone.
	alone := func(yield func(pawl.Event, error) bool) {
		yield(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: &pawl.Result{Stop: pawl.StopLimit}}, nil)
	}
	var stop *pawl.StopError
	if res, err := pawl.Collect(alone, nil); res == nil || !errors.As(err, &stop) {
		t.Errorf("an end alone: got %+v, %v", res, err)
	}
}

// The error of each limit names the setting that raises it.
func TestStopErrorNamesTheSetting(t *testing.T) {
	for limit, want := range map[pawl.LimitName]string{"": "raise the limit", "rounds": "raise Limits.Rounds",
		"calls": "raise Limits.Calls", "tokens": "raise Limits.Tokens", "cost": "raise Limits.Cost",
		"time": "raise Limits.Time", "output": "raise Settings.MaxTokens", "\xff": "raise the limit"} {
		err := (&pawl.Result{Stop: pawl.StopLimit, Limit: limit}).Err()
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", limit, err, want)
		}
		name, ok := strings.CutPrefix(want, "raise Limits.")
		if _, is := reflect.TypeFor[pawl.Limits]().FieldByName(name); ok && name != "" && !is {
			t.Errorf("Limits has no field %s", name)
		}
	}
}

// Each stop reason has a class, and only the reasons with ClassAnswered are success.
func TestStopClasses(t *testing.T) {
	for _, c := range []struct {
		reason pawl.StopReason
		class  pawl.StopClass
		says   string // the text of StopError, after the reason
	}{
		{pawl.StopAnswer, pawl.ClassAnswered, ""},
		{pawl.StopFinished, pawl.ClassAnswered, ""},
		{pawl.StopPending, pawl.ClassWaiting, "Resume with a Decision for each"},
		{pawl.StopLimit, pawl.ClassLimited, "raise the limit and Resume"},
		{pawl.StopStalled, pawl.ClassFailed, "change the instructions, the tools or the model"},
		{pawl.StopCancelled, pawl.ClassCancelled, "the conversation can be continued with Resume"},
		{pawl.StopFailed, pawl.ClassFailed, "Resume tries again"},
		{"of a later version", pawl.ClassFailed, "this version does not know the reason"},
	} {
		if got := c.reason.Class(); got != c.class {
			t.Errorf("%s: got the class %s, want %s", c.reason, got, c.class)
		}
		err := (&pawl.Result{Stop: c.reason}).Err()
		if (err == nil) != (c.class == pawl.ClassAnswered) {
			t.Errorf("%s: the error is %v", c.reason, err)
		}
		if err != nil && err.Error() != string(c.reason)+"; "+c.says {
			t.Errorf("%s: the error is %q", c.reason, err)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("connection refused")
	for _, test := range []struct {
		err  error
		want string
	}{
		{&llm.ProviderError{Code: llm.CodeStream}, "stream"},
		{&llm.ProviderError{Provider: "openai", Status: 429, Code: llm.CodeRateLimit, Message: "slow down"}, "openai: rate_limit (429): slow down"},
		{&llm.ProviderError{Provider: "openai", Code: llm.CodeNetwork, Err: cause}, "openai: network: connection refused"},
		{&pawl.ToolError{Execution: pawl.Execution{Call: call("", "f", ""), Error: "no room"}, Err: cause}, "tool f: no room"},
		{&pawl.ToolError{Execution: pawl.Execution{Call: call("", "f", "")}, Err: cause}, "tool f: connection refused"},
		{&pawl.TranscriptError{Index: 3, Text: "it is empty"}, "message 3: it is empty"},
		{pawl.AbortError(cause), "connection refused"},
		{pawl.FinishError(llm.TextResult("all is well")), "finished: all is well"},
		{pawl.BlockError("not today"), "not today"},
		{pawl.RetryableError(cause), "connection refused"},
		{&pawl.FieldError{Field: "Limits.Cost", Err: cause}, "Limits.Cost: connection refused"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%T: got %q, want %q", test.err, got, test.want)
		}
	}
	for _, err := range []error{&llm.ProviderError{Err: cause}, &pawl.ToolError{Err: cause}, pawl.AbortError(cause),
		pawl.RetryableError(cause), &pawl.FieldError{Err: cause}, fmt.Errorf("step 3: %w", pawl.AbortError(cause))} {
		if !errors.Is(err, cause) {
			t.Errorf("%T hides its cause", err)
		}
	}
}
