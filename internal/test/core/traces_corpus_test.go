package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

// recorded is a call that a benchmark holds to be correct, with the result of its own tool.
type recorded struct {
	Name   string
	Args   json.RawMessage
	Result json.RawMessage
	Text   string `json:"result_text"`
}

func (r recorded) text() string {
	if r.Text != "" {
		return r.Text
	}
	return string(r.Result)
}

// traced counts the outcomes of the recorded calls.
type traced struct{ conversations, turns, calls, asRecorded, refused int }

// play runs the turns of one conversation, one reply for each call, with the recorded results for
// tools. The runs of later turns resume the stored runs. Calls must reach the tools in order with
// the recorded arguments, and the transcript must hold the recorded results.
func (n *traced) play(t *testing.T, id string, tools map[string]json.RawMessage, turns [][]recorded) {
	t.Helper()
	n.conversations++
	var reached []recorded
	var next *recorded // the call in progress
	var set []pawl.Toolset
	for name, schema := range tools {
		set = append(set, &pawl.Tool{Name: name, Input: schema,
			Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				reached = append(reached, recorded{Name: c.Name, Args: c.Args})
				return llm.TextResult(next.text()), nil
			}})
	}
	res := new(pawl.Result)
	for i, calls := range turns {
		n.turns++
		at := 0
		a := &pawl.Agent{Tools: set, Limits: pawl.Limits{Rounds: len(calls) + 1}}
		a.Model = reader(func(string) *llm.ToolCall {
			if at == len(calls) {
				return nil
			}
			next = &calls[at]
			at++
			c := call("c", next.Name, string(next.Args))
			return &c
		})
		reached = reached[:0]
		var stored pawl.Result
		if err := json.Unmarshal([]byte(jsonOf(t, res)), &stored); err != nil {
			t.Fatal(err)
		}
		stored.Spent = pawl.Spent{} // each turn has a budget of its own
		var err error
		if res, err = a.Resume(t.Context(), &stored, llm.User("go on")); err != nil || res.Stop != pawl.StopAnswer {
			t.Errorf("%s: turn %d: %s, %s, %v", id, i, res.Stop, res.Cause, err)
			return
		}
		mustBeValid(t, res)
		ran := 0
		for j, want := range calls {
			n.calls++
			x := res.Steps[j].Executions[0]
			if x.Outcome == pawl.OutcomeInvalid {
				n.refused++
				t.Logf("%s: %s %s: %s", id, want.Name, want.Args, x.Result.Text())
				continue
			}
			if x.Outcome != pawl.OutcomeOK || len(x.Repairs) > 0 || ran >= len(reached) ||
				reached[ran].Name != want.Name || !sameJSON(reached[ran].Args, want.Args) ||
				x.Result.Text() != want.text() {
				t.Errorf("%s: %s %s: %s, repairs %q, %.200s", id, want.Name, want.Args, x.Outcome, x.Repairs, x.Result.Text())
				ran++
				continue
			}
			ran++
			n.asRecorded++
		}
		if ran != len(reached) {
			t.Errorf("%s: turn %d: %d calls ran, %d were made", id, i, len(reached), ran)
		}
	}
}

// The conversations of two benchmarks count as correct. Every call that fits its tool's own schema
// is executed as recorded, and every other call is rejected.
func TestRecordedConversations(t *testing.T) {
	soak.Sequential(t)
	type function struct {
		Cls, Domain, Name string
		Parameters        json.RawMessage
	}
	for name, want := range map[string]int{"bfcl": 2000, "tau": 700} {
		var n traced
		switch name {
		case "bfcl":
			functions := corpora.Lines[function](t, "bfcl/multi_turn_functions.jsonl.gz")
			for _, file := range corpora.Glob(t, "bfcl/dev/multi_turn_*.jsonl.gz") {
				for _, c := range corpora.Lines[struct {
					ID      string
					Classes []string `json:"involved_classes"`
					Turns   []struct {
						Truth []recorded `json:"ground_truth"`
					}
				}](t, file) {
					tools := map[string]json.RawMessage{}
					for _, f := range functions {
						for _, class := range c.Classes {
							if f.Cls == class {
								tools[f.Name] = f.Parameters
							}
						}
					}
					var turns [][]recorded
					for _, turn := range c.Turns {
						turns = append(turns, turn.Truth)
					}
					n.play(t, c.ID, tools, turns)
				}
			}
		case "tau":
			functions := corpora.Lines[function](t, "tau-bench/tau_tools.jsonl.gz")
			for _, c := range corpora.Lines[struct {
				ID, Domain string
				Steps      []recorded
			}](t, "tau-bench/dev/tau_ground_truth.jsonl.gz") {
				tools := map[string]json.RawMessage{}
				for _, f := range functions {
					if strings.HasPrefix(c.Domain, f.Domain) {
						tools[f.Name] = f.Parameters
					}
				}
				n.play(t, c.ID, tools, [][]recorded{c.Steps})
			}
		}
		t.Logf("%s: %d conversations, %d turns, %d calls: %d carried out as recorded, %d refused since they do not fit their own schema", name, n.conversations, n.turns, n.calls, n.asRecorded, n.refused)
		if n.asRecorded+n.refused != n.calls || n.asRecorded < want || n.refused*100 > n.calls {
			t.Errorf("%s: %+v", name, n)
		}
	}
}
