package policy

// flow.go: Flow: decides about calls by the origin of their arguments.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/conversation"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
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
	tools map[*pawl.Tool]*conduct

	recent  sync.Mutex // taken before the lock of an index, and mu after it
	indexes []*index   // the one used last is first
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
func (f *Flow) conduct(t *pawl.Tool) *conduct {
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
		c = newConduct(t, strings.Fields(labels))
		if f.tools == nil {
			f.tools = map[*pawl.Tool]*conduct{}
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
	if c.free {
		return allow, nil
	}
	args := c.arguments(call.Args)
	if len(args) == 0 {
		return allow, nil
	}
	ix := f.index(ctx, v)
	if ix == nil {
		return pawl.Approval{Verdict: pawl.VerdictDeny, Reason: "the reply with this call is not complete"}, nil
	}
	why := ix.judge(c, args)
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

// index returns the index of the conversation of v. nil means that the reply will not be complete.
func (f *Flow) index(ctx context.Context, v *pawl.Invocation) *index {
	// The slice of the tools is made for a run, and identifies the run while an index holds it.
	tools, key := v.Tools(), ownKey(v.Key)
	at := step{&tools[0], key[:max(0, strings.LastIndexByte(string(key), '/'))]}
	outer, _ := ctx.Value(outerKey{}).(*index)
	inner := !topLevel(key)
	if !inner {
		outer = nil
	}
	f.recent.Lock()
	defer f.recent.Unlock()
	for i, ix := range f.indexes {
		if ix.at == at && ix.outer == outer {
			copy(f.indexes[1:i+1], f.indexes[:i])
			f.indexes[0] = ix
			return ix
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
	var ix *index
	for i, known := range f.indexes {
		if known.outer == outer && known.inner == inner && known.begins(msgs) {
			ix = known
			f.indexes = slices.Delete(f.indexes, i, i+1)
			break
		}
	}
	if ix == nil {
		ix = newIndex(outer, inner, f.Words)
		ix.tainted = ix.tainted || len(msgs) == 0 // the conversation is not known
	}
	ix.read(msgs, func(name string) *conduct {
		if i := slices.IndexFunc(tools, func(t *pawl.Tool) bool { return t.Name == name }); i >= 0 {
			return f.conduct(tools[i])
		}
		return newConduct(&pawl.Tool{Name: name, Effect: pawl.EffectRead}, nil)
	})
	ix.at = at
	f.indexes = slices.Insert(f.indexes, 0, ix)
	total := 0
	for i, x := range f.indexes {
		total += int(x.bytes.Load())
		if i > 0 && (i >= maxIndexes || total > maxIndexBytes) {
			f.indexes = slices.Delete(f.indexes, i, len(f.indexes))
			break
		}
	}
	return ix
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

// argument is a value of a call with its role.
type argument struct {
	name  string // of the nearest member around it
	role  role
	value string // as written, and a number as its digits
	plain string
}

// maxArguments bounds the values of one call that are looked at.
const maxArguments = 256

// arguments returns the values of args that the policy looks at, and one more than maxArguments if
// there are too many.
func (c *conduct) arguments(args json.RawMessage) (all []argument) {
	if c.quiet && !bytes.Contains(args, []byte("/")) && !bytes.Contains(args, []byte("ww.")) {
		return nil
	}
	all = make([]argument, 0, 4)
	w := walker{give: func(name, value string, _ bool) {
		plain := plainText(value)
		if r := c.role(name, plain); r != roleNone {
			all = append(all, argument{name, r, value, plain})
		}
	}}
	cur := jsonscan.New(args)
	w.walk(&cur, "")
	if !c.act && slices.ContainsFunc(all, func(a argument) bool { return a.role == roleAddress }) {
		all = append(all, c.sinks(args)...)
	}
	if w.n > maxArguments && len(all) > 0 && len(all) <= maxArguments {
		all = append(all, make([]argument, maxArguments+1-len(all))...)
	}
	return all
}

// sinks returns what a read sends to its address: names and values within its arguments, except the
// address, choices and numbers.
func (c *conduct) sinks(args json.RawMessage) (all []argument) {
	top := ""
	add := func(v string) { all = append(all, argument{top, roleSink, v, plainText(v)}) }
	w := walker{key: add, give: func(name, v string, _ bool) {
		if name != top || c.role(name, plainText(v)) != roleAddress {
			add(v)
		}
	}}
	cur := jsonscan.New(args)
	cur.Object()
	for key, ok := cur.Key(); ok; key, ok = cur.Key() {
		top = string(key)
		if c.closed[top] {
			cur.Skip()
			continue
		}
		w.walk(&cur, top)
	}
	if w.n > maxArguments {
		all = append(all, make([]argument, maxArguments)...)
	}
	return all
}

// judge returns why a call needs a question; empty means that it does not.
func (ix *index) judge(c *conduct, args []argument) string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !ix.tainted {
		return ""
	}
	var why []string
	report := func(a argument, text string) {
		if q := fmt.Sprintf("%s %q %s", a.name, clipped(a.value), text); !slices.Contains(why, q) {
			why = append(why, q)
		}
	}
	known := false // a party of the call is the user's
	for _, a := range args {
		switch v := a.plain; a.role {
		case roleParty, roleObject, roleSecret:
			if !ix.endorsed(c, a.role, v) {
				report(a, ix.where(v))
			} else if a.role == roleParty {
				known = known || ix.said(v) || ix.soleInDocument(c, v)
			}
		case roleAddress:
			if !ix.reachable(v) {
				report(a, "is put together: neither the user nor a result has this address")
			} else if _, query, ok := strings.Cut(v, "?"); ok && !ix.complete(v) {
				if plain, err := url.QueryUnescape(query); err == nil {
					query = plain
				}
				ix.passesOn(a, plainText(query), true, report)
			}
		case roleTarget:
			if ix.onlyProse(v) {
				report(a, ix.where(v))
			}
		case roleContent:
			ix.leaks(a, report)
		case roleSink:
			ix.leaks(a, report)
			ix.passesOn(a, a.plain, false, report)
		}
	}
	for _, a := range args {
		if a.role == roleAmount && !known && !ix.endorsedAmount(c, a.value) {
			report(a, ix.where(a.plain))
		}
	}
	if len(args) > maxArguments {
		why = append(why, fmt.Sprintf("the call has more than %d values", maxArguments))
	}
	if len(why) > 3 {
		why = append(why[:3], fmt.Sprintf("and %d more", len(why)-3))
	}
	return strings.Join(why, "; ")
}

// passesOn reports a word of text, which a read sends to its address, that a result has or that may
// be encoded, and that the user did not say. local leaves out encoded words and the words of
// results that came from an address.
func (ix *index) passesOn(a argument, text string, local bool, report func(argument, string)) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !wordRune(r) })
	asked := 0
	for _, v := range append([]string{text}, words...) {
		if len(v) < 4 || wireWords[v] || ix.said(v) {
			continue
		}
		asked++
		if asked > maxSame {
			report(a, "has too many words that the user did not say")
			return
		}
		s := ix.see(v)
		if s.local || !local && (s.fresh || opaque(v)) ||
			ix.anySpot(v, func(s *spot) bool { return !local || !s.web }) {
			report(a, fmt.Sprintf("sends %q, which %s", clipped(v), ix.where(v)))
			return
		}
	}
}

// clipped returns the start of a value, for a question.
func clipped(s string) string {
	if r := []rune(s[:min(len(s), 256)]); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
