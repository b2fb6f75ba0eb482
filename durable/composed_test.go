package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/code"
	"github.com/pawl-go/pawl/tools/plan"
)

// composition is a run whose model makes one call, of a tool that makes all the others.
type composition struct {
	tool   *pawl.Tool
	args   any
	want   string       // part of the tool's final text
	beside pawl.Toolset // other tools to call; nil means list, post and put only
}

// composed returns the compositions that need no installed program.
func composed() map[string]composition {
	step := func(tool string, n any, more ...any) map[string]any {
		s := map[string]any{"tool": tool, "args": map[string]any{"n": n}}
		for i := 0; i < len(more); i += 2 {
			s[more[i].(string)] = more[i+1]
		}
		return s
	}
	from := func(path string) any { return map[string]any{"$from": path} }
	embedded, err := code.New(code.Embedded(nil), nil)
	if err != nil {
		panic(err)
	}
	return map[string]composition{
		"plan": {plan.New(nil), map[string]any{"steps": []any{step("list", 4), step("post", 1), step("post", 2), step("put", 3), step("post", 5)}}, `"data":{"twice":10}}]`, nil},
		"flow": {plan.New(&plan.Options{DataFlow: true}), map[string]any{"steps": []any{
			step("list", 4),
			step("post", from("item/n"), "each", from("0/items"), "when", map[string]any{"$from": "item/late"}),
			step("put", from("0/count")),
			step("post", from("2/twice")),
		}}, `"data":{"twice":16}}]`, nil},
		"code":   {embedded, map[string]any{"code": program}, `"result":38`, nil},
		"nested": {embedded, map[string]any{"code": nested}, `"result":12`, plan.New(nil)},
		"long":   {embedded, map[string]any{"code": long}, `"result":132`, nil},
	}
}

// nested makes two plans, with calls before, between and after them.
const nested = `
def posts(a, b):
    call_tool("execute_plan", {"steps": [{"tool": "post", "args": {"n": a}}, {"tool": "put", "args": {"n": b}}, {"tool": "post", "args": {"n": b}}]})
    return call_tool("post", {"n": a})["twice"]
set_result(posts(1, 2) + posts(5, 6))
`

// long makes twelve calls, one after the other.
const long = `
set_result(sum([call_tool("post", {"n": i})["twice"] for i in range(12)]))
`

// program makes eight calls, six of them writes. Which calls it makes depends on the results of
// others.
const program = `
total = 0
for o in call_tool("list", {"n": 4})["items"]:
    if o["late"]:
        total += call_tool("post", {"n": o["n"]})["twice"]
for r in call_tools_parallel([("post", {"n": 4 + i}) for i in range(3)]):
    total += r["twice"]
call_tool("put", {"n": total})
set_result(call_tool("post", {"n": total})["twice"] - total)
`

type number struct {
	N int `json:"n"`
}

type item struct {
	N    int  `json:"n"`
	Late bool `json:"late"`
}

type items struct {
	Items []item `json:"items"`
	Count int    `json:"count"`
}

type doubled struct {
	Twice int `json:"twice"`
}

// did is what an act on n gives: a program reads what a model reads, a plan the data.
func did(n int) llm.ToolResult {
	data, _ := json.Marshal(doubled{2 * n}) // of a number
	res := llm.TextResult(string(data))
	res.Data = data
	return res
}

// agent returns a new agent for each process.
func (c composition) agent(w durabletest.World) *pawl.Agent {
	deliver := func(ctx context.Context, name string, e pawl.Effect) error {
		v := pawl.InvocationFrom(ctx)
		return w.Deliver(ctx, durabletest.Delivery{Tool: name, Effect: e, Place: v.Key, Key: v.IdempotencyKey()})
	}
	list := pawl.Func("list", "Lists n things.", func(ctx context.Context, in number) (items, error) {
		out := items{Items: []item{}, Count: in.N}
		for i := range in.N {
			out.Items = append(out.Items, item{i, i%2 == 1})
		}
		return out, deliver(ctx, "list", pawl.EffectRead)
	})
	list.Effect = pawl.EffectRead
	tools := []pawl.Toolset{list, c.tool}
	if c.beside != nil {
		tools = append(tools, c.beside)
	}
	for name, e := range map[string]pawl.Effect{"post": pawl.EffectWrite, "put": pawl.EffectIdempotent} {
		t := pawl.Func(name, "Takes n.", func(ctx context.Context, in number) (llm.ToolResult, error) {
			return did(in.N), deliver(ctx, name, e)
		})
		t.Effect, t.Output = e, json.RawMessage(`{"type":"object","properties":{"twice":{"type":"integer"}},"required":["twice"]}`)
		tools = append(tools, t)
	}
	return &pawl.Agent{Name: "main",
		Model: script.New(script.Call(c.tool.Name, c.args),
			script.Func(func(r *llm.Request) script.Turn { return script.Say("It says: " + script.Results(r)[0].Text()) })),
		Tools: tools}
}

// drive makes the run, and states whether an interrupted call happened.
func (c composition) drive(ctx context.Context, eng *durable.Engine, w durabletest.World) (*pawl.Result, error) {
	run, msgs := eng.Runner("the-run", c.agent(w)), []llm.Message{llm.User("Do it.")}
	for range 50 {
		res, err := runtest.Ended(run.Run(ctx, msgs...))
		if err != nil || res.Stop != pawl.StopPending {
			return res, err
		}
		msgs = nil
		for _, q := range res.Pending {
			d := q.Approve("somebody")
			if q.Outcome == pawl.OutcomeUnknown {
				happened, err := w.Happened(ctx, q.Key)
				if err != nil {
					return res, err
				}
				var in number
				if err := json.Unmarshal(q.Call.Args, &in); err != nil {
					return res, err
				}
				if happened {
					d = q.Answer("somebody", did(in.N))
				}
			}
			msgs = append(msgs, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{d}})
		}
	}
	return nil, errors.New("it asks for ever")
}

// The process is killed before and after each action of a plan, of a plan with data flow and of a
// program, including their nested calls and their records. Some of the successors are killed too.
// In the end each has the same text as without crashes, and no write happened twice. An installed
// Python is killed at the same points.
func TestComposedCrashPoints(t *testing.T) {
	soak.Sequential(t)
	j := open(t)
	all := composed()
	py := code.Python(nil)
	defer py.Close()
	if err := py.Check(); err != nil {
		t.Logf("python is left out: %v", err)
	} else {
		tool, err := code.New(py, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := all["code"]
		c.tool = tool
		all["python"] = c
	}
	total := 0
	for name, c := range all {
		whole := makeRun(t.Context(), new(store.MemoryJournal), c.drive, faulty{})
		posts := 0
		for _, d := range whole.delivered {
			if d.Tool == "post" {
				posts++
			}
		}
		if whole.err != nil || posts < 3 || !strings.Contains(strings.ReplaceAll(whole.messages, `\"`, `"`), c.want) {
			t.Fatalf("%s: %d posts, %v: %s", name, posts, whole.err, whole.messages)
		}
		points, bad := enumerate(t, j, name, c.drive, faulty{}, soak.N(11, 1))
		t.Logf("%-8s %d inner calls, %d crash points, %d violations", name, len(whole.delivered), points, len(bad))
		for _, b := range bad[:min(3, len(bad))] {
			t.Error(b)
		}
		if total += points; points < 2*len(whole.delivered) {
			t.Errorf("%s: %d points for %d inner calls", name, points, len(whole.delivered))
		}
	}
	t.Logf("%-8s %d crash points", "compose", total)
	if total <= 200 {
		t.Errorf("%d crash points are not over 200", total)
	}
	// A journal that writes intents too late: the same test must detect it.
	for _, name := range []string{"plan", "code"} {
		_, bad := enumerate(t, new(store.MemoryJournal), name, all[name].drive, faulty{late: true}, 1)
		t.Logf("control, %s: the intent written after the call: %d violations", name, len(bad))
		if !strings.Contains(strings.Join(bad, "\n"), "a write of post, happened 2 times") {
			t.Errorf("%s: a write that happened twice is not found", name)
		}
	}
}

// Real processes are killed with SIGKILL during a plan and during a program.
func TestComposedKill(t *testing.T) {
	died := 0
	places := soak.N([][2]int{{0, 3}}, [][2]int{{6, 0}, {9, 0}, {0, 2}, {0, 3}, {0, 6}, {0, 9}})
	for name := range composed() {
		want, whole := alone(t, name)
		died += killedAt(t, name, places, want, whole)
	}
	t.Logf("%d processes killed with SIGKILL, of %d", died, len(places)*len(composed()))
	if died < soak.N(3, 20) {
		t.Errorf("only %d processes died", died)
	}
}
