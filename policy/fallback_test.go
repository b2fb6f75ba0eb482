package policy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider/catalog"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// named is a model that records its requests, fails as err says, before or after a fragment, and
// otherwise answers by its turns.
type named struct {
	name  string
	asked *[]string
	err   func(n int) error // of the n-th request, from 1; nil means that it answers
	late  bool              // it fails after a fragment
	turns *script.Model
	n     int
}

func (m *named) String() string { return m.name }

func (m *named) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.n++
		*m.asked = append(*m.asked, m.name+req.Model)
		if !yield(llm.Delta{Model: m.name, ID: "id of " + m.name, Usage: &llm.Usage{Input: 7}}, nil) {
			return
		}
		if m.err != nil {
			if err := m.err(m.n); err != nil {
				if m.late && !yield(llm.Delta{Part: llm.Text{Text: "I th"}}, nil) {
					return
				}
				yield(llm.Delta{}, err)
				return
			}
		}
		for d, err := range m.turns.Stream(ctx, req) {
			if d.Model != "" {
				d.Model = m.name
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func provider(code llm.Code, retryable bool) error {
	return &llm.ProviderError{Provider: "sim", Code: code, Message: "no", Retryable: retryable}
}

func always(err error) func(int) error { return func(int) error { return err } }

func TestFallback(t *testing.T) {
	busy := provider(llm.CodeOverloaded, true)
	for _, test := range []struct {
		name    string
		errs    []func(int) error // of models a, b and c; nil means that the model answers
		late    bool
		asked   string
		notices int
		err     string
	}{
		{"answers", []func(int) error{nil, nil, nil}, false, "a a", 0, ""},
		{"overloaded", []func(int) error{always(busy), nil, nil}, false, "a b b", 1, ""},
		{"two down", []func(int) error{always(busy), always(provider(llm.CodeQuota, false)), nil}, false, "a b c c", 2, ""},
		{"no key", []func(int) error{always(provider(llm.CodeAuthentication, false)), nil, nil}, false, "a b b", 1, ""},
		{"down at the second request", []func(int) error{func(n int) error {
			if n == 2 {
				return busy
			}
			return nil
		}, nil, nil}, false, "a a b", 1, ""},
		{"round the corner", []func(int) error{func(n int) error {
			if n == 1 {
				return busy
			}
			return nil
		}, func(n int) error {
			if n == 2 {
				return busy
			}
			return nil
		}, always(busy)}, false, "a b b c a", 3, ""},
		{"all down", []func(int) error{always(busy), always(provider(llm.CodeTimeout, true)),
			always(provider(llm.CodeQuota, false))}, false, "a b c", 2,
			"run/0/model: 3 models failed: sim: overloaded: no\nsim: timeout: no\nsim: quota: no"},
		{"refused", []func(int) error{always(provider(llm.CodeInvalidRequest, false)), nil, nil}, false, "a", 0, "run/0/model: sim: invalid_request: no"},
		{"another error", []func(int) error{always(errors.New("a bug")), nil, nil}, false, "a", 0, "run/0/model: a bug"},
		{"after a fragment, where the run asks the model again", []func(int) error{always(busy), nil, nil}, true, "a a a", 0, "run/0/model: sim: overloaded: no"},
	} {
		for _, streamed := range []bool{false, true} {
			var asked []string
			var ms []llm.Model
			for i, err := range test.errs {
				ms = append(ms, &named{name: string(rune('a' + i)), asked: &asked, err: err, late: test.late,
					turns: script.New(script.Call("f", nil), script.Say("done"))})
			}
			agent := &pawl.Agent{Model: ms[0], Tools: []pawl.Toolset{says("f", pawl.EffectRead)},
				Middleware: []pawl.Middleware{policy.Fallback{Models: ms[1:]}.Middleware()}}
			var res *pawl.Result
			var err error
			notices := 0
			if streamed {
				for e, failed := range agent.Stream(t.Context(), llm.User("go")) {
					switch {
					case failed != nil:
						err = failed
					case e.Kind == pawl.EventNotice && e.Code == "fallback":
						notices++
					case e.Kind == pawl.EventRunEnded:
						res = e.Result
					}
				}
				if notices != test.notices {
					t.Errorf("%s: %d notices, want %d", test.name, notices, test.notices)
				}
			} else {
				res, err = agent.Run(t.Context(), llm.User("go"))
			}
			if got := strings.Join(asked, " "); got != test.asked {
				t.Errorf("%s: asked %s, want %s", test.name, got, test.asked)
			}
			if (err != nil) != (test.err != "") || err != nil && err.Error() != test.err {
				t.Errorf("%s: got the error %v, want %q", test.name, err, test.err)
				continue
			}
			if err != nil {
				var pe *llm.ProviderError
				if strings.Contains(test.err, "sim:") && !errors.As(err, &pe) {
					t.Errorf("%s: the provider's error is lost", test.name)
				}
				continue
			}
			last := res.Steps[len(res.Steps)-1].Response
			if want := asked[len(asked)-1]; last.Model != want || last.ID != "id of "+want && !strings.HasPrefix(last.ID, "script") {
				t.Errorf("%s: the reply says that it is of %q (%q), want %q", test.name, last.Model, last.ID, want)
			}
		}
	}
}

func TestFallbackBeginsEachRunWithTheFirst(t *testing.T) {
	var asked []string
	down := true
	a := &named{name: "a", asked: &asked, turns: script.New(script.Say("a")), err: func(int) error {
		if down {
			return provider(llm.CodeServer, true)
		}
		return nil
	}}
	b := &named{name: "b", asked: &asked, turns: script.New(script.Say("b"))}
	agent := &pawl.Agent{Model: a, Middleware: []pawl.Middleware{policy.Fallback{Models: []llm.Model{b}}.Middleware()}}
	for _, want := range []string{"b", "a"} {
		res, err := agent.Run(t.Context(), llm.User("go"))
		if err != nil || res.Text() != want {
			t.Errorf("got %v, %v, want %s", res, err, want)
		}
		down = false
	}
	if want := []string{"a", "b", "a"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	// An override of the model's name is the first one's.
	asked, down = nil, true
	m := policy.Fallback{Models: []llm.Model{b}}.Middleware().Model(a)
	if resp, err := llm.Complete(t.Context(), m,
		&llm.Request{Model: "-large", Messages: []llm.Message{llm.User("go")}}); err != nil || resp.Message.Text() != "b" {
		t.Errorf("got %+v, %v", resp, err)
	}
	if want := []string{"a-large", "b"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	// A run that ends asks no other model, and a stopped consumer receives nothing more.
	asked = nil
	ctx, cancel := context.WithCancel(t.Context())
	a.err = func(int) error { cancel(); return provider(llm.CodeTimeout, true) }
	m = policy.Fallback{Models: []llm.Model{b}}.Middleware().Model(a)
	if _, err := llm.Complete(ctx, m, &llm.Request{Messages: []llm.Message{llm.User("go")}}); err == nil {
		t.Error("want an error")
	}
	if want := []string{"a"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	for range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("go")}}) {
		break
	}
}

func ExampleFallback() {
	down := script.New(script.Fail(&llm.ProviderError{Provider: "first", Code: llm.CodeOverloaded, Retryable: true}))
	agent := &pawl.Agent{
		Model:      down,
		Middleware: []pawl.Middleware{policy.Fallback{Models: []llm.Model{script.New(script.Say("It is noon."))}}.Middleware()},
	}
	for e, err := range agent.Stream(context.Background(), llm.User("What time is it?")) {
		switch {
		case err != nil:
			fmt.Println(err)
		case e.Kind == pawl.EventNotice:
			fmt.Println(e.Code+":", e.Text)
		case e.Kind == pawl.EventRunEnded:
			fmt.Println(e.Result.Text())
		}
	}
	// Output:
	// fallback: first: overloaded; continuing with model 2 of 2
	// It is noon.
}

// A run with a limit on cost does not begin if a model that may answer has no price, even behind a
// middleware without prices.
func TestFallbackUnderALimitOfCost(t *testing.T) {
	price := catalog.Price{Input: 1, Output: 1}
	down := func() llm.Model { return script.New(script.Fail(provider(llm.CodeOverloaded, true))) }
	quiet := pawl.Middleware{Model: func(m llm.Model) llm.Model { return &struct{ llm.Model }{m} }}
	for _, test := range []struct {
		name   string
		models []llm.Model
		want   pawl.StopReason
	}{
		{"all have a price", []llm.Model{price.Of(script.New(script.Say("hi")))}, pawl.StopAnswer},
		{"one has none", []llm.Model{price.Of(script.New(script.Say("hi"))), script.New(script.Say("hi"))}, pawl.StopFailed},
	} {
		a := &pawl.Agent{Model: price.Of(down()), Limits: pawl.Limits{Cost: 1},
			Middleware: []pawl.Middleware{quiet, policy.Fallback{Models: test.models}.Middleware()}}
		res, err := a.Run(t.Context(), llm.User("go"))
		if test.want == pawl.StopFailed { // found before the run starts
			if res != nil || err == nil || !strings.HasPrefix(err.Error(), "Limits.Cost: the price of") {
				t.Errorf("%s: got %+v, %v", test.name, res, err)
			}
			continue
		}
		if res == nil || res.Stop != test.want || (res.Spent.Usage.Cost > 0) != (test.want == pawl.StopAnswer) {
			t.Errorf("%s: got %+v, %v", test.name, res, err)
		}
	}
}

func TestFallbackToNothing(t *testing.T) {
	for _, f := range []policy.Fallback{{}, {Models: []llm.Model{nil}}} {
		a := &pawl.Agent{Model: script.New(script.Say("x")), Middleware: []pawl.Middleware{f.Middleware()}}
		if res, err := a.Run(t.Context(), llm.User("go")); res != nil || err == nil || !strings.Contains(err.Error(), "fallback") {
			t.Errorf("%+v: got %+v, %v", f, res, err)
		}
	}
}

// A nil model in Models is found by the check, also behind a pointer or a wrapper, and no check
// panics over it.
func TestFallbackToNil(t *testing.T) {
	own := catalog.Price{Input: 1, Output: 1}.Of(script.New(script.Say("hi")))
	for name, none := range map[string]llm.Model{"nil": nil, "a nil pointer": (*openai.Model)(nil),
		"a wrapper of a nil pointer": script.Record((*openai.Model)(nil))} {
		agent := &pawl.Agent{Model: own, Limits: pawl.Limits{Cost: 1},
			Middleware: []pawl.Middleware{policy.Fallback{Models: []llm.Model{own, none}}.Middleware()}}
		_, err := agent.Run(t.Context(), llm.User("hi"))
		for _, err := range []error{agent.Check(t.Context()), err} {
			if err == nil || !strings.Contains(err.Error(), "Middleware[0]: fallback: Models[1] is nil") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}
