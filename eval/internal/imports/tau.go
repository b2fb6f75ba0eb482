package imports

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// tau.go: tasks of tau-bench and of tau2-bench.

// tauRow is a task in either form.
type tauRow struct {
	ID          string   `json:"id"`
	Instruction string   `json:"instruction"`
	Outputs     []string `json:"expected_outputs"`
	Steps       []struct {
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Result string          `json:"result_text"`
	} `json:"steps"`

	// Of tau2-bench.
	Scenario *struct {
		Instructions json.RawMessage `json:"instructions"`
	} `json:"user_scenario"`
	Actions []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	} `json:"actions"`
	Told       []string `json:"communicate_info"`
	Assertions []string `json:"nl_assertions"`
}

// Reads reports whether a tool of tau-bench only reads, or ends the conversation.
func Reads(tool string) bool {
	for _, prefix := range []string{"get_", "list_", "find_", "search_", "check_", "can_"} {
		if strings.HasPrefix(tool, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"calculate", "think", "transfer_to_human_agents"}, tool)
}

func (m *Import) tau(text []byte) error {
	return lines(text, func(r *tauRow) error {
		c := &suite.Case{ID: idOf(r.ID)}
		c.Input = jsonOf(r.Instruction)
		if r.Scenario != nil {
			c.Input = jsonOf(scenario(r.Scenario.Instructions))
		}
		writes := []check.Call{}
		call := func(name string, args json.RawMessage, fake suite.Fake) {
			tool := toolOf(name)
			f := suite.Function{Name: tool, Effect: "write"}
			if Reads(name) {
				f.Effect = "read"
			} else {
				writes = append(writes, check.Call{Tool: tool, Args: literal(args)})
			}
			fake.Args = literal(args)
			m.declare(c, f, fake)
		}
		for _, s := range r.Steps {
			call(s.Name, s.Args, suite.Fake{Result: jsonOf(s.Result)})
		}
		for _, a := range r.Actions {
			call(a.Name, a.Args, done())
		}

		c.Checks = append(c.Checks, expects(writes, "", "reads"))
		if told := slices.Concat(r.Outputs, r.Told); len(told) > 0 {
			c.Checks = append(c.Checks, check.Definition{Answer: &check.Answer{Contains: jsonOf(told), Fold: true}})
		}
		reasons := []string{"the user is simulated; the instructions of the user are the input"}
		if r.Actions != nil {
			reasons = append(reasons, "the results of its calls are unknown")
		}
		if len(r.Assertions) > 0 {
			m.because(r.ID, "without nl_assertions, which gate nothing there")
		}
		m.add(c, reasons...)
		return nil
	})
}

// scenario is the text of instructions: themselves, or their fields below each other.
func scenario(instructions json.RawMessage) string {
	var text string
	if json.Unmarshal(instructions, &text) == nil {
		return text
	}
	var fields struct {
		Reason string `json:"reason_for_call"`
		Known  string `json:"known_info"`
		Task   string `json:"task_instructions"`
	}
	_ = json.Unmarshal(instructions, &fields) // what has another form has no text
	return strings.TrimSpace(strings.Join([]string{fields.Reason, fields.Known, fields.Task}, "\n"))
}
