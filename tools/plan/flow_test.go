package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/file"
	"github.com/pawl-go/pawl/tools/plan"
)

type slowModel struct {
	llm.Model
	by time.Duration
}

func (m slowModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	time.Sleep(m.by)
	return m.Model.Stream(ctx, req)
}

type listed struct {
	Items []thing `json:"items"`
	Count int     `json:"count"`
	Full  bool    `json:"full"`
	Name  string  `json:"name"`
}

type thing struct {
	ID   string `json:"id"`
	Size int    `json:"size"`
	Good bool   `json:"good"`
}

// world returns tools that return values, and a function that lists the executed calls, ordered by
// their arguments.
func world() (tools pawl.Toolsets, done func() []string) {
	var mu sync.Mutex
	var did []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		did = append(did, s)
	}
	list := pawl.Func("list", "Lists things.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (listed, error) {
		note(fmt.Sprint("list ", in.N))
		out := listed{Items: []thing{}, Count: in.N, Full: in.N > 2, Name: "the list"}
		for i := range in.N {
			out.Items = append(out.Items, thing{fmt.Sprint("t", i), i, i%2 == 0})
		}
		return out, nil
	})
	list.Effect = pawl.EffectRead
	get := pawl.Func("get", "Gets a thing.", func(_ context.Context, in struct {
		ID   string `json:"id"`
		Deep []int  `json:"deep,omitempty"`
	}) (string, error) {
		note("get " + in.ID)
		if in.ID == "t9" {
			return "", fmt.Errorf("gone")
		}
		return "<" + in.ID + ">", nil
	})
	raw := pawl.Func("raw", "Says what it was told.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		note("raw " + in.Text)
		return in.Text, nil
	})
	ask := &pawl.Tool{Name: "ask_user", Description: "Asks.", Passive: true}
	return pawl.Toolsets{list, get, raw, ask}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(did))
	}
}

func TestDataFlow(t *testing.T) {
	for _, test := range []struct{ name, steps, want, did string }{
		{"a value", `{"tool":"list","args":{"n":2}},{"tool":"get","args":{"id":{"$from":"0/items/1/id"}}}`,
			`"status":"ok","result":"<t1>"`, "get t1|list 2"},
		{"a value in a list", `{"tool":"list","args":{"n":2}},{"tool":"get","args":{"id":"x","deep":[{"$from":"0/count"}]}}`, `"result":"<x>"`, "get x|list 2"},
		{"text that is JSON", `{"tool":"raw","args":{"text":"{\"a/b\":[\"c\"]}"}},{"tool":"get","args":{"id":{"$from":"0/a~1b/0"}}}`, `"result":"<c>"`, `get c|raw {"a/b":["c"]}`},
		{"text that is none, whole", `{"tool":"raw","args":{"text":"plain"}},{"tool":"get","args":{"id":{"$from":"0"}}}`, `"result":"<plain>"`, "get plain|raw plain"},
		{"each", `{"tool":"list","args":{"n":3}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/id"}}}`,
			`{"step":1,"tool":"get","status":"ok","items":[{"status":"ok","result":"<t0>"},{"status":"ok","result":"<t1>"},{"status":"ok","result":"<t2>"}]}`, "get t0|get t1|get t2|list 3"},
		{"each over nothing", `{"tool":"list","args":{"n":0}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/id"}}}`, `{"step":1,"tool":"get","status":"ok","items":[]}`, "list 0"},
		{"each with when", `{"tool":"list","args":{"n":3}},{"tool":"get","each":{"$from":"0/items"},"when":{"$from":"item/good"},"args":{"id":{"$from":"item/id"}}}`,
			`{"status":"skipped","result":"Not run: its when does not hold."}`, "get t0|get t2|list 3"},
		{"each of which one fails", `{"tool":"list","args":{"n":10}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/id"}}}`,
			`"status":"error","error":"1 of 10 failed; see items."`, "get t0|get t1|get t2|get t3|get t4|get t5|get t6|get t7|get t8|get t9|list 10"},
		{"what each gave", `{"tool":"list","args":{"n":2}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/id"}}},{"tool":"raw","args":{"text":{"$from":"1/1"}}}`,
			`{"step":2,"tool":"raw","status":"ok","result":"<t1>"}`, "get t0|get t1|list 2|raw <t1>"},
		{"index", `{"tool":"list","args":{"n":2}},{"tool":"list","each":{"$from":"0/items"},"args":{"n":{"$from":"index"}}}`, `"status":"ok","items":[{`, "list 0|list 1|list 2"},
		{"when", `{"tool":"list","args":{"n":1}},{"tool":"raw","when":{"$from":"0/full"},"args":{"text":"x"}}`, `{"step":1,"tool":"raw","status":"skipped","result":"Not run: its when does not hold."}`, "list 1"},
		{"when not", `{"tool":"list","args":{"n":1}},{"tool":"raw","when":{"$from":"0/full","not":true},"args":{"text":"x"}}`, `"result":"x"`, "list 1|raw x"},
		{"when equals", `{"tool":"list","args":{"n":1}},{"tool":"raw","when":{"$from":"0/count","equals":1.0},"args":{"text":"x"}}`, `"result":"x"`, "list 1|raw x"},
		{"when of what is missing", `{"tool":"raw","args":{"text":"{}"}},{"tool":"raw","when":{"$from":"0/found"},"args":{"text":"x"}}`, `"status":"skipped"`, "raw {}"},
		{"takes from what was skipped", `{"tool":"list","args":{"n":1}},{"tool":"raw","when":{"$from":"0/full"},"args":{"text":"x"}},{"tool":"raw","args":{"text":{"$from":"1"}}}`,
			`{"step":2,"tool":"raw","status":"skipped","result":"Not run: it takes from step 1, which was skipped."}`, "list 1"},
		{"takes from what failed", `{"tool":"get","args":{"id":"t9"}},{"tool":"raw","args":{"text":{"$from":"0"}}},{"tool":"raw","args":{"text":"free"}}`,
			`{"step":1,"tool":"raw","status":"error","error":"Not run: it takes from step 0, which failed."}`, "get t9|raw free"},
		{"a pointer that leads nowhere", `{"tool":"raw","args":{"text":"{\"a\":{\"b\":1}}"}},{"tool":"get","args":{"id":{"$from":"0/a/c"}}}`,
			`"error":"Not run: args: $from \"0/a/c\": there is no a/c in it; there are: b."`, `raw {"a":{"b":1}}`},
		{"a pointer behind the end of a list", `{"tool":"list","args":{"n":2}},{"tool":"get","args":{"id":{"$from":"0/items/7/id"}}}`,
			`"error":"Not run: args: $from \"0/items/7/id\": there is no items/7 in it; it is a list of 2."`, "list 2"},
		{"a pointer into text", `{"tool":"raw","args":{"text":"plain"}},{"tool":"get","args":{"id":{"$from":"0/id"}}}`,
			`there is no id in it; it is text and has no parts.`, "raw plain"},
		{"each over no list", `{"tool":"raw","args":{"text":"{\"a\":1}"}},{"tool":"get","each":{"$from":"0"},"args":{"id":"x"}}`, `"error":"Not run: each takes a list, and 0 is an object."`, `raw {"a":1}`},
		{"each over 1000", `{"tool":"list","args":{"n":1000}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":"x"}},{"tool":"raw","args":{"text":"free"}}`,
			`"error":"Not run: each: 0/items has 1000 items, and the plan can make 48 more calls (50 in all). Take fewer, or send the rest in another plan."`, "list 1000|raw free"},
		{"each, twice too many", `{"tool":"list","args":{"n":40}},{"tool":"raw","each":{"$from":"0/items"},"args":{"text":{"$from":"item/id"}},"when":{"$from":"item/size","equals":7}},{"tool":"raw","each":{"$from":"0/items"},"args":{"text":"no"}}`,
			`has 40 items, and the plan can make 9 more calls (50 in all)`, "list 40|raw t7"},
		{"when of a number", `{"tool":"raw","args":{"text":"3"}},{"tool":"raw","when":{"$from":"0"},"args":{"text":"x"}}`, `"error":"Not run: when: 0 is a number, neither true nor false; say with \"equals\" what it must be."`, "raw 3"},
		{"a value that does not fit at last", `{"tool":"raw","args":{"text":"[1]"}},{"tool":"get","args":{"id":{"$from":"0"}}}`, `"status":"error","error":"The arguments of get do not fit its schema`, "raw [1]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools, done := world()
			x := carry(t, &plan.Options{DataFlow: true}, `{"steps":[`+test.steps+`]}`, tools)
			text := x.Result.Text()
			if x.Outcome != pawl.OutcomeOK || !strings.Contains(text, test.want) {
				t.Errorf("%s\n%.600s\nwant in it\n%s", x.Outcome, text, test.want)
			}
			if got := strings.Join(done(), "|"); got != test.did {
				t.Errorf("did %s, want %s", got, test.did)
			}
		})
	}
}

// All faults of a plan are reported in one answer before any step runs.
func TestDataFlowIsCheckedFirst(t *testing.T) {
	const list = `{"tool":"list","args":{"n":2}},`
	for _, test := range []struct{ name, steps, want string }{
		{"itself", list + `{"tool":"get","args":{"id":{"$from":"1/id"}}}`, `step 1: $from "1/id" names the step itself; a step can take only from those before it`},
		{"forward", `{"tool":"get","args":{"id":{"$from":"1/name"}}},` + strings.TrimSuffix(list, ","), `step 0: $from "1/name" names step 1, which comes later; put that one first`},
		{"a circle", `{"tool":"get","args":{"id":{"$from":"1"}}},{"tool":"get","args":{"id":{"$from":"0"}}}`, `step 0: $from "1": step 1 takes from this one in turn, so neither could begin`},
		{"a step that is not there", list + `{"tool":"get","args":{"id":{"$from":"7/id"}}}`, `step 1: $from "7/id" names step 7, and the last one is 1`},
		{"a name for a step", list + `{"tool":"get","args":{"id":{"$from":"list/id"}}}`, `step 1: args.id: $from "list/id" does not begin with the number of a step: write "0/field"`},
		{"a number for a pointer", list + `{"tool":"get","args":{"id":{"$from":0}}}`, `step 1: args.id: an object with $from is {"$from":"STEP/FIELD"} and has nothing else`},
		{"more beside it", list + `{"tool":"get","args":{"id":{"$from":"0/name","or":"x"}}}`, `has nothing else`},
		{"an unknown tool", list + `{"tool":"gett","args":{"id":"x"}}`, `step 1: there is no tool "gett"; there are: list, get, raw, ask_user. Did you mean "get"?`},
		{"a tool that waits", list + `{"tool":"ask_user","args":{}}`, `step 1: ask_user is answered from outside, and a plan cannot wait for that here; call it directly`},
		{"a field that is never there", list + `{"tool":"get","args":{"id":{"$from":"0/nam"}}}`, `step 1: $from "0/nam": there is no nam in it; there are: count, full, items, name. Did you mean "name"?`},
		{"a field of an item", list + `{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/idd"}}}`, `step 1: $from "item/idd": there is no idd in it; there are: good, id, size. Did you mean "id"?`},
		{"another type", list + `{"tool":"get","args":{"id":{"$from":"0/count"}}}`, `step 1: args.id takes string, and $from "0/count" is integer`},
		{"another type in a list", list + `{"tool":"get","args":{"id":"x","deep":[1,{"$from":"0/name"}]}}`, `step 1: args.deep.1 takes integer, and $from "0/name" is string`},
		{"a part of a number", list + `{"tool":"get","args":{"id":{"$from":"0/count/x"}}}`, `step 1: $from "0/count/x": there is no x in it: it is integer`},
		{"a name in a list", list + `{"tool":"get","args":{"id":{"$from":"0/items/id"}}}`, `step 1: $from "0/items/id": id is not an index of a list; an index is a number from 0`},
		{"an argument that there is not", list + `{"tool":"get","args":{"idd":{"$from":"0/name"}}}`, `step 1: args.idd: there is no idd in it; there are: deep, id. Did you mean "id"?`},
		{"each over no list", list + `{"tool":"get","each":{"$from":"0/count"},"args":{"id":"x"}}`, `step 1: each takes a list, and 0/count is integer`},
		{"each over an item", list + `{"tool":"get","each":{"$from":"item"},"args":{"id":"x"}}`, `there is an item only where the step has "each"`},
		{"an item without each", list + `{"tool":"get","args":{"id":{"$from":"item/id"}}}`, `step 1: $from "item/id": there is an item only where the step has "each", and in args and when`},
		{"a part of the index", list + `{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"index/0"}}}`, `index is a number and has no parts`},
		{"when of a number", list + `{"tool":"get","when":{"$from":"0/count"},"args":{"id":"x"}}`, `step 1: when: 0/count is integer, neither true nor false; say with "equals" what it must be`},
		{"when of another kind", list + `{"tool":"get","when":"always","args":{"id":"x"}}`, `when`},
		{"two faults", list + `{"tool":"get","args":{"id":{"$from":"0/nam"}}},{"tool":"get","args":{"id":{"$from":"0/count"}}}`, "step 2: args.id takes string"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools, done := world()
			x := carry(t, &plan.Options{DataFlow: true}, `{"steps":[`+test.steps+`]}`, tools)
			if text := x.Result.Text(); !x.Result.IsError || !strings.Contains(text, test.want) {
				t.Errorf("%q\nwant in it\n%s", text, test.want)
			}
			if did := done(); len(did) > 0 {
				t.Errorf("it had run %q", did)
			}
		})
	}
}

// Steps of a wave run together, and waves run one after another. A plan that has a pending step in
// its first wave starts the second wave once, after the decision.
func TestWaves(t *testing.T) {
	tools, done := world()
	ask := pawl.Approve(func(_ context.Context, c llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
		if tool.Name == "get" && strings.Contains(string(c.Args), "t1") {
			return pawl.Approval{Verdict: pawl.VerdictAsk}, nil
		}
		return pawl.Approval{Verdict: pawl.VerdictAllow}, nil
	})
	var said []string
	a := &pawl.Agent{Executor: new(pawltest.Kept), Middleware: []pawl.Middleware{ask},
		Tools: []pawl.Toolset{tools, plan.New(&plan.Options{DataFlow: true})}, Model: script.New(script.Call("execute_plan",
			json.RawMessage(`{"steps":[{"tool":"list","args":{"n":2}},{"tool":"raw","args":{"text":"free"}},{"tool":"get","each":{"$from":"0/items"},"args":{"id":{"$from":"item/id"}}},{"tool":"raw","args":{"text":{"$from":"2/1"}}}]}`)), script.Say("done"))}
	res, err := runtest.Ended(a.Run(storing(t.Context(), a), llm.User("go")))
	if err != nil || len(res.Pending) != 1 || strings.Join(done(), "|") != "get t0|list 2|raw free" {
		t.Fatalf("%+v, %v, did %q", res.Pending, err, done())
	}
	for e, err := range a.ResumeStream(storing(t.Context(), a), res, llm.DecisionMessage(res.Pending[0].Approve("tom"))) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventProgress {
			said = append(said, e.Text)
		}
	}
	if got := strings.Join(done(), "|"); got != "get t0|get t1|list 2|raw <t1>|raw free" {
		t.Errorf("did %s", got)
	}
	if want := "a plan of 4 steps in 3 waves; these may change the world: step 1 (raw), step 2 (get), step 3 (raw)"; len(said) != 1 || said[0] != want {
		t.Errorf("got %q, want %q", said, want)
	}
}

var examples = regexp.MustCompile(`(?m)^Example: (\{.*\})$`)

// The examples that the model is shown are working plans.
func TestExamplesOfThePages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := file.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	search := add("web_search", pawl.EffectRead, func(q string) (string, error) { return q, nil })
	for _, opts := range []*plan.Options{nil, {DataFlow: true}} {
		found := examples.FindAllStringSubmatch(plan.New(opts).Description, -1)
		if want := map[bool]int{true: 1, false: 2}[opts == nil]; len(found) != want {
			t.Errorf("%d examples, want %d", len(found), want)
		}
		for _, m := range found {
			x := carry(t, opts, m[1], files, search)
			if x.Outcome != pawl.OutcomeOK || strings.Contains(x.Result.Text(), `"error"`) || len(x.Repairs) > 0 {
				t.Errorf("%s\n%s %v: %s", m[1], x.Outcome, x.Repairs, x.Result.Text())
			}
		}
	}
}
