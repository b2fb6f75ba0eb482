package pawl

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/plantext"
)

// planKey names the value of a run that is its strategic plan: a JSON object, see team.PlanKey.
const planKey = "strategic_plan"

// planned returns the agent's instructions with the plan that the run has been given; a run inside a call has that of the run around it.
func (r *run) planned() (string, error) {
	plan, ok := r.res.Values[planKey]
	if !ok {
		switch {
		case r.inside != nil:
			plan, ok = r.inside.plan()
		case r.branch != nil:
			plan, ok = r.branch.Plan, r.branch.Plan != nil
		}
		if ok {
			r.res.Values = merged(r.res.Values, Values{planKey: plan})
		}
	}
	if !ok {
		return r.agent.Instructions, nil
	}
	block, err := plantext.Block(plan)
	if err != nil {
		return "", fmt.Errorf("value %q: %w", planKey, err)
	}
	if r.agent.Instructions == "" {
		return block, nil
	}
	return strings.TrimRight(r.agent.Instructions, "\n") + "\n\n" + block, nil
}

// plan returns the plan that runs made inside the call are shown.
func (v *Invocation) plan() (json.RawMessage, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.set[planKey]; ok {
		return b, true
	}
	b, ok := v.work.task.Values[planKey]
	return b, ok
}
