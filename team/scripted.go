package team

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

//go:embed script.md
var scriptPrompt string

// Step is a step of a script.
type Step struct {
	// Name is the title of the step. Empty means the tool, or the start of the notes.
	Name string `json:"name,omitzero"`
	// Worker is the name of the worker that does the step.
	Worker string `json:"worker"`
	// Mode is direct or guided. Empty means direct if there is a tool.
	Mode string `json:"execution_mode,omitzero"`
	// Tool is the tool that a direct step calls, or that a guided step should use.
	Tool string `json:"tool_name,omitzero"`
	// Args are the arguments of a direct step. Nil means {}.
	Args json.RawMessage `json:"args,omitzero"`
	// Notes say what a guided step is to do.
	Notes string `json:"notes,omitzero"`
}

func (s Step) direct() bool { return s.Mode == "direct" || s.Mode == "" && s.Tool != "" }

// title is what a step is called.
func (s Step) title() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.direct():
		return s.Tool
	}
	return text.Middle(s.Notes, 60)
}

const mostSteps = 50

func scriptForm(workers []string) json.RawMessage {
	names, _ := json.Marshal(workers)
	return json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["script"],`+
		`"properties":{"thought":{"type":"string"},"script":{"type":"array","minItems":1,"maxItems":%d,"items":`+
		`{"type":"object","additionalProperties":false,"required":["worker","execution_mode"],`+
		`"properties":{"name":{"type":"string"},"worker":{"type":"string","enum":%s},`+
		`"execution_mode":{"type":"string","enum":["direct","guided"]},`+
		`"tool_name":{"type":"string"},"args":{"type":"object"},"notes":{"type":"string"}}}}}}`, mostSteps, names))
}

// Script returns a team whose lead writes a script of steps, which run one after another. Direct
// steps call a worker's tools under the worker's rules, without its model; guided steps are tasks
// for a worker. The lead sums up. It receives a list of the workers' tools, and its script is
// checked against them; an invalid script is sent back with its faults, twice. With Retry, a failed
// step runs again together with the steps of its segment; with Replan, the lead writes another
// script.
func Script(lead *pawl.Agent, o *Options, workers ...Worker) (*pawl.Agent, error) {
	if err := checked(lead, workers, writeScript, sumUp); err != nil {
		return nil, err
	}
	s := &scripted{opts: o.or(), workers: workers}
	prompt := scriptPrompt
	if s.opts.Prompt != "" {
		prompt = strings.TrimRight(s.opts.Prompt, "\n") + "\n\nYour workers and their tools:\n"
	}
	writer := asking(lead, writeScript, "Writes the script of the team.")
	writer.Output = nil
	writer.Run = s.written(lead, prompt)
	return led(lead, (mostSteps+4)*(1+s.opts.Tries), s.decide, writer, workers, Worker.directed), nil
}

type scripted struct {
	opts    Options
	workers []Worker
}

// written asks the lead for a script, and checks it.
func (s *scripted) written(lead *pawl.Agent, prompt string) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		tools, list, err := s.workerTools(ctx)
		if err != nil {
			return llm.ToolResult{}, err
		}
		r, err := asked(lead, prompt+list, scriptForm(namesOf(s.workers))).Tool("").Run(ctx, call)
		if err != nil || r.IsError {
			return r, err
		}

		steps, err := stepsOf(r)
		if err == nil {
			err = checkSteps(steps, tools)
		}
		if err != nil {
			return unfitScript(err), nil
		}
		return r, nil
	}
}

// workerTools returns the tools of each worker that a script may name, and their descriptions.
func (s *scripted) workerTools(ctx context.Context) (tools map[string][]*pawl.Tool, list string, err error) {
	tools = map[string][]*pawl.Tool{}
	var b strings.Builder
	for _, w := range s.workers {
		all, err := pawl.Toolsets(w.Agent.Tools).Tools(ctx)
		if err != nil {
			return nil, "", fmt.Errorf("tools of %s: %w", w.Agent.Name, err)
		}
		// The prompt shows what a script may name, no more: checkSteps refuses other tools.
		if w.Tools != nil {
			all = slices.DeleteFunc(all, func(t *pawl.Tool) bool { return !slices.Contains(w.Tools, t.Name) })
		}
		tools[w.Agent.Name] = all

		b.WriteString(catalogue([]Worker{w}))
		for _, t := range all {
			fmt.Fprintf(&b, "  - %s: %s Arguments: %s\n", t.Name, t.Description, t.Input)
		}
	}
	return tools, b.String(), nil
}

// checkSteps returns the fault of the first step that cannot be executed.
func checkSteps(steps []Step, tools map[string][]*pawl.Tool) error {
	for i, st := range steps {
		if err := st.check(tools[st.Worker]); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// scriptFault is the Data of a result about a script that cannot be executed.
type scriptFault struct {
	Unfit bool `json:"unfit"`
}

// unfitScript returns the result about a script that cannot be executed.
func unfitScript(err error) llm.ToolResult {
	r := llm.ErrorResult("The script cannot be executed: " + err.Error())
	r.Data, _ = json.Marshal(scriptFault{Unfit: true}) // a bool always marshals
	return r
}

// isUnfit reports whether r is about a script that cannot be executed, and not about a failure of
// its author.
func isUnfit(r llm.ToolResult) bool {
	var fault scriptFault
	return r.IsError && json.Unmarshal(r.Data, &fault) == nil && fault.Unfit
}

func stepsOf(r llm.ToolResult) ([]Step, error) {
	var script struct{ Script []Step }
	if err := json.Unmarshal(r.Data, &script); err != nil {
		return nil, err
	}
	if len(script.Script) == 0 {
		return nil, fmt.Errorf("there are no steps in it")
	}
	return script.Script, nil
}

// check reports what of a step no worker could do.
func (s Step) check(tools []*pawl.Tool) error {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	switch {
	case !s.direct() && strings.TrimSpace(s.Notes) == "":
		return fmt.Errorf("a guided step says in notes what is to be done")
	case !s.direct() || slices.Contains(names, s.Tool):
		return nil
	case s.Tool == "":
		return fmt.Errorf("a direct step names a tool of %s: %s", s.Worker, strings.Join(names, ", "))
	}
	return fmt.Errorf("%s has no tool %q; %s", s.Worker, s.Tool, nearest.Hint(s.Tool, names))
}

// segment is a unit of execution: steps of one worker and one mode.
type segment struct {
	first int
	steps []Step
}

func segmentsOf(steps []Step) (out []segment) {
	for i, s := range steps {
		n := len(out) - 1
		if n >= 0 && out[n].takes(s) {
			out[n].steps = append(out[n].steps, s)
			continue
		}
		out = append(out, segment{i, []Step{s}})
	}
	return out
}

// takes reports whether s may be the next step of g: the same worker does it in the same way.
func (g segment) takes(s Step) bool {
	first := g.steps[0]
	return first.Worker == s.Worker && first.direct() == s.direct()
}

// decide derives the next call from the work so far.
func (s *scripted) decide(t *turn) move {
	// The state is derived from the transcript in each turn, so that a resumed or replayed run
	// continues at the same step.
	var p scriptProgress
	for _, st := range t.steps {
		r := st.results[0]
		name := st.calls[0].Name
		switch {
		case name == writeScript:
			if err := p.addScript(r); err != nil {
				return move{err: err}
			}
		case name == sumUp && r.IsError:
			return move{err: &PhaseError{Text: "no answer: " + firstLine(r)}}
		case name == sumUp:
			return move{text: answerOf(r)}
		case p.next >= len(p.segments):
			return move{err: &PhaseError{Text: "the conversation has work without a script"}}
		default:
			if err := s.addWork(&p, name, r); err != nil {
				return move{err: err}
			}
		}
	}

	gave := p.gave.String()
	switch {
	case p.segments == nil && p.wrong != "":
		return move{calls: []llm.ToolCall{ask(writeScript, t.whole()+"\n\n"+p.wrong)}}
	case p.segments == nil:
		return move{calls: []llm.ToolCall{ask(writeScript, t.whole())}}
	case p.next < len(p.segments):
		return move{calls: []llm.ToolCall{p.segments[p.next].call(t, gave)}}
	}
	return move{calls: []llm.ToolCall{summary(t, gave)}}
}

// mostUnfit bounds the scripts that cannot be executed.
const mostUnfit = 2

// scriptProgress is how far the work of a script has come.
type scriptProgress struct {
	segments []segment
	next     int             // the segment that runs next
	tries    int             // further tries of that segment
	gave     strings.Builder // what the segments so far gave
	scripts  int
	unfit    int
	wrong    string // what is wrong with the last script; empty means nothing
}

// addScript adds the result of writing a script.
func (p *scriptProgress) addScript(r llm.ToolResult) error {
	// The lead is asked again with the faults of its script.
	if isUnfit(r) && p.unfit < mostUnfit {
		p.unfit++
		p.wrong = r.Text()
		return nil
	}
	if r.IsError {
		return &PhaseError{Text: "no script: " + firstLine(r)}
	}
	steps, err := stepsOf(r)
	if err != nil {
		return &PhaseError{Text: "no script: " + err.Error()}
	}

	p.scripts++
	p.segments = segmentsOf(steps)
	p.next = 0
	p.wrong = ""
	return nil
}

// addWork adds what the worker of the next segment returned.
func (s *scripted) addWork(p *scriptProgress, worker string, r llm.ToolResult) error {
	seg := p.segments[p.next]
	p.gave.WriteString(section(seg.title(), worker, r))
	if !r.IsError {
		p.next++
		p.tries = 0
		return nil
	}

	why := &PhaseError{Phase: seg.first + 1, Name: seg.title(), Worker: worker, Text: firstLine(r)}
	switch {
	case s.opts.OnFailure == Retry && p.tries < s.opts.Tries:
		p.tries++
	// The lead must not repeat work that is done, so that it reads what the work gave.
	case s.opts.OnFailure == Replan && p.scripts <= s.opts.Tries:
		p.segments = nil
		p.wrong = "The script before this one failed: " + why.Error() + "\nWhat was done gave:\n" + p.gave.String() +
			"\nWrite another one for what is left to do."
	default:
		return why
	}
	return nil
}

func (g segment) title() string {
	var all []string
	for _, s := range g.steps {
		all = append(all, s.title())
	}
	return text.Middle(strings.Join(all, ", "), 200)
}

// call gives the segment to its worker.
func (g segment) call(t *turn, gave string) llm.ToolCall {
	worker := g.steps[0].Worker
	if g.steps[0].direct() {
		args := workArgs{Task: "Steps: " + g.title()}
		for _, s := range g.steps {
			if s.Args == nil {
				s.Args = json.RawMessage("{}")
			}
			args.Steps = append(args.Steps, directStep{s.Tool, s.Args})
		}
		return with(worker, args)
	}

	var b strings.Builder
	for i, s := range g.steps {
		fmt.Fprintf(&b, "%d. %s", i+1, s.Notes)
		if s.Tool != "" {
			fmt.Fprintf(&b, " (with %s)", s.Tool)
		}
		b.WriteString("\n")
	}
	// A worker has no conversation but this text.
	b.WriteString("\nThis is part of the task: " + t.task)
	if gave != "" {
		b.WriteString("\n\nWhat was done before gave:\n" + gave)
	}
	return with(worker, workArgs{Task: b.String()})
}

type workArgs struct {
	Task  string       `json:"task"`
	Steps []directStep `json:"steps,omitempty"`
}

type directStep struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// directed returns w as a tool that also takes steps: calls of its own tools, which run in its own
// run, under its own rules and without its model.
func (w Worker) directed() *pawl.Tool {
	t := w.tool()
	t.Input = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["task"],"properties":{"task":{"type":"string"},` +
		`"steps":{"type":"array","items":{"type":"object","properties":{"tool":{"type":"string"},"args":{"type":"object"}},"required":["tool","args"]}}}}`)
	t.Output = nil
	t.Run = once(func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var args workArgs
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return llm.ToolResult{}, err // it was checked
		}
		// A copy of the worker, whose model is the list of steps. Its rules, approvals and limits
		// of tools still apply.
		a := *w.Agent
		if len(args.Steps) > 0 {
			a.Model = &steps{args.Steps}
			a.Output = nil
			a.Choice = llm.ToolChoice{}
			a.Middleware = around(a.Middleware)
			a.Limits.Rounds = len(args.Steps) + 1
			a.Limits.LoopThreshold = -1 // one to answer in
		}
		call.Args = ask("", args.Task).Args
		return a.Tool("").Run(ctx, call)
	})
	return t
}

// steps is a model that makes given calls one after another, and stops at the first failure. It may
// be used concurrently.
type steps struct{ all []directStep }

var (
	_ llm.Model  = (*steps)(nil)
	_ llm.Pricer = (*steps)(nil)
)

// MaxCost returns 0: it sends no request.
func (*steps) MaxCost(*llm.Request) (float64, bool) { return 0, true }

// Stream makes the next call.
func (s *steps) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	m := &manager{func(t *turn) move {
		n := len(t.steps)
		// Later steps may depend on this one, and there is no model that could decide about it.
		if n > 0 && t.steps[n-1].failed() {
			return move{err: fmt.Errorf("step %d (%s): %s", n, s.all[n-1].Tool, firstLine(t.steps[n-1].results[0]))}
		}
		if n < len(s.all) {
			return move{calls: []llm.ToolCall{{Name: s.all[n].Tool, Args: s.all[n].Args}}}
		}
		if n == 1 {
			return move{text: t.steps[0].results[0].Text()}
		}
		var b strings.Builder
		for i, st := range t.steps {
			fmt.Fprintf(&b, "%d. %s: %s\n", i+1, s.all[i].Tool, st.results[0].Text())
		}
		return move{text: b.String()}
	}}
	return m.Stream(ctx, req)
}
