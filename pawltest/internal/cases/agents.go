package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// Runs are agents that need only an approval. They are made again for each run.
func Runs() map[string]func() *pawl.Agent {
	limited := func(l pawl.Limits) func() *pawl.Agent {
		return func() *pawl.Agent {
			a := Clerk(nil, script.Call("look", `{"at":"1"}`), script.Call("look", `{"at":"2"}`), script.Say("Enough."))
			a.Limits = l
			return a
		}
	}
	return map[string]func() *pawl.Agent{
		"text":   func() *pawl.Agent { return Clerk(nil, script.Say("Grüße, 世界. A text that comes in pieces.")) },
		"a call": func() *pawl.Agent { return Clerk(nil, script.Call("look", `{"at":"the sky"}`), script.Say("Seen.")) },
		"several calls": func() *pawl.Agent {
			return Clerk(nil, script.Together(script.Say("I look."), script.Call("look", `{"at":"a"}`),
				script.Call("look", `{"at":"b"}`), script.Call("look", `{"at":"c"}`)),
				script.Say("Seen."))
		},
		"wrong calls": func() *pawl.Agent {
			return Clerk(nil, script.Together(script.Call("nobody", `{}`), script.Call("look", `{"at":5}`)), script.Say("Sorry."))
		},
		"a yes": func() *pawl.Agent { return Clerk(nil, script.Call("pay", `{"at":"7"}`), script.Say("Paid.")) },
		"yes and reads": func() *pawl.Agent {
			return Clerk(nil, script.Together(script.Call("look", `{"at":"a"}`), script.Call("pay", `{"at":"7"}`)),
				script.Call("pay", `{"at":"8"}`), script.Say("Paid."))
		},
		"an agent inside": func() *pawl.Agent {
			a := Clerk(nil, script.Call("inner", `{"task":"look"}`), script.Say("Done."))
			in := Clerk(nil, script.Call("look", `{"at":"inside"}`), script.Say("It is dark."))
			in.Name = "inner"
			a.Tools = append(a.Tools, in.Tool("Looks inside."))
			return a
		},
		"stalled": func() *pawl.Agent {
			return Clerk(nil, script.Loop(script.Call("look", `{"at":"1"}`)))
		},
		"tokens passed": func() *pawl.Agent {
			a := Clerk(nil, script.Say("Too long."))
			a.Limits.Tokens = 1
			return a
		},
		"ended by a tool": func() *pawl.Agent { return Clerk(nil, script.Call("submit", `{"at":"the desk"}`)) },
		"ended by a tool after words": func() *pawl.Agent {
			return Clerk(nil, script.Together(script.Say("I submit."), script.Call("submit", `{"at":"the desk"}`)))
		},
		"ended by a tool over a limit": func() *pawl.Agent {
			turn := script.Call("submit", `{"at":"the desk"}`)
			turn.Usage = &llm.Usage{Input: 5, Output: 5}
			a := Clerk(nil, turn)
			a.Limits.Tokens = 1
			return a
		},
		"an answer with a schema": func() *pawl.Agent {
			a := Clerk(nil, script.Say(`{"at":"home"}`))
			a.Tools = nil
			a.Output = pawl.SchemaFor[Place]()
			return a
		},
		"no rounds left": limited(pawl.Limits{Rounds: 1}),
		"handed back":    limited(pawl.Limits{Rounds: 1, AtLimit: pawl.AtLimitReturn}),
	}
}

// Place is the input of most tools.
type Place struct {
	At string `json:"at"`
}

// Clerk is an agent that looks, waits at gate, asks the caller, and pays after an approval. Its
// tool submit ends the run.
func Clerk(gate <-chan struct{}, turns ...script.Turn) *pawl.Agent {
	look := pawl.Func("look", "Looks.", func(_ context.Context, in Place) (string, error) { return "saw " + in.At, nil })
	look.Effect = pawl.EffectRead
	pay := pawl.Func("pay", "Pays.", func(_ context.Context, in Place) (string, error) { return "paid " + in.At, nil })
	wait := pawl.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	wait.Effect = pawl.EffectRead
	ask := &pawl.Tool{Name: "ask", Description: "Asks.", Input: json.RawMessage(`{"type":"object"}`), Passive: true}
	submit := pawl.Func("submit", "Submits.", func(_ context.Context, in Place) (string, error) {
		return "", pawl.FinishError(llm.TextResult("submitted at " + in.At))
	})
	submit.Effect = pawl.EffectRead
	return &pawl.Agent{Name: "clerk", Model: script.New(turns...), Tools: []pawl.Toolset{look, pay, wait, ask, submit},
		Middleware: []pawl.Middleware{pawl.Approve(policy.AskBeforeWrites)}}
}

// ExecutorRuns are agents whose runs are the same with any Executor. They are made again for each
// run.
func ExecutorRuns() map[string]func(w *World) *pawl.Agent {
	look, pay := script.Call("look", `{"at":"a"}`), script.Call("pay", `{"at":"7"}`)
	turns := func(turns ...script.Turn) func(*World) *pawl.Agent {
		return func(w *World) *pawl.Agent { return w.Agent(turns...) }
	}
	asks := func(turns ...script.Turn) func(*World) *pawl.Agent {
		return func(w *World) *pawl.Agent {
			a := w.Agent(turns...)
			a.Middleware = Clerk(nil).Middleware
			return a
		}
	}
	return map[string]func(w *World) *pawl.Agent{
		"result/one":     turns(look, script.Say("done")),
		"result/several": turns(script.Together(look, script.Call("look", `{"at":"b"}`), script.Call("look", `{"at":"c"}`)), script.Say("done")),
		"result/parts":   turns(script.Call("show", `{}`), script.Say("done")),
		"result/writes":  turns(script.Together(pay, look, script.Call("pay", `{"at":"8"}`)), script.Say("done")),
		"result/failed": turns(script.Together(script.Call("breaks", `{}`), look, script.Call("panics", `{}`),
			script.Call("sends", `{}`)), script.Say("done")),
		"result/wrong calls": turns(script.Together(script.Call("nobody", `{}`), script.Call("look", `{"at":5}`),
			script.Call("look", `{"at":"a",}`), look), script.Say("done")),
		"result/passive": turns(script.Call("ask", `{}`), script.Say("done")),
		"ends/finished":  turns(script.Call("submit", `{"at":"the desk"}`)),
		"ends/stopped":   turns(script.Together(script.Call("stops", `{}`), look), script.Say("never")),
		"retries":        turns(script.Call("flaky", `{}`), script.Say("done")),
		"values":         turns(script.Call("notes", `{"at":"a"}`), script.Call("notes", `{"at":"b"}`), script.Say("done")),
		"events/all":     turns(script.Together(script.Call("tells", `{}`), look), script.Say("done")),
		"nested":         turns(script.Together(script.Call("both", `{}`), look), script.Say("done")),
		"questions":      asks(script.Together(look, pay, script.Call("look", `{"at":"b"}`)), script.Call("pay", `{"at":"8"}`), script.Say("done")),
		"held":           asks(script.Together(script.Call("bill", `{"at":"7"}`), script.Call("bill", `{"at":"9"}`)), script.Say("done")),
		"refused": func(w *World) *pawl.Agent {
			a := w.Agent(script.Together(look, pay, pay), script.Say("done"))
			a.Limits.CallsPerStep = 1
			return a
		},
	}
}

// World is what the tools of a run have done.
type World struct {
	mu   sync.Mutex
	done []string
}

// Did records what a tool has done.
func (w *World) Did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, what)
}

// Done returns what the tools have done, in alphabetical order.
func (w *World) Done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.done))
}

// Agent returns an agent with the tools of clerk, and with tools that fail in different ways, emit
// events, set values and call others.
func (w *World) Agent(turns ...script.Turn) *pawl.Agent {
	a := Clerk(nil, turns...)
	a.Middleware = []pawl.Middleware{pawl.Before(func(_ context.Context, c llm.ToolCall) (llm.ToolCall, error) {
		w.Did("before " + c.Name + string(c.Args))
		return c, nil
	})}
	add := func(name string, effect pawl.Effect, run func(context.Context, Place) (llm.ToolResult, error)) {
		a.Tools = append(a.Tools, &pawl.Tool{
			Name:        name,
			Description: "Does " + name + ".",
			Input:       json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`),
			Effect:      effect,
			Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				w.Did(name + string(c.Args))
				var in Place
				if err := json.Unmarshal(c.Args, &in); err != nil {
					return llm.ToolResult{}, err
				}
				return run(ctx, in)
			},
		})
	}

	add("breaks", pawl.EffectRead, func(context.Context, Place) (llm.ToolResult, error) {
		return llm.ErrorResult("the file is not there"), nil
	})
	add("panics", pawl.EffectRead, func(context.Context, Place) (llm.ToolResult, error) { panic("no") })
	add("sends", pawl.EffectWrite, func(context.Context, Place) (llm.ToolResult, error) {
		return llm.ToolResult{}, delivery.NewError(delivery.Unknown, "no answer came", errors.New("reset"))
	})
	add("stops", pawl.EffectRead, func(context.Context, Place) (llm.ToolResult, error) {
		return llm.ToolResult{}, pawl.AbortError(errors.New("the disk is full"))
	})
	add("show", pawl.EffectRead, func(context.Context, Place) (llm.ToolResult, error) {
		return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: "first"}, llm.Text{Text: "second"}},
			Data: json.RawMessage(`{"n":1}`)}, nil
	})
	add("bill", pawl.EffectWrite, func(_ context.Context, in Place) (llm.ToolResult, error) {
		return llm.TextResult("billed " + in.At), nil
	})
	add("notes", pawl.EffectRead, func(ctx context.Context, in Place) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		var before string
		if _, err := v.Get("note", &before); err != nil {
			return llm.ToolResult{}, err
		}
		return llm.TextResult("before it was " + before), v.Set("note", in.At)
	})
	add("tells", pawl.EffectRead, func(ctx context.Context, _ Place) (llm.ToolResult, error) {
		for i := range 3 {
			pawl.InvocationFrom(ctx).Emit(fmt.Sprint("part ", i), json.RawMessage(fmt.Sprint(i)))
		}
		return llm.TextResult("told"), nil
	})
	var tries atomic.Int32
	add("flaky", pawl.EffectRead, func(context.Context, Place) (llm.ToolResult, error) {
		if tries.Add(1) == 1 {
			return llm.ToolResult{}, pawl.RetryableError(errors.New("busy"))
		}
		return llm.TextResult("at last"), nil
	})
	add("both", pawl.EffectCompose, func(ctx context.Context, _ Place) (llm.ToolResult, error) {
		look := llm.ToolCall{Name: "look", Args: []byte(`{"at":"a"}`)}
		done, err := pawl.InvocationFrom(ctx).Do(ctx, look, llm.ToolCall{Name: "tells", Args: []byte(`{}`)})
		return llm.TextResult(fmt.Sprint(len(done), done[0].Result.Text())), err
	})
	return a
}

// Lost is an Executor that gets no outcome of a write.
type Lost struct{}

// Do executes the call of t, unless it is of bill.
func (Lost) Do(ctx context.Context, t pawl.Task, emit func(pawl.Event)) (pawl.Execution, error) {
	if t.Call.Name == "bill" {
		return pawl.Execution{}, errors.New("the machine is gone")
	}
	return t.Do(ctx, emit), nil
}

// Answers approves the last question, and gives a passive call a result. The calls before it stay
// open.
func Answers(res *pawl.Result) []llm.Decision {
	if len(res.Pending) == 0 {
		return nil
	}
	w := res.Pending[len(res.Pending)-1]
	d := w.Approve("suite")
	if w.Passive {
		d = w.Answer("suite", llm.TextResult("blue"))
	}
	d.At = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return []llm.Decision{d}
}

// Sketch is the part of a Result that is the same for all Runners.
func Sketch(res *pawl.Result) string {
	msgs := asJSON(res.Messages)
	return fmt.Sprintf("%s: %s %s\nrequests %d, calls %d, rounds %d\n%s", res.Stop, res.Text(), asJSON(res.Answer),
		res.Spent.Requests, res.Spent.Calls, res.Spent.Rounds, msgs)
}

// Retold formats the texts and steps of events, without details that depend on timing.
func Retold(events []pawl.Event) string {
	var b strings.Builder
	gaps := false
	for _, e := range events {
		switch e.Kind {
		case pawl.EventGap:
			gaps = true
		case pawl.EventText:
			if e.Run == "run" {
				b.WriteString(e.Text)
			}
		}
	}
	if gaps { // fragments may be missing if that is reported
		b.Reset()
	}
	for _, e := range events {
		if e.Kind == pawl.EventResponseReceived && e.Run == "run" {
			fmt.Fprintf(&b, "\n%d: %s", e.Step, e.Response.Message.Text())
		}
	}
	steps := 0
	for _, e := range events {
		if e.Kind == pawl.EventStep && e.Run == "run" {
			steps++
		}
	}
	fmt.Fprintf(&b, "\n%d steps", steps)
	return b.String()
}

func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // v is plain data
	}
	return b
}

// Meet returns a tool whose calls wait for each other: meet counts them.
func Meet(meet *sync.WaitGroup) *pawl.Tool {
	tool := pawl.Func("meet", "Meets.", func(ctx context.Context, _ struct{}) (string, error) {
		met := make(chan struct{})
		meet.Done()
		go func() {
			meet.Wait()
			close(met)
		}()
		select {
		case <-met:
			return "met", nil
		case <-ctx.Done():
			meet.Done() // the other call waits
			return "", ctx.Err()
		}
	})
	tool.Effect = pawl.EffectRead
	return tool
}

// Half returns a tool that emits an event, and waits until it was seen.
func Half(seen <-chan struct{}) *pawl.Tool {
	tool := pawl.Func("half", "Reports that it is half done.", func(ctx context.Context, _ struct{}) (string, error) {
		pawl.InvocationFrom(ctx).Emit("half", nil)
		select {
		case <-seen:
			return "whole", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	tool.Effect = pawl.EffectRead
	return tool
}

// Linger returns a tool that ends shortly after its context, or after limit.
func (w *World) Linger(limit time.Duration) *pawl.Tool {
	tool := pawl.Func("linger", "Ends shortly after its context.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-ctx.Done():
		case <-time.After(limit):
			return "waited", nil
		}
		time.Sleep(50 * time.Millisecond)
		w.Did("ended")
		return "", ctx.Err()
	})
	tool.Effect = pawl.EffectRead
	return tool
}
