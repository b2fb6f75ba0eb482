package policy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// Each policy acts in its place, in any order of the list: a cached result takes no
// turn, a call that the breaker stops takes none either, and the guard sees cached results.
func TestListedInAnyOrder(t *testing.T) {
	want := []string{
		"checked saw 1",           // the first turn
		"checked saw 1",           // from the cache
		"there is no place 2",     // the second turn; the breaker opens
		"failed 1 times in a row", // no turn
		"checked saw 1",           // from the cache, though the tool is stopped
	}
	for _, order := range permutations(4) {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the failed call is repeated after a pause
				got := resultsOf(t, order)
				for i, text := range want {
					if i >= len(got) || !strings.Contains(got[i], text) {
						t.Fatalf("result %d of %q, want one with %q", i+1, got, text)
					}
				}
			})
		})
	}
}

// resultsOf returns the results of calls of a tool under four policies, listed in this order.
func resultsOf(t *testing.T, order []int) []string {
	policies := []pawl.Middleware{
		policy.Rate{Every: time.Hour, Burst: 2}.Middleware(),
		policy.Breaker{Failures: 1, Pause: time.Hour}.Middleware(),
		policy.Cache{}.Middleware(),
		policy.Guard{Places: []policy.GuardPlace{policy.GuardResult}, Check: checked}.Middleware(),
	}
	var listed []pawl.Middleware
	for _, i := range order {
		listed = append(listed, policies[i])
	}

	type in struct{ At int }
	look := pawl.Func("look", "Looks.", func(_ context.Context, in in) (string, error) {
		if in.At == 2 {
			return "", pawl.RetryableError(errors.New("there is no place 2"))
		}
		return fmt.Sprintf("saw %d", in.At), nil
	})
	look.Effect = pawl.EffectPure
	model := script.New(script.Call("look", in{1}), script.Call("look", in{1}), script.Call("look", in{2}),
		script.Call("look", in{3}), script.Call("look", in{1}), script.Say("Done."))
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{look}, Middleware: listed}
	res, err := agent.Run(t.Context(), llm.User("Go."))
	if err != nil {
		t.Fatal(err)
	}

	var results []string
	for _, step := range res.Steps {
		for _, x := range step.Executions {
			results = append(results, x.Result.Text())
		}
	}
	return results
}

// checked is a check that marks each text.
func checked(_ context.Context, text policy.Guarded) (policy.Ruling, error) {
	return policy.Ruling{Action: policy.GuardReplace, Text: "checked " + text.Text}, nil
}

// A fallback acts within the other middleware in any order of the list: each model receives what
// they leave of a request.
func TestFallbackListedInAnyOrder(t *testing.T) {
	for _, order := range permutations(3) {
		var received []string
		receives := func(name string, turn script.Turn) llm.Model {
			return &receiver{script.New(turn), name, &received}
		}
		down := receives("own", script.Fail(provider(llm.CodeOverloaded, true)))
		other := receives("other", script.Say("done"))

		adds := func(text string) pawl.Middleware {
			return pawl.Middleware{Model: func(m llm.Model) llm.Model { return &adding{m, text} }}
		}
		policies := []pawl.Middleware{
			adds("A"),
			policy.Fallback{Models: []llm.Model{other}}.Middleware(),
			adds("B"),
		}
		var listed []pawl.Middleware
		for _, i := range order {
			listed = append(listed, policies[i])
		}
		a := &pawl.Agent{Model: down, Middleware: listed}
		if _, err := a.Run(t.Context(), llm.User("go")); err != nil {
			t.Fatal(err)
		}

		own, others := "own: go A B", "other: go A B"
		if slices.Index(order, 2) < slices.Index(order, 0) { // the outermost adds first
			own, others = "own: go B A", "other: go B A"
		}
		if want := []string{own, others}; !slices.Equal(received, want) {
			t.Errorf("order %v: got %q, want %q", order, received, want)
		}
	}
}

// receiver is a model that records the text of each request.
type receiver struct {
	llm.Model
	name     string
	received *[]string
}

func (m *receiver) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	*m.received = append(*m.received, m.name+": "+req.Messages[0].Text())
	return m.Model.Stream(ctx, req)
}

// adding is a model that adds a text to the first message of each request.
type adding struct {
	llm.Model
	text string
}

func (m *adding) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	changed := *req
	changed.Messages = []llm.Message{llm.User(req.Messages[0].Text() + " " + m.text)}
	return m.Model.Stream(ctx, &changed)
}

// What only one middleware can do is an error before the run, at Check and at Run, if two are to
// do it. No model is asked.
func TestTwoThatDoOneThing(t *testing.T) {
	tools := []pawl.Toolset{says("look", pawl.EffectPure), says("find", pawl.EffectPure), says("write", pawl.EffectWrite)}
	fallback := func() pawl.Middleware {
		return policy.Fallback{Models: []llm.Model{script.New(script.Say("x"))}}.Middleware()
	}
	caches := func(tools ...string) pawl.Middleware { return policy.Cache{Tools: tools}.Middleware() }
	ofOne := func(m pawl.Middleware) pawl.Middleware {
		return m.For(func(context.Context, llm.ToolCall) bool { return true })
	}

	for name, c := range map[string]struct {
		middleware []pawl.Middleware
		want       string // empty means no error
	}{
		"two fallbacks": {[]pawl.Middleware{fallback(), {}, fallback()},
			"Middleware[2]: has the fallback to other models, as Middleware[0] does; make one of the two"},
		"two caches of all": {[]pawl.Middleware{caches(), caches()},
			"Middleware[1]: has the cache of look, as Middleware[0] does"},
		"two caches of one tool": {[]pawl.Middleware{caches("f*"), caches("find")},
			"Middleware[1]: has the cache of find, as Middleware[0] does"},
		"caches of two tools":     {[]pawl.Middleware{caches("look"), caches("find")}, ""},
		"caches for some calls":   {[]pawl.Middleware{ofOne(caches()), ofOne(caches())}, ""},
		"one of each":             {[]pawl.Middleware{fallback(), caches()}, ""},
		"two rates of one tool":   {[]pawl.Middleware{rate(time.Second), rate(time.Minute)}, ""},
		"two rules for all calls": {[]pawl.Middleware{policy.Rules{}.Middleware(), policy.Rules{}.Middleware()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			model := script.New(script.Say("done"))
			a := &pawl.Agent{Model: model, Tools: tools, Middleware: c.middleware}
			checked := a.Check(t.Context())
			_, err := a.Run(t.Context(), llm.User("go"))
			for door, err := range map[string]error{"Check": checked, "Run": err} {
				switch {
				case c.want == "" && err != nil:
					t.Errorf("%s: got %v", door, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%s: got %v, want %q", door, err, c.want)
				}
			}
			if asked := len(model.Requests()); (asked > 0) != (c.want == "") {
				t.Errorf("the model was asked %d times", asked)
			}
		})
	}
}

func rate(every time.Duration) pawl.Middleware { return policy.Rate{Every: every}.Middleware() }

// permutations returns the orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}
