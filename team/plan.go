package team

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
)

// Plan is how a lead wants a task done.
type Plan struct {
	// Phases are done in order, except for parallel ones.
	Phases []Phase `json:"phases"`
	// Rationale is why the plan is so. It may be empty.
	Rationale string `json:"rationale,omitzero"`
}

// Phase is a part of it, for one worker.
type Phase struct {
	// Name is the title of the phase. Empty means the start of the goals.
	Name string `json:"name,omitzero"`
	// Worker is the name of the worker that does the phase.
	Worker string `json:"worker"`
	// Goals are what the worker is to do.
	Goals string `json:"goals"`
	// Notes are what the worker should know. They may be empty.
	Notes string `json:"notes,omitzero"`
	// Parallel means together with the phase before it, without its results.
	Parallel bool `json:"parallel,omitzero"`
}

const mostPhases = 12

// planForm is the JSON Schema of a Plan for these workers.
func planForm(workers []string, most int) json.RawMessage {
	names, _ := json.Marshal(workers)
	return json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["phases"],`+
		`"properties":{"phases":{"type":"array","minItems":1,"maxItems":%d,"items":`+
		`{"type":"object","additionalProperties":false,"required":["worker","goals"],`+
		`"properties":{"name":{"type":"string","description":"Two or three words."},`+
		`"worker":{"type":"string","enum":%s},`+
		`"goals":{"type":"string","minLength":1,`+
		`"description":"What the worker is to do in this phase, and what it is to give back."},`+
		`"notes":{"type":"string"},`+
		`"parallel":{"type":"boolean",`+
		`"description":"Together with the phase before it, whose results it then does not have."}}}},`+
		`"rationale":{"type":"string"}}}`, most, names))
}

// ParsePlan reads a plan for workers of these names, written by a person or a model. An unknown
// worker, no phases and no goals are errors; the error of an unknown worker has the nearest name. A
// list of steps is a list of phases; other fields are ignored.
func ParsePlan(text []byte, workers ...string) (Plan, error) {
	var p struct {
		Plan
		Steps []Phase `json:"steps"`
		Inner *Plan   `json:"plan"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	// Models often write steps, or put the plan into a field of its own.
	if p.Phases == nil {
		p.Phases = p.Steps
	}
	if p.Phases == nil && p.Inner != nil {
		p.Plan = *p.Inner
	}
	return p.Plan, p.Plan.check(workers)
}

func (p Plan) check(workers []string) error {
	if len(p.Phases) == 0 {
		return errors.New("plan: there are no phases in it")
	}
	if len(p.Phases) > mostPhases {
		return fmt.Errorf("plan: it has %d phases; %d are the most", len(p.Phases), mostPhases)
	}
	for i, ph := range p.Phases {
		if err := known(ph.Worker, workers); err != nil {
			return fmt.Errorf("plan: phase %d: %w", i+1, err)
		}
		if strings.TrimSpace(ph.Goals) == "" {
			return fmt.Errorf("plan: phase %d: it has no goals", i+1)
		}
	}
	return nil
}

// known reports an unknown worker.
func known(name string, workers []string) error {
	if slices.Contains(workers, name) {
		return nil
	}
	return fmt.Errorf("there is no worker %q; %s", name, nearest.Hint(name, workers))
}

// groups returns the phases that run together, in order, as indexes of the plan.
func (p Plan) groups() [][]int {
	var out [][]int
	for i, ph := range p.Phases {
		if i > 0 && ph.Parallel {
			out[len(out)-1] = append(out[len(out)-1], i)
			continue
		}
		out = append(out, []int{i})
	}
	return out
}

// title is what a phase is called.
func (p Phase) title() string { return cmp.Or(p.Name, text.Middle(p.Goals, 60)) }

// PlanKey names the value of a run that is a plan: a JSON object, with what is to be done in its
// member "phases" or "steps". A run that begins with it has it in its system text, after the
// instructions, under the heading STRATEGIC PLAN, and so have the runs that agents make inside its
// calls (Agent.Tool). A run takes one from the Result that it is resumed from:
//
//	agent.Resume(ctx, &pawl.Result{Values: pawl.Values{PlanKey: plan}}, llm.User(task))
//
// A value that is no JSON object is an error before anything is sent.
const PlanKey = "strategic_plan"
