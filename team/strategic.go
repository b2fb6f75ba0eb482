package team

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

//go:embed plan.md
var planPrompt string

//go:embed answer.md
var answerPrompt string

// The tools by which a team asks its lead. No worker has their names.
const (
	makePlan    = "make_plan"
	sumUp       = "sum_up"
	chooseOne   = "choose_worker"
	writeScript = "write_script"
)

// NoticePlan is the code of the notice with a plan; its Data is the Plan.
const NoticePlan = "strategic_plan"

// OnFailure is the reaction to a failed phase, or a failed step of a script.
type OnFailure int

// What can be done. A team that gives up fails, with a *PhaseError.
const (
	Stop   OnFailure = iota // give up
	Retry                   // do it once more, as often as Tries says, then give up
	Replan                  // ask the lead for another plan, as often as Tries says, then give up
)

// Options tune a team. Nil, and every zero field, stands for the default.
type Options struct {
	// Prompt replaces the lead's instructions for planning, choosing or writing scripts; the
	// workers are listed after it.
	Prompt string

	// OnFailure is what happens when a phase or a step fails. The zero value is Stop.
	OnFailure OnFailure

	// Tries is the number of further tries with Retry and Replan. 0 means 1 with Retry, 2 with
	// Replan.
	Tries int

	// MaxPhases bounds the phases of a plan that the lead makes. 0, and more than 12, mean 12.
	MaxPhases int
}

func (o *Options) or() Options {
	out := *cmp.Or(o, new(Options))
	if out.MaxPhases <= 0 || out.MaxPhases > mostPhases {
		out.MaxPhases = mostPhases
	}
	if out.Tries <= 0 {
		out.Tries = 1
		if out.OnFailure == Replan {
			out.Tries = 2
		}
	}
	return out
}

// prompted is a prompt, with the workers listed after it.
func (o Options) prompted(usual string, workers []Worker) string {
	if o.Prompt != "" {
		usual = strings.TrimRight(o.Prompt, "\n") + "\n\nYour workers:\n"
	}
	return usual + catalogue(workers)
}

// PhaseError is the error of a team that gave up.
type PhaseError struct {
	// Phase counts from 1. 0 means that there was no plan or script.
	Phase int
	// Name is the title of the phase.
	Name string
	// Worker is the name of the worker that failed.
	Worker string
	// Text is what the call came to.
	Text string
}

// Error names the phase that failed, its worker and the reason.
func (e *PhaseError) Error() string {
	if e.Phase == 0 {
		return e.Text
	}
	return fmt.Sprintf("phase %d (%s) of %s: %s", e.Phase, e.Name, e.Worker, e.Text)
}

// Strategic returns a team whose lead makes a plan of phases, whose workers execute them, and whose
// lead sums up. The lead is held to the form of a Plan. A plan with an unknown worker, or without
// phases, is sent back with its faults, Limits.Corrections times. The lead has no tools of its own:
// facts that it needs first are a task for a worker.
//
// A run that begins with a plan (PlanKey) uses it without asking the lead, if it names
// workers of the team; otherwise the plan is an error. The answer to a plan with one phase is its
// worker's, unless the lead has an Output.
func Strategic(lead *pawl.Agent, o *Options, workers ...Worker) (*pawl.Agent, error) {
	if err := checked(lead, workers, makePlan, sumUp); err != nil {
		return nil, err
	}
	s := &strategy{opts: o.or(), names: namesOf(workers)}
	planner := asking(asked(lead, s.opts.prompted(planPrompt, workers), planForm(s.names, s.opts.MaxPhases)),
		makePlan, "Makes the plan of the team.")
	planner.Run = s.adopted(planner.Run)
	rounds := mostPhases*(1+s.opts.Tries)*(1+s.opts.Tries) + 4
	return led(lead, rounds, s.decide, planner, workers, Worker.tool), nil
}

// strategy is how a strategic team decides.
type strategy struct {
	opts  Options
	names []string
}

// adopted checks the lead's plan and makes it the plan of the run. The first plan may come with the
// run.
func (s *strategy) adopted(plan pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if v == nil {
			return llm.ToolResult{}, errors.New("it is called by its team alone")
		}
		if r, ok, err := s.givenPlan(v); ok || err != nil {
			return r, err
		}
		r, err := plan(ctx, call)
		if err != nil || r.IsError {
			return r, err
		}
		// A plan that cannot be executed is a result for the team, which reports it. It must not
		// become the plan of the run.
		p, err := ParsePlan(r.Data, s.names...)
		if err != nil {
			return llm.ErrorResult(err.Error()), nil
		}
		return r, v.Set(PlanKey, p)
	}
}

// givenPlan returns the plan that the run began with. A nested team sees the plan of the outer one,
// which names other workers; it does not use that plan.
func (s *strategy) givenPlan(v *pawl.Invocation) (r llm.ToolResult, ok bool, err error) {
	plans := 0
	for _, m := range v.Messages() {
		for _, c := range m.Calls() {
			if c.Name == makePlan {
				plans++
			}
		}
	}
	var text json.RawMessage
	ok, err = v.Get(PlanKey, &text)
	if !ok || err != nil || plans > 1 {
		return r, false, err
	}
	p, err := ParsePlan(text, s.names...)
	inner := strings.Count(string(v.Key), "/") > 2
	if err != nil {
		return llm.ErrorResult("the given plan cannot be executed: " + err.Error()), !inner, nil
	}
	data, err := json.Marshal(p)
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(data)}}, Data: data}, err == nil, err
}

// progress is how far a plan has come.
type progress struct {
	plan    *Plan
	groups  [][]int
	next    int                    // the group that runs next
	open    []int                  // what of it is still to be done
	results map[int]llm.ToolResult // by phase
	failed  *PhaseError            // why the lead is asked again; nil means that it is not
	retries int
	plans   int
	past    string // what plans that failed gave
	fresh   bool   // the plan was made in the last step
}

func (p *progress) begin(plan *Plan) {
	p.plan = plan
	p.groups = plan.groups()
	p.next = 0
	p.open = p.groups[0]
	p.results = map[int]llm.ToolResult{}
	p.retries = 0
}

// decide replays the work that is done, and returns the next step.
func (s *strategy) decide(t *turn) move {
	// The state is derived from the transcript in each turn, so that a resumed or replayed run
	// continues at the same phase.
	var p progress
	for _, st := range t.steps {
		p.fresh = false
		name := st.calls[0].Name
		switch {
		case name == makePlan && st.failed():
			return move{err: &PhaseError{Text: "no plan: " + firstLine(st.results[0])}}
		case name == makePlan:
			plan, err := ParsePlan(st.results[0].Data, s.names...)
			if err != nil {
				return move{err: &PhaseError{Text: err.Error()}}
			}
			p.plans++
			p.begin(&plan)
			p.failed = nil
			p.fresh = true
		case name == sumUp && st.failed():
			return move{err: &PhaseError{Text: "no answer: " + firstLine(st.results[0])}}
		case name == sumUp:
			return move{text: answerOf(st.results[0])}
		case p.plan == nil:
			return move{err: &PhaseError{Text: "the conversation has work without a plan"}}
		default:
			if err := s.addWork(&p, st); err != nil {
				return move{err: err}
			}
		}
	}
	return s.next(t, &p)
}

// addWork adds the results of the open phases. The error ends the run.
func (s *strategy) addWork(p *progress, st step) error {
	var failed []int
	var why *PhaseError
	for k, i := range p.open[:min(len(p.open), len(st.results))] {
		r := st.results[k]
		p.results[i] = r
		if !r.IsError {
			continue
		}
		failed = append(failed, i)
		if why == nil {
			ph := p.plan.Phases[i]
			why = &PhaseError{Phase: i + 1, Name: ph.title(), Worker: ph.Worker, Text: firstLine(r)}
		}
	}

	switch {
	case why == nil:
		p.retries = 0
		p.next++
		if p.next < len(p.groups) {
			p.open = p.groups[p.next]
		}
	// Only the failed phases of a group are repeated: the work of the others is done.
	case s.opts.OnFailure == Retry && p.retries < s.opts.Tries:
		p.retries++
		p.open = failed
	case s.opts.OnFailure == Replan && p.plans <= s.opts.Tries:
		p.failed = why
		p.past += p.gave(p.done())
	default:
		return why
	}
	return nil
}

func (s *strategy) next(t *turn, p *progress) move {
	var m move
	if p.fresh {
		data, _ := json.Marshal(p.plan)
		m.notice = &llm.Notice{Code: NoticePlan, Text: fmt.Sprintf("a plan of %d phases", len(p.plan.Phases)), Data: data}
	}
	switch {
	case p.plan == nil:
		m.calls = []llm.ToolCall{ask(makePlan, t.whole())}
	case p.failed != nil:
		m.text = fmt.Sprintf("Phase %d failed; another plan is needed.", p.failed.Phase)
		m.calls = []llm.ToolCall{ask(makePlan, t.whole()+"\n\nThe plan before this one failed: "+p.failed.Error()+
			"\nWhat was done gave:\n"+p.past+"\nMake another plan for what is left to do.")}
	case p.next < len(p.groups):
		m.text = s.heading(p)
		for _, i := range p.open {
			m.calls = append(m.calls, ask(p.plan.Phases[i].Worker, s.task(t, p, i)))
		}
	// The result of a single phase is the answer. To sum it up would cost a request and add
	// nothing.
	case len(p.plan.Phases) == 1 && t.output == nil && p.past == "":
		m.text = answerOf(p.results[0])
	default:
		m.calls = []llm.ToolCall{summary(t, p.past+p.gave(p.done()))}
	}
	return m
}

func (s *strategy) heading(p *progress) string {
	var names []string
	for _, i := range p.open {
		names = append(names, fmt.Sprintf("%d (%s)", i+1, p.plan.Phases[i].title()))
	}
	return fmt.Sprintf("%s %s of %d.", text.Plural(len(names), "Phase", "Phases"), strings.Join(names, ", "), len(p.plan.Phases))
}

// task returns the task of phase i: its goals, the task that it belongs to, and the results of the
// phases before it.
func (s *strategy) task(t *turn, p *progress, i int) string {
	ph := p.plan.Phases[i]
	text := ph.Goals
	if ph.Notes != "" {
		text += "\n\n" + ph.Notes
	}
	text += "\n\nThis is part of the task: " + t.task
	before := p.past
	if p.next > 0 {
		before = p.gave(p.groups[p.next-1])
	}
	if before != "" {
		text += "\n\nWhat was done before gave:\n" + before
	}
	return text
}

// done returns the phases that have ended well.
func (p *progress) done() (all []int) {
	for i := range p.plan.Phases {
		if _, ok := p.results[i]; ok {
			all = append(all, i)
		}
	}
	return all
}

// gave returns the results of phases as text.
func (p *progress) gave(phases []int) string {
	var b strings.Builder
	for _, i := range phases {
		ph := p.plan.Phases[i]
		r := p.results[i]
		b.WriteString(section(ph.title(), ph.Worker, r))
	}
	return b.String()
}

// section is what a worker gave, for the lead.
func section(title, worker string, r llm.ToolResult) string {
	failed := ""
	if r.IsError {
		failed = ", failed"
	}
	return fmt.Sprintf("## %s (%s%s)\n%s\n", title, worker, failed, text.Middle(r.Text(), mostOfResult))
}

// answerOf returns the answer of a call: its data, if it was held to a form.
func answerOf(r llm.ToolResult) string {
	if r.Data != nil {
		return string(r.Data)
	}
	return r.Text()
}

// summary is the call that asks the lead for the answer.
func summary(t *turn, gave string) llm.ToolCall {
	return with(sumUp, summaryArgs{"The task: " + t.whole() + "\n\nWhat the workers gave:\n" + gave, t.output})
}

type summaryArgs struct {
	Task   string          `json:"task"`
	Output json.RawMessage `json:"output,omitempty"`
}

// summing is the tool that asks the lead for the answer, in the form that the run wants.
func summing(lead *pawl.Agent) *pawl.Tool {
	t := asking(lead, sumUp, "Answers the task from what the workers gave.")
	t.Input = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["task"],` +
		`"properties":{"task":{"type":"string"},"output":{"type":"object"}}}`)
	t.Output = nil
	t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var args summaryArgs
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return llm.ToolResult{}, err // it was checked
		}
		call.Args = ask("", args.Task).Args
		return asked(lead, answerPrompt, args.Output).Tool("").Run(ctx, call)
	}
	return t
}
