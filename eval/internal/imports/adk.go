package imports

import (
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/suite"
)

// adk.go: eval sets of Google's Agent Development Kit, in both spellings of names.

type adkSet struct {
	Cases []adkCase `json:"eval_cases"`
}

type adkCase struct {
	ID    string `json:"eval_id"`
	Turns []struct {
		User  adkContent `json:"user_content"`
		Final adkContent `json:"final_response"`
		Data  struct {
			Uses []struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			} `json:"tool_uses"`
		} `json:"intermediate_data"`
	} `json:"conversation"`
	Session struct {
		State json.RawMessage `json:"state"`
	} `json:"session_input"`
}

type adkContent struct {
	Parts []struct {
		Text string `json:"text"`
	} `json:"parts"`
}

func (c *adkContent) text() string {
	var all []string
	for _, p := range c.Parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "")
}

// adkNames are the names in camel case, as the other spelling has them.
var adkNames = map[string]string{
	"evalCases":        "eval_cases",
	"evalId":           "eval_id",
	"userContent":      "user_content",
	"finalResponse":    "final_response",
	"intermediateData": "intermediate_data",
	"toolUses":         "tool_uses",
	"sessionInput":     "session_input",
}

// snake returns a value with the names of the other spelling. Arguments and states keep theirs.
func snake(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			if known := adkNames[name]; known != "" {
				name = known
			}
			if name != "args" && name != "state" {
				one = snake(one)
			}
			out[name] = one
		}
		return out
	case []any:
		for i := range v {
			v[i] = snake(v[i])
		}
	}
	return v
}

func (m *Import) adk(text []byte) error {
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		return err
	}
	var set adkSet
	if err := json.Unmarshal(jsonOf(snake(any)), &set); err != nil {
		return err
	}
	for i := range set.Cases {
		m.adkCase(&set.Cases[i])
	}
	return nil
}

// adkCase adds a case. Its calls are compared as ADK does without other criteria: the same calls in
// the same order, and no others.
func (m *Import) adkCase(r *adkCase) {
	c := &suite.Case{ID: idOf(r.ID)}
	if len(r.Turns) == 0 {
		m.leaveOut(r.ID, "it has no conversation")
		return
	}
	var reasons []string
	var said []chat
	calls := []check.Call{}
	for _, turn := range r.Turns {
		said = append(said, chat{"user", turn.User.text()})
		for _, use := range turn.Data.Uses {
			tool := toolOf(use.Name)
			calls = append(calls, check.Call{Tool: tool, Args: literal(use.Args)})
			m.declare(c, suite.Function{Name: tool}, suite.Fake{Args: literal(use.Args), Result: done().Result})
		}
	}
	c.Input = inputOf(said)
	last := &r.Turns[len(r.Turns)-1]

	if len(calls) > 0 {
		c.Checks = append(c.Checks, expects(calls, "exact", "forbid"))
	} else {
		reasons = append(reasons, "no calls are expected, and the similarity of answers (ROUGE) does not map")
	}
	if want := last.Final.text(); want != "" {
		c.Checks = append(c.Checks, check.Definition{Answer: &check.Answer{Equals: want}, Observe: true})
		m.because(r.ID, "observed: the similarity of answers (ROUGE); whether they are equal is measured")
	}
	if len(r.Turns) > 1 {
		reasons = append(reasons, "a case has one turn; all messages of the user are its input")
	}
	if state := string(r.Session.State); state != "" && state != "null" && state != "{}" {
		reasons = append(reasons, "the state of its session")
	}
	if len(calls) > 0 && !m.own {
		m.because(r.ID, "the declarations and results of its tools are not in the file: they answer done")
	}
	m.add(c, reasons...)
}
