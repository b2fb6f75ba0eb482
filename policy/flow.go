package policy

// flow.go: Flow: decides about calls by the origin of their arguments.

import (
	"context"
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
	// Mode is on, ask, log or off. Empty means on.
	//
	//   - on: a call with an argument of untrusted origin waits for a decision. It is denied with
	//     the reason if it cannot wait: with Unattended, and in memory within another call.
	//   - ask: such a call always gets a question.
	//   - log: such a call runs, and a progress event of the call has the reason.
	//   - off: no call is looked at.
	Mode string
	// Labels correct the defaults, by tool or pattern: trusted (only the user, or people that the
	// user trusts, write what the tool returns), private (its results must not leave), final (its
	// calls cannot be undone), out (its calls send their arguments to others). One entry may have
	// several, with spaces between them. The author of a tool or of an agent writes labels, never a
	// server.
	Labels map[string]string
	// Words are words that count as the user's, such as the instructions of the agent.
	Words string
	// Unattended means that no person answers questions, so that mode on denies.
	Unattended bool
	ValidFor   time.Duration // from an approval to the start of the call; 0 means no limit

	mu    sync.Mutex
	tools map[*pawl.Tool]*origin.Conduct

	recent   sync.Mutex // taken before the lock of an index, and mu after it
	readings []*reading // the one used last is first
}

var _ pawl.Approver = (&Flow{}).Approve

var flowModes = []string{"", "on", "ask", "log", "off"}

var flowLabels = []string{"trusted", "private", "final", "out"}

// Middleware returns the middleware that holds an agent to f.
func (f *Flow) Middleware() pawl.Middleware {
	m := pawl.Middleware{Check: f.Check}
	if f.Mode == "off" {
		return m
	}
	m = pawl.Approve(f.Approve)
	m.Check = f.Check
	m.Tool = func(next pawl.ToolFunc) pawl.ToolFunc {
		return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
			if v := pawl.InvocationFrom(ctx); v != nil && v.Tool().Agent() != nil {
				if ix := f.index(ctx, v); ix != nil {
					ctx = context.WithValue(ctx, outerKey{}, ix)
				}
			}
			return next(ctx, call)
		}
	}
	return m
}

// outerKey finds the index of the conversation around a nested agent.
type outerKey struct{}

// Check reports an unknown mode or label, and a label for none of tools.
func (f *Flow) Check(tools []*pawl.Tool) error {
	if !slices.Contains(flowModes, f.Mode) {
		return fmt.Errorf("flow: there is no mode %q; there are on, ask, log and off", f.Mode)
	}
	for _, entry := range slices.Sorted(maps.Keys(f.Labels)) {
		if err := check("flow: labels", []string{entry}, tools); err != nil {
			return err
		}
		for _, l := range strings.Fields(f.Labels[entry]) {
			if !slices.Contains(flowLabels, l) {
				return fmt.Errorf("flow: %s: there is no label %q; there are %s", entry, l, strings.Join(flowLabels, ", "))
			}
		}
	}
	return nil
}

// Bounds of the state of a Flow, over all runs. A conversation that falls out is read again.
const (
	maxIndexes    = 32
	maxIndexBytes = 64 << 20
)

// conduct returns what the policy knows of t.
func (f *Flow) conduct(t *pawl.Tool) *origin.Conduct {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.tools[t]
	if c == nil {
		if len(f.tools) > 4096 { // tools that are made anew for each run
			clear(f.tools)
		}
		var labels string
		for _, entry := range slices.Sorted(maps.Keys(f.Labels)) {
			if matches(entry, t) {
				labels += " " + f.Labels[entry]
			}
		}
		c = origin.NewConduct(t, strings.Fields(labels))
		if f.tools == nil {
			f.tools = map[*pawl.Tool]*origin.Conduct{}
		}
		f.tools[t] = c
	}
	return c
}

// Approve is the policy itself, for a policy of your own that asks it first. It allows a call
// outside of a run, which has no conversation.
func (f *Flow) Approve(ctx context.Context, call llm.ToolCall, tool *pawl.Tool) (pawl.Approval, error) {
	allow := pawl.Approval{Verdict: pawl.VerdictAllow}
	v := pawl.InvocationFrom(ctx)
	if v == nil || f.Mode == "off" {
		return allow, nil
	}
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
	why := ix.Judge(c, args)
	if why == "" {
		return allow, nil
	}
	switch {
	case f.Mode == "log":
		v.Emit("flow: would ask before "+tool.Name+": "+why, nil)
		return allow, nil
	case f.Mode != "ask" && (f.Unattended || !topLevel(v.Key) && !v.CanWait()):
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: why + ". This needs the user's agreement, and nothing can be asked here. " +
			"Do not repeat the call; report to the user what it would do."}, nil
	}
	return pawl.Approval{Verdict: pawl.VerdictAsk, Reason: why, ValidFor: f.ValidFor}, nil
}

// reading is a conversation that a Flow has read.
type reading struct {
	*origin.Index
	outer *origin.Index // of the conversation around a nested agent; nil means none
	inner bool          // the task of the agent comes from another agent
	at    step          // the last step that was read
}

// index returns the index of the conversation of v. nil means that the reply will not be complete.
func (f *Flow) index(ctx context.Context, v *pawl.Invocation) *origin.Index {
	// The slice of the tools is made for a run, and identifies the run while a reading holds it.
	tools, key := v.Tools(), ownKey(v.Key)
	at := step{&tools[0], key[:max(0, strings.LastIndexByte(string(key), '/'))]}
	outer, _ := ctx.Value(outerKey{}).(*origin.Index)
	inner := !topLevel(key)
	if !inner {
		outer = nil
	}
	f.recent.Lock()
	defer f.recent.Unlock()
	for i, c := range f.readings {
		if c.at == at && c.outer == outer {
			copy(f.readings[1:i+1], f.readings[:i])
			f.readings[0] = c
			return c.Index
		}
	}
	f.recent.Unlock()
	msgs := v.Messages() // it may wait
	f.recent.Lock()
	if msgs == nil {
		return nil
	}
	if len(msgs) == 0 { // of a call that another process executes
		msgs = conversation.Of(ctx)
		at = step{}
	}
	var c *reading
	for i, known := range f.readings {
		if known.outer == outer && known.inner == inner && known.Begins(msgs) {
			c = known
			f.readings = slices.Delete(f.readings, i, i+1)
			break
		}
	}
	if c == nil {
		c = &reading{Index: origin.NewIndex(outer, inner, f.Words), outer: outer, inner: inner}
		if len(msgs) == 0 {
			c.Distrust()
		}
	}
	c.Read(msgs, func(name string) *origin.Conduct {
		if i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == name }); i >= 0 {
			return f.conduct(tools[i])
		}
		return origin.NewConduct(&pawl.Tool{Name: name, Effect: pawl.EffectRead}, nil)
	})
	c.at = at
	f.readings = slices.Insert(f.readings, 0, c)
	total := 0
	for i, x := range f.readings {
		total += x.Bytes()
		if i > 0 && (i >= maxIndexes || total > maxIndexBytes) {
			f.readings = slices.Delete(f.readings, i, len(f.readings))
			break
		}
	}
	return c.Index
}

// step is a step of a run.
type step struct {
	tools **pawl.Tool // the first of the run
	key   llm.Key
}

// ownKey returns the key of the call of an agent that k belongs to: k without the numbers of calls
// nested in it.
func ownKey(k llm.Key) llm.Key {
	if topLevel(k) {
		return k
	}
	parts := strings.Split(string(k), "/")
	for len(parts) > 3 {
		last := parts[len(parts)-1]
		if last[:min(1, len(last))] != "s" || strings.Trim(last[1:], "0123456789") != "" {
			break
		}
		parts = parts[:len(parts)-1]
	}
	return llm.Key(strings.Join(parts, "/"))
}

// topLevel reports whether k is the key of a call of the outermost reply.
func topLevel(k llm.Key) bool { return strings.Count(string(k), "/") == 2 }
