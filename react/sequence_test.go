package react_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

// sequence is a task with the calls that solve it, by step, and what they gave.
type sequence struct {
	id, task string
	steps    [][]recorded
}

type recorded struct {
	name   string
	args   json.RawMessage
	result string
	failed bool
}

func (s sequence) source() string { source, _, _ := strings.Cut(s.id, " "); return source }

// fails reports whether a call of s gave an error.
func (s sequence) fails() bool {
	return slices.ContainsFunc(s.steps, func(c []recorded) bool {
		return slices.ContainsFunc(c, func(r recorded) bool { return r.failed })
	})
}

type declaration struct {
	Name, Description string
	Parameters        json.RawMessage
}

// sequences reads tasks of three benchmarks, whose ground truth was executed by their own tools.
func sequences(t *testing.T) (all []sequence, tools map[string]declaration) {
	t.Helper()
	tools = map[string]declaration{}
	for source, name := range map[string]string{"tau": "tau-bench/tau_tools.jsonl.gz", "agentdojo": "agentdojo/agentdojo_tools.jsonl.gz", "bfcl": "bfcl/multi_turn_functions.jsonl.gz"} {
		for _, d := range corpora.Lines[declaration](t, name) {
			tools[source+" "+d.Name] = d // names come again in other benchmarks, with other schemas
		}
	}
	type step struct {
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Text   string          `json:"result_text"`
		Result json.RawMessage `json:"result"`
	}
	type tau struct {
		ID, Instruction string
		Prompt          string
		Steps           []step
	}
	read := func(source string, n int, in []tau) {
		for _, x := range in {
			if n == 0 {
				return
			}
			s := sequence{id: source + " " + x.ID, task: x.Instruction + x.Prompt}
			for _, c := range x.Steps {
				s.steps = append(s.steps, []recorded{{c.Name, c.Args, c.Text, strings.HasPrefix(c.Text, "Error")}})
			}
			if len(s.steps) > 1 {
				all = append(all, s)
				n--
			}
		}
	}
	taus := corpora.Lines[tau](t, "tau-bench/dev/tau_ground_truth.jsonl.gz")
	failing := slices.DeleteFunc(slices.Clone(taus), func(x tau) bool {
		return !slices.ContainsFunc(x.Steps, func(s step) bool { return strings.HasPrefix(s.Text, "Error") })
	})
	read("tau", 15, failing)
	read("tau", 20, taus)
	read("agentdojo", 20, corpora.Lines[tau](t, "agentdojo/dev/agentdojo_ground_truth.jsonl.gz"))
	type multi struct {
		ID    string
		Turns []struct {
			User  []struct{ Content string } `json:"user"`
			Truth []step                     `json:"ground_truth"`
		}
	}
	errs, others := 20, 20
	var multis []multi
	for _, name := range []string{"base", "miss_func", "miss_param"} {
		multis = append(multis, corpora.Lines[multi](t, "bfcl/dev/multi_turn_"+name+".jsonl.gz")...)
	}
	for _, x := range multis {
		s := sequence{id: "bfcl " + x.ID}
		for _, turn := range x.Turns {
			for _, u := range turn.User {
				s.task += u.Content + "\n"
			}
			var calls []recorded
			for _, c := range turn.Truth {
				calls = append(calls, recorded{c.Name, c.Args, string(c.Result), bytes.HasPrefix(c.Result, []byte(`{"error"`))})
			}
			if len(calls) > 0 {
				s.steps = append(s.steps, calls)
			}
		}
		left := &others
		if s.fails() {
			left = &errs
		}
		if len(s.steps) > 0 && *left > 0 && usable(s, tools) {
			all = append(all, s)
			*left--
		}
	}
	return all, tools
}

// stage makes the tools of a sequence, which return the recorded results and log their effects.
func stage(s sequence, declared map[string]declaration) (set pawl.Toolsets, effects func() []string) {
	var mu sync.Mutex
	var log []string
	queue := map[string][]recorded{}
	var names []string
	for _, step := range s.steps {
		for _, c := range step {
			if !slices.Contains(names, c.name) {
				names = append(names, c.name)
			}
			key := c.name + " " + string(c.args)
			queue[key] = append(queue[key], c)
		}
	}
	for _, name := range names {
		d := declared[s.source()+" "+name]
		set = append(set, &pawl.Tool{Name: name, Description: d.Description, Input: d.Parameters,
			Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				key := call.Name + " " + string(call.Args)
				log = append(log, key)
				if len(queue[key]) == 0 {
					return llm.ErrorResult("nothing was recorded for " + key), nil
				}
				r := queue[key][0]
				queue[key] = queue[key][1:]
				if r.failed {
					return llm.ErrorResult(r.result), nil
				}
				return llm.TextResult(r.result), nil
			}})
	}
	return set, func() []string {
		slices.Sort(log) // calls of a step go together
		return log
	}
}

// turns writes the sequence as replies with native calls.
func (s sequence) turns() []script.Turn {
	var out []script.Turn
	n := 0
	for i, step := range s.steps {
		turn := script.Think(fmt.Sprintf("Step %d of %d: %s comes next.", i+1, len(s.steps), step[0].name))
		for _, c := range step {
			n++
			turn.Parts = append(turn.Parts, llm.ToolCall{ID: fmt.Sprint("call_", n), Name: c.name, Args: c.args})
		}
		out = append(out, turn)
	}
	return append(out, script.Say("Done: "+strings.Join(strings.Fields(s.task), " ")))
}

// usable leaves out tasks whose recorded arguments do not fit the tool's own schema: both drivers
// reject these, each in its way.
func usable(s sequence, declared map[string]declaration) bool {
	for _, step := range s.steps {
		for _, c := range step {
			d, ok := declared[s.source()+" "+c.name]
			tool := &pawl.Tool{Name: c.name, Input: d.Parameters, Passive: true}
			if !ok || tool.Check() != nil || tool.Validate(c.args) != nil {
				return false
			}
		}
	}
	return true
}

// The ground truth of three benchmarks, played through native calls and through each format, gives
// the same transcript and the same effects.
func TestSequences(t *testing.T) {
	soak.Sequential(t)
	all, declared := sequences(t)
	played, parallel, failing := 0, 0, 0
	for _, s := range all {
		if !usable(s, declared) {
			continue
		}
		played++
		if slices.ContainsFunc(s.steps, func(c []recorded) bool { return len(c) > 1 }) {
			parallel++
		}
		if s.fails() {
			failing++
		}
		play := func(wrap func(llm.Model) llm.Model, stream bool) (*pawl.Result, []string) {
			t.Helper()
			tools, effects := stage(s, declared)
			a := &pawl.Agent{Instructions: "Do what is asked.", Model: wrap(script.New(s.turns()...)),
				Tools: []pawl.Toolset{tools}, Limits: pawl.Limits{Rounds: 100, LoopThreshold: -1}}
			if !stream {
				res, err := a.Run(t.Context(), llm.User(s.task))
				if err != nil {
					t.Fatalf("%s: %v", s.id, err)
				}
				return res, effects()
			}
			var res *pawl.Result
			for e, err := range a.Stream(t.Context(), llm.User(s.task)) {
				if err != nil {
					t.Fatalf("%s: %v", s.id, err)
				}
				if e.Kind == pawl.EventRunEnded {
					res = e.Result
				}
			}
			return res, effects()
		}
		want, wantEffects := play(func(m llm.Model) llm.Model { return m }, false)
		if want.Stop != pawl.StopAnswer {
			t.Fatalf("%s: native calls ended as %s: %s", s.id, want.Stop, want.Cause)
		}
		if played == 1 { // a driver that changes calls is found out
			lossy, effects := play(func(m llm.Model) llm.Model {
				return react.New(deaf{speaker{m, react.Text}}, &react.Options{Format: react.Text})
			}, false)
			if neutral(t, lossy.Messages) == neutral(t, want.Messages) || cmp.Equal(effects, wantEffects) {
				t.Fatal("the comparison does not see a changed call")
			}
		}
		for i, f := range react.Formats() {
			got, effects := play(func(m llm.Model) llm.Model {
				return react.New(speaker{m, f}, &react.Options{Format: f, Parallel: true})
			}, i%2 == 0)
			if diff := cmp.Diff(neutral(t, got.Messages), neutral(t, want.Messages)); diff != "" {
				t.Errorf("%s in %s: got -, native calls +\n%s", s.id, f, diff)
			}
			if diff := cmp.Diff(effects, wantEffects); diff != "" {
				t.Errorf("%s in %s: effects: got -, native calls +\n%s", s.id, f, diff)
			}
		}
	}
	t.Logf("%d sequences in native calls and %d formats: %d with parallel calls, %d with an error result", played, len(react.Formats()), parallel, failing)
	if played < 40 || parallel < 10 || failing < 10 {
		t.Errorf("too few")
	}
}

// deaf adds an argument to every call.
type deaf struct{ llm.Model }

func (d deaf) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for delta, err := range d.Model.Stream(ctx, req) {
			if t, ok := delta.Part.(llm.Text); ok && strings.Contains(t.Text, "}") {
				delta.Part = llm.Text{Text: strings.Replace(t.Text, "}", `,"more":1}`, 1)}
			}
			if !yield(delta, err) {
				return
			}
		}
	}
}

// neutral returns the JSON form.
func neutral(t *testing.T, msgs []llm.Message) string {
	t.Helper()
	b, err := json.MarshalIndent(msgs, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
