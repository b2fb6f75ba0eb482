package imports

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/llm"
)

// bfcl.go: rows of the Berkeley Function-Calling Leaderboard.

// bfclRow is a row, of one turn or of several.
type bfclRow struct {
	ID       string `json:"id"`
	Messages []chat `json:"messages"`

	Functions []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"functions"`

	Expect string `json:"expect"`
	Truth  []struct {
		Name    string                       `json:"name"`
		Allowed map[string][]json.RawMessage `json:"args_allowed"`
	} `json:"ground_truth"`

	Turns []struct {
		User  []chat `json:"user"`
		Truth []struct {
			Name   string          `json:"name"`
			Args   json.RawMessage `json:"args"`
			Result json.RawMessage `json:"result"`
		} `json:"ground_truth"`
	} `json:"turns"`
}

// chat is a message in the form of a chat.
type chat struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// cannotPass are rows whose allowed values contradict their declaration.
var cannotPass = []string{"live_simple_112-68-0"}

func (m *Import) bfcl(text []byte) error {
	return lines(text, func(r *bfclRow) error {
		c := &suite.Case{ID: idOf(r.ID)}
		switch {
		case slices.Contains(cannotPass, r.ID):
			m.leaveOut(r.ID, "no call is one of the allowed ones")
			return nil
		case r.Turns != nil:
			m.turns(c, r)
			return nil
		}
		c.Input = inputOf(r.Messages)
		for _, f := range r.Functions {
			m.declare(c, suite.Function{
				Name:        toolOf(f.Name),
				Description: f.Description,
				Input:       jsonOf(f.Parameters),
			}, done())
		}

		switch r.Expect {
		case "calls":
			var calls []check.Call
			for _, one := range r.Truth {
				calls = append(calls, check.Call{Tool: toolOf(one.Name), Args: jsonOf(allowed(one.Allowed))})
			}
			c.Checks = append(c.Checks, expects(calls, "", "forbid"))
		case "some_call":
			least := 1.0
			c.Checks = append(c.Checks, check.Definition{Calls: &check.Calls{
				Count: map[string]check.Range{"*": {Min: &least}},
			}})
		case "no_call":
			c.MayDoNothing = true
			c.Checks = append(c.Checks, check.Definition{Calls: &check.Calls{None: "all"}})
		default:
			m.leaveOut(r.ID, "what it expects is unknown: %s", r.Expect)
			return nil
		}
		m.add(c)
		return nil
	})
}

// turns adds a row of several turns.
func (m *Import) turns(c *suite.Case, r *bfclRow) {
	var calls []check.Call
	var said []chat
	for _, turn := range r.Turns {
		said = append(said, turn.User...)
		for _, one := range turn.Truth {
			tool := toolOf(one.Name)
			args := literal(one.Args)
			calls = append(calls, check.Call{Tool: tool, Args: args})
			m.declare(c, suite.Function{Name: tool}, suite.Fake{Args: args, Result: jsonOf(one.Result), Times: 1})
		}
	}
	c.Input = inputOf(said)
	c.Checks = append(c.Checks, expects(calls, "in_order", "allow"))
	m.add(c, "a case has one turn; all messages of the user are its input")
}

// inputOf returns messages as the input of a case: a text, if there is only one of the user.
func inputOf(all []chat) []byte {
	if len(all) == 1 && all[0].Role == "user" {
		return jsonOf(all[0].Content)
	}
	var out []llm.Message
	for _, one := range all {
		role := llm.Role(one.Role)
		if role == "system" {
			role = llm.RoleUser // a run has the instructions of its agent
		}
		out = append(out, llm.Message{Role: role, Parts: []llm.Part{llm.Text{Text: one.Content}}})
	}
	return jsonOf(out)
}

// allowed is the matcher of an object whose values are each one of a list.
func allowed(lists map[string][]json.RawMessage) map[string]any {
	out := map[string]any{}
	for name, values := range lists {
		if name != "" && name[0] == '$' {
			name = "$" + name
		}
		out[name] = oneOf(values)
	}
	return out
}

// oneOf is the matcher of a list of allowed values, in which "" says that the value may be absent.
func oneOf(values []json.RawMessage) any {
	var matchers []any
	isOptional := false
	for _, v := range values {
		if string(v) == `""` {
			isOptional = true
			continue
		}
		matchers = append(matchers, looseValue(v))
	}
	switch {
	case len(matchers) == 0:
		return map[string]any{"$absent": true}
	case isOptional:
		return map[string]any{"$optional": map[string]any{"$one_of": matchers}}
	}
	return map[string]any{"$one_of": matchers}
}

// looseValue is the matcher of an allowed value: texts are compared loosely, and the values of an
// object are lists of allowed values again.
func looseValue(value json.RawMessage) any {
	var text string
	var list []json.RawMessage
	var lists map[string][]json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(value, &text) == nil && string(value) != "null":
		return map[string]any{"$loose": text}
	case json.Unmarshal(value, &list) == nil && list != nil:
		out := []any{}
		for _, v := range list {
			out = append(out, looseValue(v))
		}
		return out
	case json.Unmarshal(value, &lists) == nil && lists != nil:
		return allowed(lists)
	case json.Unmarshal(value, &object) == nil && object != nil:
		return json.RawMessage(literal(value))
	}
	return value
}
