package imports_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/imports"
	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/tools/outside"
)

// compiled returns the checks of a case.
func compiled(t *testing.T, c *suite.Case) (all []*check.Check) {
	t.Helper()
	compiler := &check.Compiler{Report: func(path, _, message string) { t.Errorf("%s: %s: %s", c.ID, path, message) }}
	for i := range c.Checks {
		if one := compiler.Compile(&c.Checks[i], fmt.Sprintf("checks[%d]", i)); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// passes reports whether a run with these calls passes the checks.
func passes(checks []*check.Check, calls []trial.Call) bool {
	r := &trial.Record{Stop: "answer", Answer: "Done.", Calls: calls}
	check.Judge(r, checks)
	return r.Verdict == trial.Pass
}

// made is a call that was done.
func made(tool string, args any) trial.Call {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return trial.Call{Tool: tool, Args: text, Outcome: "ok", Effect: "write", State: "completed"}
}

// truth is a row of BFCL, read without the code that imports it.
type truth struct {
	ID        string `json:"id"`
	Expect    string `json:"expect"`
	Functions []struct {
		Name string `json:"name"`
	} `json:"functions"`
	Truth []struct {
		Name    string  `json:"name"`
		Allowed allowed `json:"args_allowed"`
	} `json:"ground_truth"`
	Turns []struct {
		Truth []struct {
			Name string         `json:"name"`
			Args map[string]any `json:"args"`
		} `json:"ground_truth"`
	} `json:"turns"`
}

// allowed are the allowed values of arguments, whose names have the order of the file.
type allowed struct {
	names  []string
	values map[string][]any
}

func (a *allowed) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &a.values); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		a.names = append(a.names, key.(string))
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

func name(s string) string { return strings.ReplaceAll(s, ".", "_") }

// first is the first of the allowed values. ok is false if only nothing is allowed.
func first(values []any) (v any, ok bool) {
	for _, one := range values {
		if one != "" {
			return plain(one), true
		}
	}
	return nil, false
}

// plain is an allowed value, in which the values of objects are lists of allowed values.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, plain(one))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, one := range v {
			list, isList := one.([]any)
			if !isList {
				out[key] = one
				continue
			}
			if value, ok := first(list); ok {
				out[key] = value
			}
		}
		return out
	}
	return v
}

// good are the calls of a model that makes the first allowed ones. Where some call is right, it
// makes one.
func good(r *truth) (calls []trial.Call) {
	if r.Expect == "some_call" {
		return []trial.Call{made(name(r.Functions[0].Name), map[string]any{})}
	}
	for _, one := range r.Truth {
		args := map[string]any{}
		for arg, values := range one.Allowed.values {
			if v, ok := first(values); ok {
				args[arg] = v
			}
		}
		calls = append(calls, made(name(one.Name), args))
	}
	return calls
}

// args changes the arguments of all calls.
func args(calls []trial.Call, change func(map[string]any)) (out []trial.Call) {
	for _, c := range calls {
		values := map[string]any{}
		d := json.NewDecoder(bytes.NewReader(c.Args))
		if err := d.Decode(&values); err != nil {
			panic(err)
		}
		change(values)
		out = append(out, made(c.Tool, values))
	}
	return out
}

// TestSingleTurn imports all rows of BFCL with one turn, and judges a good model and models with
// one fault each. The figures are of another program.
func TestSingleTurn(t *testing.T) {
	var all, left, drafts int
	passed := map[string]int{}
	for _, file := range corpora.Glob(t, "bfcl/dev/*.jsonl.gz") {
		if strings.Contains(file, "multi_turn") {
			continue
		}
		text := corpora.Read(t, file)
		read, err := imports.Read("bfcl", text, false)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(read.Cases)+read.LeftOut != read.Rows {
			t.Errorf("%s: %d cases and %d left out are not %d rows", file, len(read.Cases), read.LeftOut, read.Rows)
		}
		all += read.Rows
		left += read.LeftOut
		drafts += read.Drafts

		cases := map[string]*suite.Case{}
		for _, c := range read.Cases {
			cases[c.ID] = c
		}
		for _, r := range corpora.Lines[*truth](t, file) {
			c := cases[r.ID]
			if c == nil {
				continue
			}
			checks := compiled(t, c)
			for model, calls := range models(r) {
				if passes(checks, calls) {
					passed[model]++
				}
			}

			// The control: texts that are compared strictly see capitals.
			strictly(c)
			if passes(compiled(t, c), args(good(r), capitals)) {
				passed["strings in capitals, strictly"]++
			}
		}
	}

	if all != 1835 || left != 1 || drafts != 0 {
		t.Errorf("%d rows, %d left out, %d drafts: want 1835, 1, 0", all, left, drafts)
	}
	for model, want := range map[string]int{
		"good":                1834,
		"good, reversed":      1834,
		"silent":              559,
		"eager":               1276,
		"no arguments":        587,
		"an extra argument":   566,
		"first call doubled":  566,
		"wrong name":          566,
		"last call missing":   559,
		"first value changed": 584,
		"strings in capitals": 1834,

		"strings in capitals, strictly": 801,
	} {
		if passed[model] != want {
			t.Errorf("%s: %d rows pass, want %d", model, passed[model], want)
		}
	}
}

// models are the calls of a row by models with one fault each.
func models(r *truth) map[string][]trial.Call {
	right := good(r)
	reversed := make([]trial.Call, 0, len(right))
	for i := range right {
		reversed = append(reversed, right[len(right)-1-i])
	}
	eager := right
	if r.Expect == "no_call" && len(r.Functions) > 0 {
		eager = []trial.Call{made(name(r.Functions[0].Name), map[string]any{})}
	}
	out := map[string][]trial.Call{
		"good":                right,
		"good, reversed":      reversed,
		"silent":              nil,
		"eager":               eager,
		"no arguments":        args(right, func(a map[string]any) { clear(a) }),
		"an extra argument":   args(right, func(a map[string]any) { a["zq_extra"] = 1 }),
		"first value changed": firstChanged(r, right),
		"strings in capitals": args(right, capitals),
		"first call doubled":  right,
		"last call missing":   right,
	}
	if len(right) > 0 {
		out["first call doubled"] = append([]trial.Call{right[0]}, right...)
		out["last call missing"] = right[:len(right)-1]
	}
	for _, c := range right {
		c.Tool += "_zq"
		out["wrong name"] = append(out["wrong name"], c)
	}
	if right == nil {
		out["wrong name"] = nil
	}
	return out
}

// firstChanged changes the first value of the first call that has one.
func firstChanged(r *truth, calls []trial.Call) []trial.Call {
	i := -1
	isChanged := false
	return args(calls, func(values map[string]any) {
		i++
		if i >= len(r.Truth) {
			return
		}
		for _, key := range r.Truth[i].Allowed.names {
			if v, has := values[key]; has && !isChanged {
				values[key] = another(v)
				isChanged = true
			}
		}
	})
}

// another is a value that differs from v.
func another(v any) any {
	switch v := v.(type) {
	case string:
		return v + "zq"
	case float64:
		return v + 1_000_003
	case bool:
		return !v
	case []any:
		return append(v, "zq")
	case map[string]any:
		v["zq_extra"] = 1
		return v
	}
	return 0
}

var looseText = regexp.MustCompile(`\{"\$loose":("(?:[^"\\]|\\.)*")\}`)

// strictly makes the texts of a case equal instead of loosely equal.
func strictly(c *suite.Case) {
	if c.Checks[0].Calls.Expect == nil {
		return
	}
	for i := range *c.Checks[0].Calls.Expect {
		call := &(*c.Checks[0].Calls.Expect)[i]
		call.Args = looseText.ReplaceAll(call.Args, []byte("$1"))
	}
}

// capitals writes the values that are texts in capitals, with dashes for spaces.
func capitals(values map[string]any) {
	for key, v := range values {
		if text, isText := v.(string); isText {
			values[key] = strings.ReplaceAll(strings.ToUpper(text), " ", "-")
		}
	}
}

// TestMultiTurn imports the rows of BFCL with several turns.
func TestMultiTurn(t *testing.T) {
	var all, turns, calls, right, dropped, swapped, inOrder, anyOrder int
	for _, file := range corpora.Glob(t, "bfcl/dev/multi_turn_*.jsonl.gz") {
		read, err := imports.Read("bfcl", corpora.Read(t, file), false)
		if err != nil {
			t.Fatal(err)
		}
		if read.Drafts != read.Rows || len(read.Cases) != read.Rows {
			t.Errorf("%s: %d drafts, %d cases of %d rows", file, read.Drafts, len(read.Cases), read.Rows)
		}
		for i, r := range corpora.Lines[*truth](t, file) {
			all++
			turns += len(r.Turns)
			var gold []trial.Call
			for _, turn := range r.Turns {
				for _, c := range turn.Truth {
					gold = append(gold, made(c.Name, c.Args))
				}
			}
			calls += len(gold)
			checks := compiled(t, read.Cases[i])
			if passes(checks, gold) {
				right++
			}
			if len(gold) > 0 && passes(checks, append(gold[:0:0], gold[1:]...)) {
				dropped++
			}

			other := swap(r)
			if other == nil {
				continue
			}
			swapped++
			if passes(checks, other) {
				inOrder++
			}
			read.Cases[i].Checks[0].Calls.Order = "any"
			if passes(compiled(t, read.Cases[i]), other) {
				anyOrder++
			}
		}
	}
	got := fmt.Sprint(all, turns, calls, right, dropped, swapped, inOrder, anyOrder)
	if want := "400 1648 2310 400 0 340 0 340"; got != want {
		t.Errorf("rows, turns, calls, gold, dropped, swapped, swapped in order, swapped in any order: got %s, want %s", got, want)
	}
}

// swap exchanges the first two neighbours of a turn that differ. nil means that there are none.
func swap(r *truth) (calls []trial.Call) {
	isSwapped := false
	for _, turn := range r.Turns {
		begin := len(calls)
		for _, c := range turn.Truth {
			calls = append(calls, made(c.Name, c.Args))
		}
		for i := begin + 1; i < len(calls) && !isSwapped; i++ {
			a, b := calls[i-1], calls[i]
			if a.Tool != b.Tool || !bytes.Equal(a.Args, b.Args) {
				calls[i-1], calls[i] = b, a
				isSwapped = true
			}
		}
	}
	if !isSwapped {
		return nil
	}
	return calls
}

// action is a row of tau2-bench.
type action struct {
	Actions []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	} `json:"actions"`
}

// TestNoArguments compares {} with all actions of tau2-bench: only those without arguments fit.
func TestNoArguments(t *testing.T) {
	const file = "tau-bench/dev/tau2_tasks.jsonl.gz"
	read, err := imports.Read("tau", corpora.Read(t, file), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Cases) != read.Rows || read.Drafts != read.Rows {
		t.Errorf("%d cases, %d drafts of %d rows", len(read.Cases), read.Drafts, read.Rows)
	}
	fits := 0
	all := 0
	without := 0
	for _, row := range corpora.Lines[action](t, file) {
		for _, a := range row.Actions {
			all++
			if string(a.Args) == "{}" {
				without++
			}
			gold, err := match.Literal(a.Args)
			if err != nil {
				t.Fatal(err)
			}
			m, err := match.Parse(gold)
			if err != nil {
				t.Fatal(err)
			}
			if m.Fits(json.RawMessage("{}")) {
				fits++
			}
		}
	}
	if fits != 13 || all != 968 || without != 13 {
		t.Errorf("{} fits %d of %d actions, and %d have no arguments: want 13 of 968, 13", fits, all, without)
	}
}

// flight is a recorded run of an airline task.
type flight struct {
	ID     string  `json:"id"`
	Reward float64 `json:"reward"`
	Task   struct {
		Actions []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"kwargs"`
		} `json:"actions"`
	} `json:"task"`
	Messages []struct {
		Role  string `json:"role"`
		ID    string `json:"tool_call_id"`
		Text  string `json:"content"`
		Calls []struct {
			ID       string `json:"id"`
			Function struct {
				Name string `json:"name"`
				Args string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

// calls are the calls of a recorded run, with the effects of their tools. With failed, calls that
// failed count as done.
func (f *flight) calls(failed bool) (all []trial.Call) {
	results := map[string]string{}
	for _, m := range f.Messages {
		if m.Role == "tool" {
			results[m.ID] = m.Text
		}
	}
	for _, m := range f.Messages {
		for _, c := range m.Calls {
			one := trial.Call{Tool: c.Function.Name, Args: json.RawMessage(c.Function.Args), Outcome: "ok", Effect: "write",
				State: "completed", Result: results[c.ID]}
			if strings.HasPrefix(one.Result, "Error") && !failed {
				one.Outcome = "error"
				one.State = "failed"
			}
			if imports.Reads(one.Tool) {
				one.Effect = "read"
			}
			all = append(all, one)
		}
	}
	return all
}

// path is a kind of check, and how many good and bad runs pass it.
type path struct {
	name   string
	writes bool // only the calls that write are expected
	names  bool // without arguments
	failed bool // calls that failed count as done
	order  string
	extra  string

	good, bad    int
	wantG, wantB int
}

func (p *path) add(isGood bool) {
	if isGood {
		p.good++
		return
	}
	p.bad++
}

// TestPaths compares what checks of the path and checks of the writes say of 84 recorded runs. The
// figures are of another program.
func TestPaths(t *testing.T) {
	kinds := []path{
		{name: "exact", order: "exact", extra: "forbid", wantG: 6, wantB: 0},
		{name: "in order", order: "in_order", extra: "allow", wantG: 28, wantB: 9},
		{name: "any order", order: "any", extra: "allow", wantG: 28, wantB: 9},
		{name: "writes", writes: true, extra: "reads", wantG: 35, wantB: 1},
		{name: "writes by name", writes: true, names: true, extra: "reads", wantG: 35, wantB: 6},
		{name: "attempts by name", writes: true, names: true, failed: true, extra: "reads", wantG: 35, wantB: 5},
	}
	for _, f := range corpora.Lines[*flight](t, "tau-bench/dev/tau_airline_gpt4o_trajectories.jsonl.gz") {
		for i := range kinds {
			k := &kinds[i]
			calls := []check.Call{}
			for _, a := range f.Task.Actions {
				if k.writes && imports.Reads(a.Name) {
					continue
				}
				call := check.Call{Tool: a.Name}
				if !k.names {
					gold, err := match.Literal(a.Args)
					if err != nil {
						t.Fatal(err)
					}
					call.Args = outside.JSON(gold)
				}
				calls = append(calls, call)
			}
			c := &suite.Case{ID: f.ID, Checks: []check.Definition{{Calls: &check.Calls{Expect: &calls, Order: k.order,
				Extra: k.extra}}}}
			// Such a check is refused, and passes everything.
			if len(calls) == 0 && k.extra == "allow" {
				k.add(f.Reward == 1)
				continue
			}
			if passes(compiled(t, c), f.calls(k.failed)) {
				k.add(f.Reward == 1)
			}
		}
	}
	for _, k := range kinds {
		if k.good != k.wantG || k.bad != k.wantB {
			t.Errorf("%s: %d good and %d bad runs pass, want %d and %d", k.name, k.good, k.bad, k.wantG, k.wantB)
		}
	}
}

// task is a task of tau-bench, read without the code that imports it.
type task struct {
	Outputs []string `json:"expected_outputs"`
	Steps   []struct {
		Name string         `json:"name"`
		Args map[string]any `json:"args"`
	} `json:"steps"`
}

// TestTau judges a perfect model, a silent model and models with one fault each on the tasks of
// tau-bench.
func TestTau(t *testing.T) {
	const file = "tau-bench/dev/tau_ground_truth.jsonl.gz"
	read, err := imports.Read("tau", corpora.Read(t, file), false)
	if err != nil {
		t.Fatal(err)
	}
	tasks := corpora.Lines[*task](t, file)
	if len(read.Cases) != len(tasks) || read.Rows != len(tasks) || read.Drafts != len(tasks) {
		t.Fatalf("%d cases, %d rows, %d drafts of %d tasks", len(read.Cases), read.Rows, read.Drafts, len(tasks))
	}
	for i, one := range tasks {
		c := read.Cases[i]
		checks := compiled(t, c)
		answers := func(answer string, calls []trial.Call) bool {
			r := &trial.Record{Stop: "answer", Answer: answer, Calls: calls}
			check.Judge(r, checks)
			return r.Verdict == trial.Pass
		}
		var gold []trial.Call
		writes := 0
		for _, s := range one.Steps {
			call := made(s.Name, s.Args)
			if imports.Reads(s.Name) {
				call.Effect = "read"
			} else {
				writes++
			}
			gold = append(gold, call)
		}
		said := strings.Join(one.Outputs, " and ")

		if !answers(said, gold) {
			t.Errorf("%s: the right run fails", c.ID)
		}
		mayBeSilent := writes == 0 && len(one.Outputs) == 0
		if answers("", nil) != mayBeSilent || c.MayDoNothing != mayBeSilent {
			t.Errorf("%s: a silent run passes: %v, may_do_nothing: %v, want %v", c.ID, answers("", nil), c.MayDoNothing,
				mayBeSilent)
		}
		if len(one.Outputs) > 0 && answers("Done.", gold) {
			t.Errorf("%s: a run that does not say %q passes", c.ID, one.Outputs)
		}
		for j, call := range gold {
			if call.Effect == "read" {
				continue
			}
			doubled := append(gold[:len(gold):len(gold)], call)
			missing := append(gold[:j:j], gold[j+1:]...)
			other := append(gold[:0:0], gold...)
			other[j] = args(gold[j:j+1], func(a map[string]any) { a["zq_extra"] = 1 })[0]
			for fault, calls := range map[string][]trial.Call{"doubled": doubled, "missing": missing, "other": other} {
				if answers(said, calls) {
					t.Errorf("%s: a run with the call %s %s passes", c.ID, call.Tool, fault)
				}
			}
		}
	}
}
