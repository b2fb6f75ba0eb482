package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/runerr"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Task is the content of a schedule: calls, executed one after another, and a prompt. If it has
// both, the prompt is sent with the results of the calls.
type Task struct {
	Calls  []Call `json:"calls,omitzero"`  // executed first
	Prompt string `json:"prompt,omitzero"` // sent to the agent; "" means that it is not asked
	// Label says who wrote Prompt. nil means a stranger. The results of Calls have labels of their
	// own.
	Label *llm.Label `json:"label,omitzero"`
	// Deliver has calls that are made afterwards, also if the task failed. {report} in a text of
	// their Args stands for the result, or for the error.
	Deliver []Call `json:"deliver,omitzero"`
}

// Call is a call of a tool.
type Call struct {
	Tool string          `json:"tool"`          // the name of the tool
	Args json.RawMessage `json:"args,omitzero"` // a JSON object
}

// Work executes Tasks: calls with Tools, prompts with Agent. A task that needs a nil field fails.
type Work struct {
	Tools pawl.Toolset // nil means that tasks have no calls
	Agent pawl.Runner  // nil means that tasks have no prompt, unless Run is set
	// Traces stores the agent's runs, in the scope of their schedules. Nil means that they are not
	// stored.
	Traces store.Traces

	// Run creates the run of an occurrence, for programs that store runs themselves. id is the same
	// for the same time of the same schedule. Run takes precedence over Agent and Traces. Nil means
	// that Agent and Traces are used.
	Run func(id string) pawl.Runner
}

// ErrNoAgent is the error of a task with a prompt if Work has no agent.
var ErrNoAgent = errors.New("there is no agent to ask here")

// Do implements Runner.Do. A failed call ends the task.
func (w *Work) Do(ctx context.Context, d store.Due, at time.Time) (Done, error) {
	var t Task
	if err := json.Unmarshal(d.Schedule.Task, &t); err != nil {
		return Done{}, fmt.Errorf("task: %w", err)
	}
	// The ID is the same for the same time of the same schedule, and so is the key that a tool may
	// pass on.
	id := fmt.Sprintf("%s-%d", d.Schedule.ID, at.Unix())
	done, err := w.task(ctx, d.Scope, id, t)
	report := done.Text
	if err != nil {
		report = "failed: " + err.Error()
	}
	if _, bad := w.calls(ctx, id+"-deliver", t.Deliver, report); bad != nil {
		err = errors.Join(err, fmt.Errorf("the report was not delivered: %w", bad))
	}
	return done, err
}

// made is what the calls of a task have returned.
type made struct {
	text  string
	label *llm.Label // the join of the results; nil means a stranger, and no calls
}

// calls makes calls one after another, up to the first that fails, and returns their results.
func (w *Work) calls(ctx context.Context, id string, calls []Call, report string) (all made, err error) {
	quoted, err := json.Marshal(report)
	var results []llm.ToolResult
	for i, c := range calls {
		if w.Tools == nil {
			return made{}, errors.New("there are no tools to call here")
		}
		// The report stands within a JSON string, so that its quotes and line breaks are escaped.
		args := json.RawMessage(strings.ReplaceAll(string(c.Args), "{report}", string(quoted[1:len(quoted)-1])))
		x := pawl.Toolsets{w.Tools}.Execute(ctx, llm.ToolCall{ID: fmt.Sprintf("%s-%d", id, i), Name: c.Tool, Args: args})
		all.text += fmt.Sprintf("%s: %s\n", c.Tool, x.Result.Text())
		if x.Outcome != pawl.OutcomeOK {
			return made{}, errors.New(all.text)
		}
		results = append(results, x.Result)
	}
	if l, ok := llm.Results(results...).Label(); ok {
		all.label = l.Shared()
	}
	return all, err
}

// task executes a task without its delivery.
func (w *Work) task(ctx context.Context, scope store.Scope, id string, t Task) (Done, error) {
	done, err := w.calls(ctx, id, t.Calls, "{report}")
	if err != nil || t.Prompt == "" {
		return Done{Text: done.text}, err
	}
	if w.Agent == nil && w.Run == nil {
		return Done{}, ErrNoAgent
	}

	// The results are a part of their own: they are not the words of the author of the prompt.
	msg := llm.User(t.Prompt).WithLabel(t.Label)
	if done.text != "" {
		text := "\n\nThis was done for it:\n" + done.text
		msg.Parts = append(msg.Parts, llm.Text{Text: text, Label: done.label})
	}
	return w.ask(ctx, scope, id, msg)
}

// ask sends the prompt to the agent and stores the run after each step.
func (w *Work) ask(ctx context.Context, scope store.Scope, id string, prompt llm.Message) (done Done, err error) {
	agent := w.Agent
	t := &trace{store: w.Traces, scope: scope, run: store.Run{ID: id, Task: prompt.Text(), Started: time.Now()}}
	if w.Run != nil {
		agent = w.Run(id)
		// A durable run has its own records.
		t.store = nil
		done.Run = id
	}
	stored := context.WithoutCancel(ctx) // an interrupted run is stored as well
	if err := t.flush(stored); err != nil {
		return done, err
	}
	if t.store != nil {
		done.Run = id
	}

	for e, failed := range agent.Stream(ctx, prompt) {
		if failed != nil {
			err = failed
			break
		}
		t.add(e)
		// After each step, so that a run that is interrupted shows how far it came.
		if e.Kind == pawl.EventStep {
			if err := t.flush(stored); err != nil {
				return done, err
			}
		}
	}
	err = runerr.Cause(err)
	res := t.endTrace()
	unstored := t.flush(stored)
	if err == nil {
		err = unstored
	}

	switch {
	case err != nil:
		return done, err
	case res == nil:
		return done, errors.New("the run ended without a result")
	case res.Stop.Class() != pawl.ClassAnswered:
		return done, fmt.Errorf("the run ended without an answer: %s", res.Cause)
	}
	done.Text = res.Text()
	return done, nil
}

// trace is a run of an agent that is stored with its events.
type trace struct {
	store  store.Traces // nil means that nothing is stored
	scope  store.Scope
	run    store.Run
	events []pawl.Event // not stored yet
	result *pawl.Result // nil until the run has ended
}

// add notes an event of the run, or of a run within it.
func (t *trace) add(e pawl.Event) {
	if t.store != nil {
		t.events = append(t.events, e)
	}
	switch {
	case e.Kind == pawl.EventRunStarted && t.run.Agent == "":
		t.run.Agent = e.Agent
	case e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/"):
		t.result = e.Result
	}
}

// endTrace notes the end of the run, and returns its result. nil means that it has none.
func (t *trace) endTrace() *pawl.Result {
	t.run.Ended = time.Now()
	if t.result != nil {
		t.run.Stop = t.result.Stop
		t.run.Cause = t.result.Cause
		t.run.Spent = t.result.Spent
	}
	return t.result
}

// flush stores the run and its new events.
func (t *trace) flush(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	err := t.store.PutRun(ctx, t.scope, t.run)
	if err == nil && len(t.events) > 0 {
		err = t.store.AppendEvents(ctx, t.scope, t.run.ID, t.events...)
		t.events = nil
	}
	if err != nil {
		return fmt.Errorf("the run cannot be stored: %w", err)
	}
	return nil
}
