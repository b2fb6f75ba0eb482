package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
)

// wrappers are functions that wrap a Runner.
func wrappers(secrets *redact.Redactor, seen func(name string, e pawl.Event)) map[string]func(pawl.Runner) pawl.Runner {
	return map[string]func(pawl.Runner) pawl.Runner{
		"Tap":    func(r pawl.Runner) pawl.Runner { return observe.Sync(r, func(e pawl.Event) { seen("Tap", e) }) },
		"On":     func(r pawl.Runner) pawl.Runner { return observe.Async(r, nil, func(e pawl.Event) { seen("On", e) }) },
		"Redact": func(r pawl.Runner) pawl.Runner { return redact.Runner(r, secrets) },
	}
}

// Into enforces its type through any wrappers in any order, and no secret passes Redact.
func TestWrappersCompose(t *testing.T) {
	type fact struct {
		Word string `json:"word"`
	}
	for _, order := range [][]string{{"Tap", "On", "Redact"}, {"Tap", "Redact", "On"}, {"On", "Tap", "Redact"}, {"On", "Redact", "Tap"}, {"Redact", "Tap", "On"}, {"Redact", "On", "Tap"}} {
		t.Run(strings.Join(order, "(")+"(agent)))", func(t *testing.T) {
			const plain = "hunter2hunter2"
			var secrets redact.Redactor
			if err := secrets.Add(plain); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			ends, told := map[string]int{}, map[string]bool{}
			wrap := wrappers(&secrets, func(name string, e pawl.Event) {
				mu.Lock()
				defer mu.Unlock()
				told[name] = told[name] || strings.Contains(jsonOrNone(e), plain)
				if e.Kind == pawl.EventRunEnded {
					ends[name]++
				}
			})
			var r pawl.Runner = &pawl.Agent{Model: script.New(script.Say(jsonOf(t, fact{plain}))),
				Output: json.RawMessage(`{"type":"string"}`)}
			for _, name := range slices.Backward(order) {
				r = wrap[name](r)
			}
			got, _, err := pawl.Into[fact](t.Context(), r.(pawl.OutputRunner), llm.User("go"))
			if err != nil || got.Word != "[redacted]" {
				t.Fatalf("Into gave %+v, %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			at := slices.Index(order, "Redact")
			for _, name := range []string{"Tap", "On"} {
				if inside := slices.Index(order, name) > at; ends[name] != 1 || told[name] != inside {
					t.Errorf("%s saw the end %d times; a secret: %v, want %v", name, ends[name], told[name], inside)
				}
			}
		})
	}
}

// An answer that does not fit its schema is an *OutputError behind Redact too, and the error
// contains no secret.
func TestRedactKeepsOutputErrors(t *testing.T) {
	var secrets redact.Redactor
	if err := secrets.Add(canary); err != nil {
		t.Fatal(err)
	}
	a := &pawl.Agent{Model: script.New(script.Loop(script.Say(canary)))}
	_, _, err := pawl.Into[int](t.Context(), redact.Runner(a, &secrets).(pawl.OutputRunner), llm.User("go"))
	var unfit *pawl.OutputError
	if !errors.As(err, &unfit) || unfit.Text != "[redacted]" || unfit.Result == nil {
		t.Fatalf("got %#v", err)
	}
	mustHide(t, "the error", fmt.Sprintf("%v %s", err, jsonOf(t, unfit)))
}

// silent is a Runner that supports no output schema.
type silent struct{}

func (silent) Stream(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] { return nil }

// A wrapped Runner supports an output schema only if the Runner itself does.
func TestWrappersPromiseNothing(t *testing.T) {
	for name, wrap := range wrappers(nil, func(string, pawl.Event) {}) {
		if _, ok := wrap(silent{}).(pawl.OutputRunner); ok {
			t.Errorf("%s of a Runner without WithOutput has it", name)
		}
	}
}

func TestApproveWithoutAPolicyBeginsNothing(t *testing.T) {
	model := script.New(script.Say("x"))
	a := &pawl.Agent{Model: model, Middleware: []pawl.Middleware{pawl.Approve(nil)}}
	if res, err := a.Run(t.Context(), llm.User("go")); res != nil || err == nil ||
		!strings.Contains(err.Error(), "no policy") || len(model.Requests()) > 0 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// The checks of middleware receive all callable tools, result_read included, so that a rule can
// name it.
func TestChecksSeeResultRead(t *testing.T) {
	var names []string
	a := &pawl.Agent{Model: script.New(script.Say("x")), Tools: []pawl.Toolset{says("f", "1")}, Artifacts: &artifact.Memory{},
		Middleware: []pawl.Middleware{{Check: func(tools []*pawl.Tool) error {
			for _, tool := range tools {
				names = append(names, tool.Name)
			}
			return nil
		}}}}
	if _, err := a.Run(context.Background(), llm.User("go")); err != nil || !slices.Equal(names, []string{"f", "result_read"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// A call that is changed after its approval needs a new approval, at any place of the change in the
// list. It runs only after both decisions.
func TestAChangeAfterApprovalNeedsBothDecisions(t *testing.T) {
	change := pawl.Middleware{Approved: func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			c.Args = json.RawMessage(`{"to":"Eve"}`)
			return next(ctx, c)
		}
	}}
	asks := pawl.Approve(func(context.Context, llm.ToolCall, *pawl.Tool) (pawl.Approval, error) {
		return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
	})
	for _, list := range [][]pawl.Middleware{{change, asks}, {asks, change}} {
		var ran []string
		pay := does("pay", func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
			ran = append(ran, string(c.Args))
			return llm.TextResult("paid"), nil
		})
		a := &pawl.Agent{Model: script.New(script.Call("pay", `{"to":"Bob"}`), script.Say("done")), Tools: []pawl.Toolset{pay}, Middleware: list}
		res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
		if err != nil || len(res.Pending) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		first := res.Pending[0].Approve("tom")
		res, err = runtest.Ended(a.Resume(t.Context(), res, llm.DecisionMessage(first)))
		if err != nil || len(res.Pending) != 1 || string(res.Pending[0].Call.Args) != `{"to":"Eve"}` || len(ran) > 0 {
			t.Fatalf("after one yes: %+v, %v, ran %q", res.Pending, err, ran)
		}
		res, err = a.Resume(t.Context(), res, llm.DecisionMessage(first, res.Pending[0].Approve("tom")))
		if err != nil || res.Stop != pawl.StopAnswer || !slices.Equal(ran, []string{`{"to":"Eve"}`}) {
			t.Errorf("after both: %s, %v, ran %q", res.Stop, err, ran)
		}
	}
}
