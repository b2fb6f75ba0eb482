package core_test

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
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/outside"
	"github.com/pawl-go/pawl/tools/plan"
)

const callsThatMeet = 5

// meet returns a function that waits until callsThatMeet calls of it run at the same time.
func meet() func(context.Context) error {
	var arrived atomic.Int64
	all := make(chan struct{})
	return func(ctx context.Context) error {
		if arrived.Add(1) == callsThatMeet {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return errors.New("the other calls do not run")
		}
	}
}

// meetTool returns a tool whose calls wait for each other.
func meetTool(effect pawl.Effect) *pawl.Tool {
	wait := meet()
	t := pawl.Func("meet", "waits for the other calls", func(ctx context.Context, _ struct {
		N int `json:"n"`
	}) (string, error) {
		return "met", wait(ctx)
	})
	t.Effect = effect
	t.Timeout = time.Second
	return t
}

// v2 is an agent of agent.framework/v2 whose tool meet is a program. effect is a field of its
// config, or empty.
const v2 = `apiVersion: agent.framework/v2
kind: Agent
metadata: {name: analyst}
resources:
  inference_gateways: [{name: llm, type: OpenAIGateway, config: {model: gpt-6.1-terra}}]
  tools:
    - name: meet
      type: command
      config: {description: Waits., run: [cat], timeout: 1s, EFFECT input: {type: object, properties: {n: {type: integer}}}}
spec:
  tools: [meet]
  planner: {type: ReActPlanner, config: {inference_gateway: llm, use_function_calling: true}}
`

// file returns the agent of v2, whose programs wait for each other, with another model.
func file(t *testing.T, effect pawl.Effect, m llm.Model) *pawl.Agent {
	stated := ""
	if effect != pawl.EffectUnstated {
		stated = "effect: " + effect.String() + ","
	}
	f, err := agentfile.Parse("v2.yaml", []byte(strings.Replace(v2, "EFFECT", stated, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	wait := meet()
	built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{
		Getenv: func(name string) string { return map[string]string{"OPENAI_API_KEY": "key"}[name] },
		Commands: func(context.Context, outside.Process) (outside.Program, error) {
			return func(ctx context.Context) (outside.Exit, error) {
				return outside.Exit{Stdout: []byte("met")}, wait(ctx)
			}, nil
		},
		Approve: func(policy.Rules) pawl.Middleware { return pawl.Middleware{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(built.Close)
	built.Agent.Model = m
	return built.Agent
}

// Five calls of a tool whose effect is not stated run together in a reply, a plan, a program and a
// v2 agent file. Control: the calls of a tool that states EffectWrite wait for each other in none.
func TestUnstatedCallsRunTogether(t *testing.T) {
	var calls []script.Turn
	var steps, listed []string
	for i := range callsThatMeet {
		calls = append(calls, script.Call("meet", fmt.Sprintf(`{"n":%d}`, i)))
		steps = append(steps, fmt.Sprintf(`{"tool":"meet","args":{"n":%d}}`, i))
		listed = append(listed, fmt.Sprintf(`("meet", {"n": %d})`, i))
	}
	source := "set_result([str(x) for x in call_tools_parallel([" + strings.Join(listed, ", ") + "])])"
	program, err := json.Marshal(map[string]string{"code": source})
	if err != nil {
		t.Fatal(err)
	}
	reply := script.Together(calls...)

	for _, tt := range []struct {
		name  string
		agent func(t *testing.T, effect pawl.Effect) *pawl.Agent
	}{
		{"reply", func(_ *testing.T, effect pawl.Effect) *pawl.Agent {
			return &pawl.Agent{Model: script.New(reply, script.Say("done")), Tools: []pawl.Toolset{meetTool(effect)}}
		}},
		{"plan", func(_ *testing.T, effect pawl.Effect) *pawl.Agent {
			return &pawl.Agent{
				Model: script.New(script.Call("execute_plan", `{"steps":[`+strings.Join(steps, ",")+`]}`), script.Say("done")),
				Tools: []pawl.Toolset{plan.New(nil), meetTool(effect)},
			}
		}},
		{"program", func(t *testing.T, effect pawl.Effect) *pawl.Agent {
			runCode, err := code.New(code.Embedded(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			return &pawl.Agent{
				Model: script.New(script.Call("execute_code", string(program)), script.Say("done")),
				Tools: []pawl.Toolset{runCode, meetTool(effect)},
			}
		}},
		{"v2 agent file", func(t *testing.T, effect pawl.Effect) *pawl.Agent {
			return file(t, effect, script.New(reply, script.Say("done")))
		}},
	} {
		for _, effect := range []pawl.Effect{pawl.EffectUnstated, pawl.EffectWrite} {
			t.Run(tt.name+" "+effect.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := tt.agent(t, effect)
					begin := time.Now()
					events, res, err := collect(a.Stream(t.Context(), llm.User("go")))
					if err != nil {
						t.Fatal(err)
					}
					met := 0
					for _, e := range events {
						if e.Kind != pawl.EventCallCompleted || e.Execution.Call.Name != "meet" {
							continue
						}
						if e.Execution.Outcome == pawl.OutcomeOK {
							met++
						}
					}

					together := effect == pawl.EffectUnstated
					if together && (met != callsThatMeet || time.Since(begin) >= time.Second) {
						t.Errorf("%d calls met after %v, want %d at once: %v", met, time.Since(begin), callsThatMeet, res.Messages)
					}
					if !together && met != 1 {
						t.Errorf("%d stated writes ran together, want only the last call alone", met)
					}
				})
			})
		}
	}
}

// A call whose effect is not stated is a write for everything but the order: it is asked about,
// not retried, not started early, and its interrupted call is unknown. The run emits one notice.
func TestUnstatedCallsAreWrites(t *testing.T) {
	t.Run("approval", func(t *testing.T) {
		for _, m := range []pawl.Middleware{
			pawl.Approve(policy.AskBeforeWrites),
			policy.Rules{Ask: []string{"effect:write"}, Default: pawl.VerdictAllow}.Middleware(),
			policy.Rules{Ask: []string{"effect:unstated"}, Default: pawl.VerdictAllow}.Middleware(),
		} {
			a := &pawl.Agent{
				Model:      script.New(script.Call("f", nil)),
				Tools:      []pawl.Toolset{says("f", "")},
				Middleware: []pawl.Middleware{m},
			}
			res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
			if err != nil || len(res.Pending) != 1 {
				t.Errorf("got %v, pending %v, want a question", err, res.Pending)
			}
		}
	})

	t.Run("no retry", func(t *testing.T) {
		ran := 0
		f := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.ToolResult{}, pawl.RetryableError(errors.New("later"))
		})
		a := &pawl.Agent{Model: script.New(script.Call("f", nil), script.Say("done")), Tools: []pawl.Toolset{f}}
		if _, err := a.Run(t.Context(), llm.User("go")); err != nil || ran != 1 {
			t.Errorf("got %v after %d attempts, want 1", err, ran)
		}
	})

	t.Run("interrupted", func(t *testing.T) {
		ctx, shutDown := context.WithCancelCause(t.Context())
		f := does("f", func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			shutDown(errors.New("shut down"))
			<-ctx.Done()
			return llm.ToolResult{}, ctx.Err()
		})
		a := &pawl.Agent{Model: script.New(script.Call("f", nil), script.Say("done")), Tools: []pawl.Toolset{f}}
		res, _ := a.Run(ctx, llm.User("go"))
		if len(res.Pending) != 1 || res.Pending[0].Outcome != pawl.OutcomeUnknown {
			t.Errorf("got %+v, want the question whether it took effect", res.Pending)
		}
	})

	t.Run("notice", func(t *testing.T) {
		read := says("look", "")
		read.Effect = pawl.EffectRead
		a := &pawl.Agent{
			Model: script.New(script.Call("look", nil), script.Call("f", nil), script.Call("f", `{"n":1}`),
				script.Say("done")),
			Tools: []pawl.Toolset{says("f", ""), says("g", ""), read},
		}
		events, _, err := collect(a.Stream(t.Context(), llm.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range events {
			if e.Code == "effect_unstated" {
				texts = append(texts, e.Text)
			}
		}
		if len(texts) != 1 || !strings.Contains(texts[0], "no effect is stated for f, g:") {
			t.Errorf("got the notices %q", texts)
		}
	})
}

// An unstated call waits for an earlier stated write, and a later stated write waits for it. It
// does not overtake a write that has an open question.
func TestUnstatedCallsKeepTheOrderOfWrites(t *testing.T) {
	var order []string
	tool := func(name string, effect pawl.Effect) *pawl.Tool {
		f := does(name, func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			order = append(order, name)
			return llm.TextResult("did"), nil
		})
		f.Effect = effect
		return f
	}
	reply := script.Together(script.Call("pay", nil), script.Call("note", nil), script.Call("send", nil))
	a := &pawl.Agent{
		Model: script.New(reply, script.Say("done")),
		Tools: []pawl.Toolset{tool("pay", pawl.EffectWrite), tool("note", pawl.EffectUnstated), tool("send", pawl.EffectWrite)},
	}
	if _, err := a.Run(t.Context(), llm.User("go")); err != nil || !slices.Equal(order, []string{"pay", "note", "send"}) {
		t.Errorf("got %v, %v", err, order)
	}

	order = nil
	a.Model = script.New(reply, script.Say("done"))
	a.Middleware = []pawl.Middleware{asksFor("pay")}
	res, err := runtest.Ended(a.Run(t.Context(), llm.User("go")))
	if err != nil || len(res.Pending) != 1 || len(order) != 0 {
		t.Errorf("got %v, pending %v, ran %v, want nothing before the answer", err, res.Pending, order)
	}
}

// The text of an effect in journals and files stays: write is a stated write, as it was written
// before, and every effect reads what it writes.
func TestEffectsInText(t *testing.T) {
	for e := pawl.EffectUnstated; e <= pawl.EffectCompose; e++ {
		b, err := json.Marshal(e)
		var back pawl.Effect
		if err != nil || json.Unmarshal(b, &back) != nil || back != e {
			t.Errorf("%v: %s reads as %v, %v", e, b, back, err)
		}
		if want := max(e, pawl.EffectWrite); e.Assumed() != want {
			t.Errorf("%v is assumed to be %v, want %v", e, e.Assumed(), want)
		}
	}
	var write pawl.Effect
	if err := write.UnmarshalText([]byte("write")); err != nil || write != pawl.EffectWrite {
		t.Errorf("got %v, %v", write, err)
	}
	if got := pawl.Effect(99).Assumed(); got != pawl.EffectWrite {
		t.Errorf("an unknown effect is assumed to be %v", got)
	}
}
