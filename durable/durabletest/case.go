package durabletest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Case is a run for an engine: the texts of its model, with tools of every effect. The same Case
// gives the same run on each engine, for any number of deaths of its process.
type Case struct {
	Name   string
	turns  []script.Turn
	number int
}

// call is a call of the script.
type call struct {
	Name string `json:"name"`
	Args any    `json:"args"`
}

// next returns arguments that are unique in the case, so that the model does not seem to repeat
// itself.
func (c *Case) next() any {
	c.number++
	return map[string]any{"n": c.number}
}

// acts are the tools that can be called at any place.
var acts = []string{"look", "calc", "put", "post", "pay", "charge"}

// ForEffect returns the case that makes calls of one tool in every way: alone, concurrent, in a
// plan, and by an agent that is a tool. Tools lists the tools.
func ForEffect(tool string) *Case { return Shapes(tool)[0] }

// Shapes returns cases that make calls of one tool: the case of ForEffect first, then others with
// different orders and concurrency.
func Shapes(tool string) []*Case {
	shape := func(name string, turns func(one func() call, plan func(sizes ...int) call) []script.Turn) *Case {
		c := &Case{Name: name}
		one := func() call { return call{tool, c.next()} }
		plan := func(sizes ...int) call {
			rounds := make([][]call, len(sizes))
			for i, n := range sizes {
				for range n {
					rounds[i] = append(rounds[i], one())
				}
			}
			return call{"plan", map[string]any{"rounds": rounds}}
		}
		c.turns = append(turns(one, plan), script.Say("done"))
		return c
	}
	clerk := call{"clerk", map[string]any{"task": tool}}
	return []*Case{
		shape(tool, func(one func() call, plan func(...int) call) []script.Turn {
			return []script.Turn{turn(one()), turn(one(), one(), one()), turn(plan(1, 2)), turn(clerk, one())}
		}),
		shape(tool+", together", func(one func() call, plan func(...int) call) []script.Turn {
			return []script.Turn{turn(one(), one(), one(), one(), one()), turn(clerk, clerk, one()), turn(one(), one())}
		}),
		shape(tool+", inside", func(one func() call, plan func(...int) call) []script.Turn {
			return []script.Turn{turn(plan(1, 1, 1)), turn(plan(2), one(), clerk), turn(plan(3), plan(1, 1))}
		}),
	}
}

// Tools returns the names for ForEffect, one for each way in which calls are treated.
func Tools() []string { return append([]string(nil), acts...) }

// Random returns the case of a seed.
func Random(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 7))
	c := &Case{Name: fmt.Sprintf("seed %d", seed)}
	pick := func(more ...string) call {
		all := append(append([]string(nil), acts...), more...)
		name := all[r.IntN(len(all))]
		switch name {
		case "plan":
			return c.plan(r)
		case "clerk":
			return call{"clerk", map[string]any{"task": acts[r.IntN(len(acts))] + fmt.Sprint(c.number)}}
		case "bad":
			return call{"post", map[string]any{"n": "no number"}}
		}
		return call{name, c.next()}
	}
	for range 1 + r.IntN(4) {
		var calls []call
		for range 1 + r.IntN(4) {
			calls = append(calls, pick("form", "fail", "note", "missing", "bad", "plan", "clerk"))
		}
		c.turns = append(c.turns, turn(calls...))
	}
	c.turns = append(c.turns, script.Say(fmt.Sprintf("done %d", seed)))
	return c
}

// plan returns a call of the composing tool, with calls in one or two rounds.
func (c *Case) plan(r *rand.Rand) call {
	var rounds [][]call
	for range 1 + r.IntN(2) {
		var round []call
		for range 1 + r.IntN(3) {
			round = append(round, call{acts[r.IntN(len(acts))], c.next()})
		}
		rounds = append(rounds, round)
	}
	return call{"plan", map[string]any{"rounds": rounds}}
}

func turn(calls ...call) script.Turn {
	turns := make([]script.Turn, len(calls))
	for i, c := range calls {
		turns[i] = script.Call(c.Name, c.Args)
	}
	return script.Together(turns...)
}

// Messages returns the messages that start the run.
func (c *Case) Messages() []llm.Message { return []llm.Message{llm.User("Do " + c.Name + ".")} }

// Agent returns the agent of the run, which acts on w. A process that takes over the run makes it
// again.
func (c *Case) Agent(w World) *pawl.Agent {
	clerk := &pawl.Agent{Name: "clerk", Model: seen{script.New(script.Func(clerkCalls), script.Say("the clerk is done")), w},
		Tools: tools(w), Middleware: asks()}
	return &pawl.Agent{Name: "main", Instructions: "Do what you are told.", Model: seen{script.New(c.turns...), w},
		Tools:      append(tools(w), plan(), clerk.Tool("a clerk"), form(), fails(w), note()),
		Middleware: asks(), Limits: pawl.Limits{Rounds: 30, Calls: 200}}
}

// clerkCalls returns the turn of the inner agent: two calls of the tool that its task names.
func clerkCalls(req *llm.Request) script.Turn {
	task := req.Messages[len(req.Messages)-1].Text()
	name := strings.TrimRight(task, "0123456789")
	return turn(call{name, map[string]any{"n": 1000}}, call{name, map[string]any{"n": 1001}})
}

// seen reports each request to the world.
type seen struct {
	*script.Model
	world World
}

// Unwrap returns the script.
func (s seen) Unwrap() llm.Model { return s.Model }

// Stream reports the request, and plays the turn.
func (s seen) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		form, err := json.Marshal(req)
		if err == nil {
			sum := sha256.Sum256(form)
			err = s.world.Deliver(ctx,
				Delivery{Tool: "model", Effect: pawl.EffectRead, Place: req.Key, Key: hex.EncodeToString(sum[:8])})
		}
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		for d, err := range s.Model.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
		}
	}
}

type input struct {
	N int `json:"n"`
}

// inputSchema is the input schema of the tools. It is made once, because a case is made thousands
// of times.
var inputSchema = sync.OnceValue(func() json.RawMessage {
	return pawl.Func("act", "", func(context.Context, input) (string, error) { return "", nil }).Input
})

// tools returns the acting tools: one for each effect, and for each way in which an interrupted
// Write is settled.
func tools(w World) []pawl.Toolset {
	acting := func(name string, effect pawl.Effect) *pawl.Tool {
		return &pawl.Tool{Name: name, Description: "does " + name, Input: inputSchema(), Effect: effect,
			Timeout: -1, Run: func(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				v := pawl.InvocationFrom(ctx)
				if err := w.Deliver(ctx, Delivery{name, effect, v.Key, v.IdempotencyKey()}); err != nil {
					return llm.ToolResult{}, err
				}
				return resultOf(c), nil
			}}
	}
	charge := acting("charge", pawl.EffectWrite)
	charge.Reconcile = func(ctx context.Context, c llm.ToolCall) (*llm.ToolResult, error) {
		happened, err := w.Happened(ctx, pawl.InvocationFrom(ctx).Key)
		if err != nil || !happened {
			return nil, err
		}
		res := resultOf(c)
		return &res, nil
	}
	return []pawl.Toolset{acting("look", pawl.EffectRead), acting("calc", pawl.EffectPure), acting("put", pawl.EffectIdempotent),
		acting("post", pawl.EffectWrite), acting("pay", pawl.EffectWrite), charge}
}

// said returns the text of a tool.
func said(name string, n int) string {
	return fmt.Sprintf("%s %d: é%s", name, n, strings.Repeat(".", n%7))
}

// resultOf returns the result of a call that happened.
func resultOf(c llm.ToolCall) llm.ToolResult {
	var in input
	_ = json.Unmarshal(c.Args, &in) // they were validated
	return llm.TextResult(said(c.Name, in.N))
}

// asks is the policy that requires an approval of each payment.
func asks() []pawl.Middleware {
	return []pawl.Middleware{pawl.Approve(func(_ context.Context, c llm.ToolCall, _ *pawl.Tool) (pawl.Approval, error) {
		if c.Name == "pay" {
			return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: "it is money", ValidFor: -1}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})}
}

// plan makes calls round after round, and reports their results.
func plan() *pawl.Tool {
	t := pawl.Func("plan", "makes calls", func(ctx context.Context, in struct {
		Rounds [][]struct {
			Name string         `json:"name"`
			Args map[string]int `json:"args"`
		} `json:"rounds"`
	}) (llm.ToolResult, error) {
		var words []string
		for _, round := range in.Rounds {
			calls := make([]llm.ToolCall, len(round))
			for i, c := range round {
				args, err := json.Marshal(c.Args)
				if err != nil {
					return llm.ToolResult{}, err
				}
				calls[i] = llm.ToolCall{Name: c.Name, Args: args}
			}
			xs, err := pawl.InvocationFrom(ctx).Do(ctx, calls...)
			if err != nil {
				return llm.ToolResult{}, err
			}
			for _, x := range xs {
				words = append(words, x.Result.Text())
			}
		}
		return llm.TextResult(strings.Join(words, "; ")), nil
	})
	t.Effect = pawl.EffectCompose
	t.Inline = true
	return t
}

// form is executed by the caller.
func form() *pawl.Tool {
	t := &pawl.Tool{Name: "form", Description: "asks the user", Passive: true, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
	return t
}

// fails acts, and reports a failure.
func fails(w World) *pawl.Tool {
	return pawl.Func("fail", "fails", func(ctx context.Context, in input) (string, error) {
		v := pawl.InvocationFrom(ctx)
		if err := w.Deliver(ctx, Delivery{"fail", pawl.EffectWrite, v.Key, v.IdempotencyKey()}); err != nil {
			return "", err
		}
		return "", errors.New("it did not work")
	})
}

// note sets a value of the run.
func note() *pawl.Tool {
	t := pawl.Func("note", "notes something", func(ctx context.Context, in input) (string, error) {
		return "noted", pawl.InvocationFrom(ctx).Set("note", in.N)
	})
	t.Effect = pawl.EffectPure
	return t
}

// Answers returns a person's answers to open questions: it denies one payment in four, fills in
// forms, and checks whether an interrupted call happened. The answers depend only on the questions
// and the world.
func Answers(ctx context.Context, w World, open []pawl.PendingCall) ([]llm.Message, error) {
	var out []llm.Message
	for _, q := range open {
		d := q.Approve("somebody")
		h := fnv.New32a()
		h.Write([]byte(q.Key))
		switch {
		case q.Passive:
			d = q.Answer("somebody", llm.TextResult("filled in: "+string(q.Key)))
		case q.Outcome == pawl.OutcomeUnknown:
			happened, err := w.Happened(ctx, q.Key)
			if err != nil {
				return nil, err
			}
			if happened {
				d = q.Answer("somebody", afterAct(q.Call))
			}
		case h.Sum32()%4 == 0:
			d = q.Deny("somebody", "no money for that")
		}
		d.Identity = "token " + d.By // form of a server: "token" and the name of the token
		out = append(out, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{d}})
	}
	return out, nil
}

// afterAct returns the result of an interrupted call that happened.
func afterAct(c llm.ToolCall) llm.ToolResult {
	if c.Name == "fail" {
		return llm.ErrorResult("it did not work")
	}
	return resultOf(c)
}
