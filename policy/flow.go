package policy

// flow.go: Flow: decides about calls by the origin of their arguments.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy/internal/origin"
)

// Flow decides about a call by the origin of its arguments, which it computes from the transcript
// alone: the user's words, a trusted tool, a record that the user's words found, an id that a write
// of this run returned, or untrusted text. A resumed run gets the same decisions. docs/flow.md has
// the rules, and what they cannot stop.
//
// Flow looks at calls that may change the world and at reads that send data out. It allows every
// call of a conversation without untrusted results. The tasks of an agent in another agent count as
// untrusted, except for values that the outer conversation endorses; both agents need the same Flow
// for that. The zero value is mode on. A Flow must not be changed or copied after its first use.
type Flow struct {
	// Mode is on, strict, ask, log or off. Empty means on.
	//
	//   - on: a call with an argument of untrusted origin waits for a decision. It is denied with
	//     the reason if it cannot wait: with Unattended, and in memory within another call.
	//   - strict: as on, and records and documents endorse no party: each person and account that
	//     the user does not name waits once for a decision.
	//   - ask: such a call always gets a question.
	//   - log: such a call runs, and a progress event of the call has the reason.
	//   - off: no call is looked at.
	Mode string
	// Labels correct the defaults, by tool or pattern: trusted (only the user, or people that the
	// user trusts, write what the tool returns), private (its results must not leave), sealed
	// (after one of its results, each call that sends waits, once for each destination), final (its
	// calls cannot be undone), out (its calls send their arguments to others). One entry may have
	// several, with spaces between them. The author of a tool or of an agent writes labels, never
	// a server.
	Labels map[string]string
	// Words are words that count as the user's, such as the instructions of the agent.
	Words string
	// Foreign is the part of the instructions that others wrote, such as the AGENTS.md of a
	// repository. It endorses nothing, and calls are looked at from the first one on.
	Foreign string
	// Unattended means that no person answers questions, so that mode on denies.
	Unattended bool
	// ValidFor is the time from an approval to the start of the call. 0 means no limit.
	ValidFor time.Duration

	mu    sync.Mutex // taken after the lock of readings and of an index
	tools map[*pawl.Tool]*origin.Conduct

	readings readings
}

var _ pawl.Approver = (&Flow{}).Approve

var flowModes = []string{"", "on", "strict", "ask", "log", "off"}

var flowLabels = []string{"trusted", "private", "sealed", "final", "out"}

// Middleware returns the middleware that holds an agent to f.
func (f *Flow) Middleware() pawl.Middleware {
	if f == nil {
		missing := errors.New("flow: the *policy.Flow is nil; use &policy.Flow{}")
		return pawl.Middleware{Check: func([]*pawl.Tool) error { return missing }}
	}
	m := pawl.Middleware{Check: f.Check}
	if f.Mode == "off" {
		return m
	}
	m = pawl.Approve(f.Approve)
	m.Check = f.Check
	m.Tool = f.aroundAgents
	return m
}

// aroundAgents passes the index of this conversation to the calls of an agent that is a tool of it.
func (f *Flow) aroundAgents(next pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		v := pawl.InvocationFrom(ctx)
		if v == nil || v.Tool().Agent() == nil {
			return next(ctx, call)
		}
		if ix := f.index(ctx, v); ix != nil {
			ctx = context.WithValue(ctx, outerKey{}, ix)
		}
		return next(ctx, call)
	}
}

// Check reports an unknown mode or label, and a label for none of tools.
func (f *Flow) Check(tools []*pawl.Tool) error {
	if !slices.Contains(flowModes, f.Mode) {
		return fmt.Errorf("flow: there is no mode %q; there are on, strict, ask, log and off", f.Mode)
	}
	for _, entry := range slices.Sorted(maps.Keys(f.Labels)) {
		if err := checkEntries("flow: labels", []string{entry}, tools); err != nil {
			return err
		}
		for _, l := range strings.Fields(f.Labels[entry]) {
			if !slices.Contains(flowLabels, l) {
				return fmt.Errorf("flow: %s: there is no label %q; there are %s",
					entry, l, strings.Join(flowLabels, ", "))
			}
		}
	}
	return nil
}

// maxTools bounds the tools that a Flow remembers. Tools may be made anew for each run.
const maxTools = 4096

// conduct returns what the policy knows of t.
func (f *Flow) conduct(t *pawl.Tool) *origin.Conduct {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.tools[t]; c != nil {
		return c
	}

	// Toolsets may make new tools for each run, which would never be forgotten.
	if len(f.tools) > maxTools {
		clear(f.tools)
	}
	if f.tools == nil {
		f.tools = map[*pawl.Tool]*origin.Conduct{}
	}
	c := origin.NewConduct(t, f.labels(t))
	f.tools[t] = c
	return c
}

// labels returns what Labels say of t.
func (f *Flow) labels(t *pawl.Tool) (labels []string) {
	for _, entry := range slices.Sorted(maps.Keys(f.Labels)) {
		if matches(entry, t) {
			labels = append(labels, strings.Fields(f.Labels[entry])...)
		}
	}
	return labels
}

// Approve is the policy itself, for a policy of your own that asks it first. It allows a call
// outside of a run, which has no conversation.
func (f *Flow) Approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	allow := pawl.Approval{Verdict: pawl.VerdictAllow}
	v := pawl.InvocationFrom(ctx)
	if v == nil || f.Mode == "off" {
		return allow, nil
	}

	// Most calls have nothing to judge, so that no conversation is read for them.
	c := f.conduct(tool)
	if c.Exempt() {
		return allow, nil
	}
	args := c.Arguments(call.Args)
	if len(args) == 0 {
		return allow, nil
	}

	ix := f.index(ctx, v)
	if ix == nil {
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "the reply with this call is not complete"}, nil
	}
	j := ix.Judge(c, args, f.program(v))
	why := j.Text()
	if why == "" {
		allow.Derivations = j.Grounds
		return allow, nil
	}
	if f.Mode == "log" {
		v.Emit("flow: would ask before "+tool.Name+": "+why, nil)
		return allow, nil
	}

	// A call within another call can wait only if an engine stores it.
	canAsk := !f.Unattended && (topLevel(v.Key) || v.CanWait())
	if f.Mode == "ask" || canAsk {
		return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: why, Doubts: j.Doubts, ValidFor: f.ValidFor}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: why + ". This needs the user's agreement, " +
		"and nothing can be asked here. Do not repeat the call; report to the user what it would do."}, nil
}

// program returns what the program around the call of v has read.
func (f *Flow) program(v *pawl.Invocation) origin.Program {
	if ownKey(v.Key) == v.Key {
		return origin.Program{}
	}
	var read llm.Label
	if l := v.Label(); l != nil {
		read = *l
	}
	return origin.NewProgram(read, f.conducts(v))
}

// index returns the index of the conversation of v. nil means that the reply will not be complete.
func (f *Flow) index(ctx context.Context, v *pawl.Invocation) *origin.Index {
	c := callerOf(ctx, v)

	// The first call of a step reads the conversation for all of them.
	if ix := f.readings.ofStep(c); ix != nil {
		return ix
	}

	msgs := v.Messages() // it may wait for the rest of the reply, so that no lock is held
	if msgs == nil {
		return nil
	}
	if len(msgs) == 0 { // of a call that another process executes
		msgs = conversation.Of(ctx)
		c.at = step{}
	}
	return f.readings.read(c, msgs, f.newIndex, f.conducts(v))
}

// newIndex returns the index of a conversation of c without messages.
func (f *Flow) newIndex(c caller) *origin.Index {
	ix := origin.NewIndex(c.outer, c.inner, f.Words)
	if f.Mode == "strict" {
		ix.BeStrict()
	}
	if f.Foreign != "" {
		ix.AddForeign("the instructions that others wrote", f.Foreign)
	}
	return ix
}

// conducts returns the conduct of a tool of v by its name.
func (f *Flow) conducts(v *pawl.Invocation) func(name string) *origin.Conduct {
	tools := v.Tools()
	return func(name string) *origin.Conduct { return f.conductOf(name, tools) }
}

// conductOf returns the conduct of the tool with this name. A tool that is gone only reads.
func (f *Flow) conductOf(name string, tools []*pawl.Tool) *origin.Conduct {
	i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == name })
	if i < 0 { // it may belong to an agent in this agent, so that its labels count
		t := &pawl.Tool{Name: name, Effect: pawl.EffectRead}
		return origin.NewConduct(t, f.labels(t))
	}
	return f.conduct(tools[i])
}
