package team

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// manager is the model of a team: code that derives the next calls from the transcript alone. It
// may be used concurrently.
type manager struct {
	decide func(t *turn) move
}

var (
	_ llm.Model        = (*manager)(nil)
	_ llm.Pricer       = (*manager)(nil)
	_ llm.OutputHolder = (*manager)(nil)
)

// MaxCost returns 0: who is asked is asked by calls, at their own price.
func (*manager) MaxCost(*llm.Request) (float64, bool) { return 0, true }

// HoldsOutput returns true: the writer of the answer is held to the output.
func (*manager) HoldsOutput(*llm.Request) bool { return true }

// move is the next step of a team.
type move struct {
	text   string
	calls  []llm.ToolCall
	notice *llm.Notice
	err    error
}

// Stream decides, and yields that as a reply.
func (m *manager) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		t := turnOf(req)
		next := m.decide(t)
		if next.notice != nil && !yield(llm.Delta{Notice: next.notice}, nil) {
			return
		}
		if next.err != nil {
			yield(llm.Delta{}, next.err)
			return
		}
		// The run has reached a limit and asks for an answer: it would not execute the calls.
		if len(next.calls) > 0 && req.Choice.Mode == llm.ToolNone {
			next = move{text: t.unfinished()}
		}

		i := 0
		finish := llm.FinishReasonStop
		if next.text != "" {
			if !yield(llm.Delta{Part: llm.Text{Text: next.text}, Done: true}, nil) {
				return
			}
			i++
		}
		for k, c := range next.calls {
			c.ID = fmt.Sprintf("team_%d_%d", t.replies, k)
			finish = llm.FinishReasonToolCalls
			if !yield(llm.Delta{Index: i + k, Part: c, Done: true}, nil) {
				return
			}
		}
		// The team decides in this process: no request was sent, so that the usual count of one is
		// taken back.
		yield(llm.Delta{Finish: finish, Model: "team", Usage: new(llm.Usage), Requests: -1}, nil)
	}
}

// turn is the current task and the work done for it.
type turn struct {
	task    string // what the user said since the last answer
	earlier string // the end of the conversation before; empty means none
	steps   []step
	replies int // in the whole conversation
	output  json.RawMessage
	tools   []*llm.ToolSpec
}

// step is a reply of the manager, with what its calls came to.
type step struct {
	calls   []llm.ToolCall
	results []llm.ToolResult // one a call
}

func (s step) failed() bool {
	return slices.ContainsFunc(s.results, func(r llm.ToolResult) bool { return r.IsError })
}

// turnOf finds the current task of a conversation. It begins after the last answer.
func turnOf(req *llm.Request) *turn {
	t := &turn{output: req.Output, tools: req.Tools}
	begin := 0
	for i, m := range req.Messages {
		if m.Role != llm.RoleAssistant {
			continue
		}
		// The number of replies makes the ids of calls unique in the conversation, and equal in a
		// replay.
		t.replies++
		if !m.HasCalls() {
			begin = i + 1
		}
	}
	t.earlier = digest(req.Messages[:begin])

	var said []string
	for i := begin; i < len(req.Messages); i++ {
		m := req.Messages[i]
		switch m.Role {
		case llm.RoleUser:
			said = append(said, m.Text())
		case llm.RoleAssistant:
			t.steps = append(t.steps, stepAt(req.Messages, i))
		}
	}
	t.task = strings.Join(said, "\n\n")
	return t
}

// stepAt returns the calls of the reply msgs[i], with the results in the message after it.
func stepAt(msgs []llm.Message, i int) step {
	s := step{calls: msgs[i].Calls()}
	s.results = make([]llm.ToolResult, len(s.calls))
	// The calls of the last reply have no results yet.
	if i+1 == len(msgs) {
		return s
	}
	for _, p := range msgs[i+1].Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			continue
		}
		for k := range s.calls {
			if s.calls[k].ID == r.CallID {
				s.results[k] = r
			}
		}
	}
	return s
}

// Bounds on the text about one thing in another's task, in characters.
const (
	mostOfEarlier = 4000
	mostOfResult  = 8000
)

// digest returns the end of a conversation as text, without its calls.
func digest(msgs []llm.Message) string {
	var parts []string
	room := mostOfEarlier
	for i := len(msgs) - 1; i >= 0 && room > 0; i-- {
		m := msgs[i]
		said := strings.TrimSpace(m.Text())
		spoken := m.Role == llm.RoleUser || m.Role == llm.RoleAssistant && !m.HasCalls()
		if said == "" || !spoken {
			continue
		}
		said = text.Middle(said, room)
		room -= len(said)
		parts = append([]string{string(m.Role) + ": " + said}, parts...)
	}
	return strings.Join(parts, "\n")
}

// ask returns the call that gives a worker or the lead a task.
func ask(name, task string) llm.ToolCall {
	return with(name, struct {
		Task string `json:"task"`
	}{task})
}

// with is a call with arguments that always have a JSON form.
func with(name string, args any) llm.ToolCall {
	b, err := jsonform.Marshal(args)
	if err != nil {
		panic(err) // of texts and of JSON that was read
	}
	return llm.ToolCall{Name: name, Args: b}
}

// unfinished is the answer where no call may be made any more.
func (t *turn) unfinished() string {
	var b strings.Builder
	b.WriteString("The team had to stop before its work was done.")
	for _, s := range t.steps {
		for i, c := range s.calls {
			if s.results[i].CallID != "" {
				fmt.Fprintf(&b, "\n\n%s: %s", c.Name, text.Middle(s.results[i].Text(), mostOfResult))
			}
		}
	}
	return b.String()
}

// whole returns the task with the conversation before it.
func (t *turn) whole() string {
	if t.earlier == "" {
		return t.task
	}
	return t.task + "\n\nThe conversation before that:\n" + t.earlier
}

// around returns the parts of middleware that are about calls.
func around(all []pawl.Middleware) []pawl.Middleware {
	out := slices.Clone(all)
	for i := range out {
		out[i].Model = nil
	}
	return out
}

// models returns the parts of middleware that wrap models.
func models(all []pawl.Middleware) []pawl.Middleware {
	var out []pawl.Middleware
	for _, m := range all {
		if m.Model != nil {
			out = append(out, pawl.Middleware{Model: m.Model, Rank: m.Rank})
		}
	}
	return out
}

// led returns the agent of a team: the lead, with code for a model. rounds bounds the steps of the
// code. The tools are first, each worker as a tool, and sum_up.
func led(lead *pawl.Agent, rounds int, decide func(*turn) move, first *pawl.Tool, workers []Worker,
	as func(Worker) *pawl.Tool) *pawl.Agent {
	tools := []pawl.Toolset{first}
	for _, w := range workers {
		tools = append(tools, as(w))
	}
	tools = append(tools, summing(lead))
	a := *lead
	a.Name = nameOf(lead)

	// These are for the lead's own requests.
	a.Instructions = ""
	a.Choice = llm.ToolChoice{}
	a.Settings = llm.Settings{}

	a.Model = &manager{decide}
	a.Tools = tools
	a.Middleware = around(lead.Middleware)
	a.Limits.CallsPerStep = 0
	a.Limits.LoopThreshold = -1
	a.Limits.Rounds = cmp.Or(a.Limits.Rounds, rounds)
	return &a
}

// asked is the lead as one who is asked by a call: with its own model, held to a form.
func asked(lead *pawl.Agent, prompt string, form json.RawMessage) *pawl.Agent {
	a := &pawl.Agent{
		Name:       nameOf(lead),
		Model:      lead.Model,
		Settings:   lead.Settings,
		Output:     form,
		Middleware: models(lead.Middleware),
		Parallel:   lead.Parallel,
		Executor:   lead.Executor,
	}
	a.Instructions = strings.TrimLeft(strings.TrimRight(lead.Instructions, "\n")+"\n\n"+prompt, "\n")
	a.Limits.Corrections = lead.Limits.Corrections
	return a
}

// asking is a as a tool of that name.
func asking(a *pawl.Agent, name, description string) *pawl.Tool {
	t := a.Tool(description).Clone()
	t.Name = name
	return t
}

// firstLine is the first line of what a failed call came to.
func firstLine(r llm.ToolResult) string {
	line, _, _ := strings.Cut(strings.TrimSpace(r.Text()), "\n")
	return text.Middle(line, 500)
}
