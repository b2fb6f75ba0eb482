package team

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/llm"
)

// NoticeHandoff is the code of the notice when another agent takes the conversation over. Its Data
// is {"from","to","note"}.
const NoticeHandoff = "handoff"

// TransferPrefix and the name of an agent are the name of the tool that hands over to it.
const TransferPrefix = "transfer_to_"

// HandoffOptions configure Handoff. The zero value is ready to use.
type HandoffOptions struct {
	// WithoutCalls hides the calls and results before a handoff from the next agent. It sees the
	// texts of people and agents, and the note of the handoff.
	WithoutCalls bool
}

// Handoff returns an agent that can give the conversation to another agent, which answers from then
// on, also in later turns of the same conversation. Every agent has a tool transfer_to_NAME for
// each other agent, with a note for it. The last handoff in the transcript decides who answers, so
// a resumed or replayed run continues with the same agent.
//
// Each agent has its own model, instructions, settings and tools. It cannot call the tools of
// others. Its middleware applies to its own requests and calls. Name, Limits, Output, Parallel,
// Executor and Artifacts of first apply to all: the run has one budget. Tools with the same name
// must have the same schema and effect. Reasoning before a handoff is not sent to the next model,
// which could not verify it. o may be nil.
func Handoff(first *pawl.Agent, o *HandoffOptions, others ...Worker) (*pawl.Agent, error) {
	if err := checked(first, others); err != nil {
		return nil, err
	}
	l := &line{opts: *cmp.Or(o, new(HandoffOptions)), owners: map[string][]string{}}
	for _, w := range append([]Worker{{Agent: first}}, others...) {
		m, err := newMember(w)
		if err != nil {
			return nil, err
		}
		if len(l.members) > 0 && m.name == nameOf(first) {
			return nil, fmt.Errorf("handoff: the name %s is taken; rename one of the two agents", m.name)
		}
		// The run has one Output, and any member may give its answer.
		if w.Agent.Output != nil && !bytes.Equal(w.Agent.Output, first.Output) {
			return nil, fmt.Errorf("handoff to %s: it has an Output of its own; set the same Output in %s", m.name, nameOf(first))
		}
		l.members = append(l.members, m)
	}

	// What differs between members moves into the line, which acts for the member that answers.
	// What applies to the run stays.
	a := *first
	a.Name = nameOf(first)
	a.Instructions = ""
	a.Settings = llm.Settings{}
	a.Model = l
	a.Tools = []pawl.Toolset{l}
	a.Middleware = []pawl.Middleware{{Tool: l.owned}}
	for _, m := range l.members {
		ofMember := func(ctx context.Context, _ llm.ToolCall) bool { return l.caller(ctx) == m.name }
		for _, mw := range m.Agent.Middleware {
			a.Middleware = append(a.Middleware, mw.For(ofMember))
		}
	}
	return &a, nil
}

// member is an agent with its model inside its middleware.
type member struct {
	Worker
	name  string
	model llm.Model
}

func newMember(w Worker) (m member, err error) {
	m = member{Worker: w, name: nameOf(w.Agent)}
	m.model, _ = new(pawl.Engine).InnerModel(w.Agent)
	if m.model == nil {
		return m, fmt.Errorf("handoff: the Model of %s, or of its middleware, is nil or wraps nil; set a model", m.name)
	}
	return m, nil
}

// line is the model and the toolset of agents that hand over to each other. It is safe for
// concurrent use.
type line struct {
	members []member
	opts    HandoffOptions

	mu     sync.Mutex
	owners map[string][]string // the members that may call a tool
}

var (
	_ llm.Model        = (*line)(nil)
	_ llm.Pricer       = (*line)(nil)
	_ llm.OutputHolder = (*line)(nil)
	_ pawl.Toolset     = (*line)(nil)
)

// handoff is a call of transfer_to_NAME that succeeded.
type handoff struct {
	to, from member
	result   int    // the index of the message with its result; 0 means that there was no handoff
	call     string // its ID
	note     string
}

// last returns the last handoff of a conversation. Of several in one reply, the first counts.
func (l *line) last(msgs []llm.Message) handoff {
	h := handoff{to: l.members[0]}
	for i := 1; i < len(msgs); i++ {
		if msgs[i].Role != llm.RoleTool {
			continue
		}
		for _, c := range msgs[i-1].Calls() {
			// A refused or failed transfer changes nothing: the member that called it reads why,
			// and continues.
			to := slices.IndexFunc(l.members, func(m member) bool { return TransferPrefix+m.name == c.Name })
			if to < 0 || !succeeded(c, msgs[i]) {
				continue
			}
			var in transfer
			_ = json.Unmarshal(c.Args, &in) // the call was valid; without a note there is none
			h = handoff{to: l.members[to], from: h.to, result: i, call: c.ID, note: in.Note}
			break
		}
	}
	return h
}

// succeeded reports whether results have a result of c that is no error.
func succeeded(c llm.ToolCall, results llm.Message) bool {
	return slices.ContainsFunc(results.Parts, func(p llm.Part) bool {
		r, ok := p.(llm.ToolResult)
		return ok && r.CallID == c.ID && !r.IsError
	})
}

type memberKey struct{}

// caller returns the name of the member that made the call of ctx.
func (l *line) caller(ctx context.Context) string {
	if name, ok := ctx.Value(memberKey{}).(string); ok {
		return name
	}
	if v := pawl.InvocationFrom(ctx); v != nil {
		msgs := v.Messages()
		if len(msgs) == 0 { // of a call that another process executes
			msgs = conversation.Of(ctx)
		}
		return l.last(msgs).to.name
	}
	return l.members[0].name
}

// owned refuses calls of tools that another member has.
func (l *line) owned(next pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		name := l.caller(ctx)
		if may, _ := l.mayCall(ctx, name, call.Name); !may {
			return llm.ToolResult{}, pawl.BlockError(fmt.Sprintf("%s has no tool %s. Hand over to an agent that has it.",
				name, call.Name))
		}
		return next(context.WithValue(ctx, memberKey{}, name), call)
	}
}

// mayCall reports whether a member may call a tool. Tools of the run itself have no owner.
func (l *line) mayCall(ctx context.Context, name, tool string) (bool, error) {
	l.mu.Lock()
	owners, known := l.owners[tool]
	l.mu.Unlock()
	if !known { // perhaps another process has listed the tools
		if _, err := l.Tools(ctx); err != nil {
			return false, err
		}
		l.mu.Lock()
		owners = l.owners[tool]
		l.mu.Unlock()
	}
	return owners == nil || slices.Contains(owners, name), nil
}

// transfer is the input of transfer_to_NAME.
type transfer struct {
	Note string `json:"note,omitzero" jsonschema:"what the next agent should know"`
}

// Tools returns the tools of all members, and the tools transfer_to_NAME.
func (l *line) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	c := collection{owners: map[string][]string{}, versions: map[string]map[string]*pawl.Tool{}}
	for _, m := range l.members {
		tools, err := pawl.Toolsets(m.Agent.Tools).Tools(ctx)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", m.name, err)
		}
		for _, t := range tools {
			if err := c.add(m.name, t); err != nil {
				return nil, err
			}
		}
	}
	// Once all versions are known: a tool that was added first may have another version at a later
	// member.
	for i, t := range c.all {
		c.all[i] = l.byCaller(t, c.owners[t.Name], c.versions[t.Name])
	}

	for _, m := range l.members {
		about := "Gives the conversation to the agent " + m.name + ", which answers from then on. " + m.about()
		t := pawl.Func(TransferPrefix+m.name, about, l.transferTo(m))
		t.Effect = pawl.EffectPure
		c.all = append(c.all, t)
		for _, o := range l.members {
			if o.name != m.name {
				c.owners[t.Name] = append(c.owners[t.Name], o.name)
			}
		}
	}

	// Toolsets may change between requests, so the owners are the owners of the newest list.
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners = c.owners
	return c.all, nil
}

// collection are the tools of all members.
type collection struct {
	all      []*pawl.Tool
	owners   map[string][]string              // the members that have a tool, by its name
	versions map[string]map[string]*pawl.Tool // by name of the tool and of the member
}

// add adds the tool t of a member.
func (c *collection) add(member string, t *pawl.Tool) error {
	if strings.HasPrefix(t.Name, TransferPrefix) {
		return fmt.Errorf("agent %s: the tool name %s is taken by handoffs; rename the tool", member, t.Name)
	}

	i := slices.IndexFunc(c.all, func(o *pawl.Tool) bool { return o.Name == t.Name })
	switch {
	case i < 0:
		c.all = append(c.all, t)
		c.versions[t.Name] = map[string]*pawl.Tool{}
	// The run has one description for a name. Versions may only differ in what they do.
	case c.all[i] != t && !alike(c.all[i], t):
		return fmt.Errorf("agents %s and %s have different tools named %s; rename one, or put a Prefix around its toolset",
			c.owners[t.Name][0], member, t.Name)
	}
	c.owners[t.Name] = append(c.owners[t.Name], member)
	c.versions[t.Name][member] = t
	return nil
}

// byCaller returns t, or if the owners have several versions of it a tool that runs the version of
// its caller.
func (l *line) byCaller(t *pawl.Tool, owners []string, versions map[string]*pawl.Tool) *pawl.Tool {
	differs := func(member string) bool { return versions[member] != t }
	if t.Run == nil || !slices.ContainsFunc(owners, differs) {
		return t
	}
	shared := t.Clone()
	shared.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		return cmp.Or(versions[l.caller(ctx)], t).Run(ctx, call)
	}
	return shared
}

// alike reports whether one specification describes both tools.
func alike(a, b *pawl.Tool) bool {
	return bytes.Equal(a.Spec().Input, b.Spec().Input) && a.Effect == b.Effect && a.Passive == b.Passive
}

func (l *line) transferTo(m member) func(context.Context, transfer) (string, error) {
	return func(ctx context.Context, in transfer) (string, error) {
		if v := pawl.InvocationFrom(ctx); v != nil && isSecondTransfer(v) {
			return "", errors.New("a reply may hand over once; the first handoff counts")
		}
		text := "The conversation is with " + m.name + " now."
		if in.Note != "" {
			text += " Note: " + in.Note
		}
		return text, nil
	}
}

// isSecondTransfer reports whether the reply with the call of v hands over before it.
func isSecondTransfer(v *pawl.Invocation) bool {
	msgs := v.Messages()
	if len(msgs) == 0 {
		return false
	}
	for _, c := range msgs[len(msgs)-1].Calls() {
		switch {
		case c.ID == v.Call.ID:
			return false
		case strings.HasPrefix(c.Name, TransferPrefix):
			return true
		}
	}
	return false
}

// MaxCost asks the model of the member that answers.
func (l *line) MaxCost(req *llm.Request) (float64, bool) {
	h := l.last(req.Messages)
	if p, ok := llm.As[llm.Pricer](h.to.model); ok {
		return p.MaxCost(l.request(req, h, nil))
	}
	return 0, false
}

// HoldsOutput asks the model of the member that answers.
func (l *line) HoldsOutput(req *llm.Request) bool {
	m, ok := llm.As[llm.OutputHolder](l.last(req.Messages).to.model)
	return ok && m.HoldsOutput(req)
}

// Check returns the faults of the models.
func (l *line) Check() (err error) {
	for _, m := range l.members {
		if c, ok := llm.As[llm.Checker](m.model); ok {
			err = errors.Join(err, c.Check())
		}
	}
	return err
}

// Stream asks the model of the member that answers, with its instructions, settings and tools.
func (l *line) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		h := l.last(req.Messages)
		var tools []*llm.ToolSpec
		for _, t := range req.Tools {
			may, err := l.mayCall(ctx, h.to.name, t.Name)
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			if may {
				tools = append(tools, t)
			}
		}
		if h.result > 0 && h.result == len(req.Messages)-1 {
			// texts always have a JSON form
			data, _ := json.Marshal(map[string]string{"from": h.from.name, "to": h.to.name, "note": h.note})
			n := &llm.Notice{Code: NoticeHandoff, Text: h.to.name + " answers from now on", Data: data}
			if !yield(llm.Delta{Notice: n}, nil) {
				return
			}
		}
		for d, err := range h.to.model.Stream(ctx, l.request(req, h, tools)) {
			if !yield(d, err) {
				return
			}
		}
	}
}

// request returns req as the member that answers sends it.
func (l *line) request(req *llm.Request, h handoff, tools []*llm.ToolSpec) *llm.Request {
	r := *req
	r.Tools = tools
	r.Settings = h.to.Agent.Settings
	// A choice that names a tool of another member would be an error of the provider.
	if r.Choice.Check(tools) != nil {
		r.Choice = llm.ToolChoice{}
	}

	r.Messages = make([]llm.Message, 0, len(req.Messages)+1)
	if text := h.to.Agent.Instructions; text != "" {
		r.Messages = append(r.Messages, llm.System(text))
	}
	for i, m := range req.Messages {
		// The turn is an index into the messages, which instructions and removed messages move.
		if i == req.Turn {
			r.Turn = len(r.Messages)
		}
		if i <= h.result && h.result > 0 {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { return l.hidden(p, h.call) })
			if len(m.Parts) == 0 {
				continue
			}
		}
		r.Messages = append(r.Messages, m)
	}
	return &r
}

// hidden reports whether a part before a handoff is not for the next agent. The call of the handoff
// is.
func (l *line) hidden(p llm.Part, call string) bool {
	switch p := p.(type) {
	case llm.Reasoning:
		return true
	case llm.ToolCall:
		return l.opts.WithoutCalls && p.ID != call
	case llm.ToolResult:
		return l.opts.WithoutCalls && p.CallID != call
	}
	return false
}
