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
	Name   string `json:"name,omitzero"`
	Worker string `json:"worker"`

	// direct or guided; empty means direct if there is a tool
	Mode string `json:"execution_mode,omitzero"`

	Tool  string          `json:"tool_name,omitzero"`
	Args  json.RawMessage `json:"args,omitzero"`
	Notes string          `json:"notes,omitzero"` // what a guided step is to do
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
	return json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["script"],"properties":{"thought":{"type":"string"},"script":{"type":"array","minItems":1,"maxItems":%d,"items":`+
		`{"type":"object","additionalProperties":false,"required":["worker","execution_mode"],"properties":{"name":{"type":"string"},"worker":{"type":"string","enum":%s},"execution_mode":{"type":"string","enum":["direct","guided"]},`+
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
		tools := map[string][]*pawl.Tool{}
		var list strings.Builder
		for _, w := range s.workers {
			all, err := pawl.Toolsets(w.Agent.Tools).Tools(ctx)
			if err != nil {
				return llm.ToolResult{}, fmt.Errorf("tools of %s: %w", w.Agent.Name, err)
			}
			if w.Tools != nil {
				all = slices.DeleteFunc(all, func(t *pawl.Tool) bool { return !slices.Contains(w.Tools, t.Name) })
			}
			tools[w.Agent.Name] = all
			list.WriteString(catalogue([]Worker{w}))
			for _, t := range all {
				fmt.Fprintf(&list, "  - %s: %s Arguments: %s\n", t.Name, t.Description, t.Input)
			}
		}
		r, err := asked(lead, prompt+list.String(), scriptForm(namesOf(s.workers))).Tool("").Run(ctx, call)
		if err != nil || r.IsError {
			return r, err
		}
		steps, err := stepsOf(r)
		for i, st := range steps {
			if err == nil {
				if err = st.check(tools[st.Worker]); err != nil {
					err = fmt.Errorf("step %d: %w", i+1, err)
				}
			}
		}
		if err != nil {
			return llm.ErrorResult(unfitScript + err.Error()), nil
		}
		return r, nil
	}
}

const unfitScript = "The script cannot be executed: "

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
		if n := len(out) - 1; n >= 0 && out[n].steps[0].Worker == s.Worker && out[n].steps[0].direct() == s.direct() {
			out[n].steps = append(out[n].steps, s)
			continue
		}
		out = append(out, segment{i, []Step{s}})
	}
	return out
}

// decide replays the work that is done, and returns the next step.
func (s *scripted) decide(t *turn) move {
	var segments []segment
	var gave strings.Builder
	scripts := 0
	unfit := 0
	tries := 0
	next := 0
	wrong := ""
	for _, st := range t.steps {
		r := st.results[0]
		name := st.calls[0].Name
		switch {
		case name == writeScript && r.IsError && strings.HasPrefix(r.Text(), unfitScript) && unfit < 2:
			unfit++
			wrong = r.Text()
		case name == writeScript && r.IsError:
			return move{err: &PhaseError{Text: "no script: " + firstLine(r)}}
		case name == writeScript:
			steps, err := stepsOf(r)
			if err != nil {
				return move{err: &PhaseError{Text: "no script: " + err.Error()}}
			}
			scripts++
			segments = segmentsOf(steps)
			next = 0
			wrong = ""
		case name == sumUp && r.IsError:
			return move{err: &PhaseError{Text: "no answer: " + firstLine(r)}}
		case name == sumUp:
			return move{text: answerOf(r)}
		case next >= len(segments):
			return move{err: &PhaseError{Text: "the conversation has work without a script"}}
		default:
			seg := segments[next]
			gave.WriteString(section(seg.title(), name, r))
			if !r.IsError {
				next++
				tries = 0
				continue
			}
			why := &PhaseError{seg.first + 1, seg.title(), name, firstLine(r)}
			switch {
			case s.opts.OnFailure == Retry && tries < s.opts.Tries:
				tries++
			case s.opts.OnFailure == Replan && scripts <= s.opts.Tries:
				segments, wrong = nil, "The script before this one failed: "+why.Error()+"\nWhat was done gave:\n"+gave.String()+"\nWrite another one for what is left to do."
			default:
				return move{err: why}
			}
		}
	}
	switch {
	case segments == nil && wrong != "":
		return move{calls: []llm.ToolCall{ask(writeScript, t.whole()+"\n\n"+wrong)}}
	case segments == nil:
		return move{calls: []llm.ToolCall{ask(writeScript, t.whole())}}
	case next < len(segments):
		return move{calls: []llm.ToolCall{segments[next].call(t, gave.String())}}
	}
	return move{calls: []llm.ToolCall{summary(t, gave.String())}}
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
	args := workArgs{}
	if g.steps[0].direct() {
		args.Task = "Steps: " + g.title()
		for _, s := range g.steps {
			if s.Args == nil {
				s.Args = json.RawMessage("{}")
			}
			args.Steps = append(args.Steps, directStep{s.Tool, s.Args})
		}
		return with(g.steps[0].Worker, args)
	}
	var b strings.Builder
	for i, s := range g.steps {
		fmt.Fprintf(&b, "%d. %s", i+1, s.Notes)
		if s.Tool != "" {
			fmt.Fprintf(&b, " (with %s)", s.Tool)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThis is part of the task: " + t.task)
	if gave != "" {
		b.WriteString("\n\nWhat was done before gave:\n" + gave)
	}
	args.Task = b.String()
	return with(g.steps[0].Worker, args)
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
		a := *w.Agent
		if len(args.Steps) > 0 {
			a.Model, a.Output, a.Choice, a.Middleware = &steps{args.Steps}, nil, llm.ToolChoice{}, around(a.Middleware)
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
