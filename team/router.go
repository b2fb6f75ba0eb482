package team

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

//go:embed route.md
var routePrompt string

// Rule sends a task to a worker by its words. Case does not matter.
type Rule struct {
	// Worker is the name of the worker that gets the task.
	Worker string
	// Include are words of which the task contains one. Empty means any task.
	Include []string
	// Exclude are words of which the task contains none.
	Exclude []string
}

func (r Rule) fits(task string) bool {
	task = strings.ToLower(task)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(task, strings.ToLower(w)) })
	}
	return (len(r.Include) == 0 || has(r.Include)) && !has(r.Exclude)
}

// RouterOptions tune a Router. Nil, and every zero field, stands for the default.
type RouterOptions struct {
	Rules []Rule // tried in order, before the lead is asked

	// Default is the worker of a task for which the lead chose none. Empty means that the answer
	// says so and lists the workers.
	Default string

	// Prompt replaces the lead's instructions for choosing; the workers are listed after it.
	Prompt string
}

// Router returns a team that gives each task to one worker: by the first rule that matches,
// otherwise by the lead's choice. The worker's answer is the team's; a lead with an Output writes
// the answer itself. A lead that chooses an unknown worker is asked again, Limits.Corrections
// times.
func Router(lead *pawl.Agent, o *RouterOptions, workers ...Worker) (*pawl.Agent, error) {
	if err := checked(lead, workers, chooseOne, sumUp); err != nil {
		return nil, err
	}
	r := &router{names: namesOf(workers)}
	r.opts = *cmp.Or(o, new(RouterOptions))
	for i, rule := range r.opts.Rules {
		if err := known(rule.Worker, r.names); err != nil {
			return nil, fmt.Errorf("team %s: rule %d: %w", nameOf(lead), i+1, err)
		}
	}
	if d := r.opts.Default; d != "" {
		if err := known(d, r.names); err != nil {
			return nil, fmt.Errorf("team %s: default: %w", nameOf(lead), err)
		}
	}
	chooser := asked(lead, Options{Prompt: r.opts.Prompt}.prompted(routePrompt, workers), chooseForm(r.names))
	// Four rounds are the longest way: choose, work, sum up, answer.
	return led(lead, 4, r.decide, asking(chooser, chooseOne, "Chooses the worker."), workers, Worker.tool), nil
}

// none is what a lead chooses where no worker fits.
const none = "none"

func chooseForm(names []string) json.RawMessage {
	list, _ := json.Marshal(append(append([]string{}, names...), none))
	return json.RawMessage(`{"type":"object","additionalProperties":false,"required":["worker"],"properties":{` +
		`"worker":{"type":"string","enum":` + string(list) + `},"reason":{"type":"string"}}}`)
}

type router struct {
	opts  RouterOptions
	names []string
}

func (r *router) decide(t *turn) move {
	if len(t.steps) == 0 {
		for _, rule := range r.opts.Rules {
			if rule.fits(t.task) {
				return r.give(t, rule.Worker)
			}
		}
		return move{calls: []llm.ToolCall{ask(chooseOne, t.whole())}}
	}
	last := t.steps[len(t.steps)-1]
	result := last.results[0]
	name := last.calls[0].Name
	switch {
	case name == chooseOne:
	case result.IsError:
		return move{err: &PhaseError{1, "the task", name, firstLine(result)}}
	case name != sumUp && t.output != nil:
		return move{calls: []llm.ToolCall{summary(t, name+": "+text.Middle(result.Text(), mostOfResult))}}
	default:
		return move{text: answerOf(result)}
	}
	// The last step is the choice of the lead. Without a default, the user reads whom to name.
	var chosen struct{ Worker string }
	_ = json.Unmarshal(result.Data, &chosen) // it was held to its form; a failure chose no worker
	if result.IsError || known(chosen.Worker, r.names) != nil {
		chosen.Worker = r.opts.Default
	}
	switch {
	case chosen.Worker != "":
		return r.give(t, chosen.Worker)
	case result.IsError:
		return move{err: &PhaseError{Text: "no worker was chosen: " + firstLine(result)}}
	}
	return move{text: "No worker fits this task. Say it in other words, or which of them is to do it: " + strings.Join(r.names, ", ") + "."}
}

func (r *router) give(t *turn, worker string) move {
	return move{calls: []llm.ToolCall{ask(worker, t.whole())}}
}
