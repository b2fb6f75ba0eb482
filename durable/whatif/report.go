package whatif

// report.go: Run, what a replay found, and how two courses of a run are compared.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Verdict says how a replay compares with the stored run.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "same"   // equal calls, questions, answer and end
	Differ Verdict = "differ" // Run.Changes has what differs
	// The replay left the record and stopped before a known difference: see Run.Stopped.
	Unknown Verdict = "unknown"
)

// What a Change is about, from the gravest to the least.
const (
	ChangedWrite    = "write"    // a call that changes the world
	ChangedQuestion = "question" // a call that waits for an answer
	ChangedStop     = "stop"     // why the run stopped
	ChangedCall     = "call"     // a call without an effect
	ChangedAnswer   = "answer"   // the answer of the run
)

// Run is what the replay of a run found. It is plain data.
type Run struct {
	// ID is the ID of the run.
	ID string `json:"run"`
	// Verdict says how the replay compares with the run.
	Verdict Verdict `json:"verdict"`
	// Left is the key of the first request or call that differs. Empty means none.
	Left llm.Key `json:"left,omitzero"`
	// Cause says what differs there, such as "instructions".
	Cause string `json:"cause,omitzero"`
	// Stopped says why the replay ended before the run would have. Empty means that it did not.
	Stopped string `json:"stopped,omitzero"`
	// Changes has what the run would have done otherwise. A replay that stopped has what is known.
	Changes []ChangeOfRun `json:"changes"`
	// Shadowed has the calls that would have changed the world, and were not executed.
	Shadowed []Shadow `json:"shadowed"`
	// Played is the number of requests with a stored reply.
	Played int `json:"played"`
	// Asked is the number of requests to models.
	Asked int `json:"asked"`
	// Cost of the requests to models, in US dollars.
	Cost float64 `json:"cost"`
	// LiveReads is the number of calls that read the present world.
	LiveReads int `json:"live_reads,omitzero"`
	// Questions has the number of questions to people.
	Questions Count `json:"questions"`
}

// Count is a number in the stored run and in the replay.
type Count struct {
	// Was is the number in the stored run.
	Was int `json:"was"`
	// Is is the number in the replay.
	Is int `json:"is"`
}

// Shadow is a call that was not executed.
type Shadow struct {
	// Key of the call.
	Key llm.Key `json:"key"`
	// Tool is the name of the tool.
	Tool string `json:"tool"`
	// Args are the arguments.
	Args json.RawMessage `json:"args"`
}

// ChangeOfRun is one thing that a run would have done otherwise.
type ChangeOfRun struct {
	// What is one of the constants.
	What string `json:"what"`
	// Key of the call. Empty means the end of the run.
	Key llm.Key `json:"key,omitzero"`
	// Tool is the name of the tool. Empty means no call.
	Tool string `json:"tool,omitzero"`
	// Was has the arguments of the stored call, or the stored value. Nil means none.
	Was json.RawMessage `json:"was,omitzero"`
	// Is has the same of the replay. Nil means none.
	Is json.RawMessage `json:"is,omitzero"`
	// Args names the arguments that differ, if both have the call.
	Args []string `json:"args,omitzero"`
}

// Redacted returns a copy of r without the secrets of hide. A nil hide hides nothing.
func (r *Run) Redacted(hide *redact.Redactor) *Run {
	if hide == nil {
		return r
	}
	out := *r
	out.Cause = hide.String(r.Cause)
	out.Stopped = hide.String(r.Stopped)

	args := func(tool string, args json.RawMessage) json.RawMessage {
		if args == nil {
			return nil
		}
		return hide.Call(llm.ToolCall{Name: tool, Args: args}).Args
	}
	out.Shadowed = slices.Clone(r.Shadowed)
	for i := range out.Shadowed {
		one := &out.Shadowed[i]
		one.Args = args(one.Tool, one.Args)
	}
	out.Changes = slices.Clone(r.Changes)
	for i := range out.Changes {
		one := &out.Changes[i]
		if one.Tool != "" {
			one.Was = args(one.Tool, one.Was)
			one.Is = args(one.Tool, one.Is)
			continue
		}
		one.Was = hide.JSON(one.Was)
		one.Is = hide.JSON(one.Is)
	}
	return &out
}

// report compares the replay with the stored run.
func (s *session) report(id string, res *pawl.Result) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	r.ID = id
	r.Left = s.leftAt
	r.Cause = s.leftBy
	for _, asked := range s.history.Questions {
		r.Questions.Was += len(asked)
	}
	if !s.trial.Change.judges() && s.leftBy == "" {
		r.Questions.Is = r.Questions.Was // stored outcomes ask nothing
	}

	// Where the record ends without a difference, the rest is as it was.
	if errors.Is(s.stopped, errRecordEnds) {
		r.Verdict = Same
		r.finish(nil)
		return &r
	}
	if s.stopped != nil {
		r.Stopped = s.stopped.Error()
	}

	c := &comparison{partial: s.stopped != nil}
	c.compareCalls(s.storedCalls(), s.made)
	if !c.partial {
		c.compareEnds(s, res)
	}
	switch {
	case len(c.changes) > 0:
		r.Verdict = Differ
	case c.partial:
		r.Verdict = Unknown
	default:
		r.Verdict = Same
	}
	r.finish(c.changes)
	return &r
}

// finish sets the lists, which are never nil in JSON.
func (r *Run) finish(changes []ChangeOfRun) {
	r.Changes = append([]ChangeOfRun{}, changes...)
	if r.Shadowed == nil {
		r.Shadowed = []Shadow{}
	}
}

// storedCalls returns the calls of the stored run.
func (s *session) storedCalls() (all []madeCall) {
	for key, o := range s.history.Outcomes {
		all = append(all, s.storedCall(key, o))
	}
	for _, q := range s.history.OpenQuestions() {
		call := q.Waiting.Call
		all = append(all, madeCall{key: q.Waiting.Key, call: call, id: callID(call), waits: true})
	}
	return all
}

// storedCall returns the call at key of the stored run, with its outcome o.
func (s *session) storedCall(key llm.Key, o *record.Outcome) madeCall {
	x := &o.Execution
	return madeCall{
		key:    key,
		call:   x.Call,
		id:     callID(x.Call),
		effect: s.effectOf(key, o),
		ran:    x.Attempts > 0,
	}
}

// effectOf returns the effect that a stored call had.
func (s *session) effectOf(key llm.Key, o *record.Outcome) pawl.Effect {
	if attempts := s.history.Attempts[key]; len(attempts) > 0 {
		return attempts[len(attempts)-1].Effect
	}
	if o.Effect != pawl.EffectUnstated {
		return o.Effect
	}
	if effect, known := s.effects[o.Execution.Call.Name]; known {
		return effect
	}
	return pawl.EffectWrite
}

// comparison collects what differs between two courses of a run.
type comparison struct {
	partial bool // the replay stopped: what it did not come to is no difference
	changes []ChangeOfRun
}

// compareCalls compares the calls that ran, by effect, and the calls that wait.
func (c *comparison) compareCalls(was, is []madeCall) {
	byKey := func(a, b madeCall) int { return journal.CompareKeys(a.key, b.key) }
	slices.SortStableFunc(was, byKey)
	slices.SortStableFunc(is, byKey)
	came := map[llm.Key]string{}
	for _, m := range is {
		came[m.key] = m.id
	}

	for _, kind := range []struct {
		what string
		is   func(madeCall) bool
	}{
		{ChangedWrite, func(m madeCall) bool { return m.ran && changesWorld(m.effect) }},
		{ChangedQuestion, func(m madeCall) bool { return m.waits }},
		{ChangedCall, func(m madeCall) bool {
			return m.ran && !changesWorld(m.effect) && m.effect != pawl.EffectCompose
		}},
	} {
		c.comparePairs(kind.what, filtered(was, kind.is), filtered(is, kind.is), came)
	}
}

// changesWorld reports whether a call with that effect changes the world.
func changesWorld(e pawl.Effect) bool { return e == pawl.EffectWrite || e == pawl.EffectIdempotent }

// filtered returns the calls that is accepts.
func filtered(all []madeCall, is func(madeCall) bool) (out []madeCall) {
	for _, m := range all {
		if is(m) {
			out = append(out, m)
		}
	}
	return out
}

// comparePairs compares two lists of calls. Equal calls belong together, and then calls of one tool
// in their order. came has the keys of the calls that the replay came to.
func (c *comparison) comparePairs(what string, was, is []madeCall, came map[llm.Key]string) {
	was, is = withoutEqual(was, is)
	for _, now := range is {
		change := ChangeOfRun{What: what, Key: now.key, Tool: now.call.Name, Is: form(now.call.Args)}
		i := slices.IndexFunc(was, func(m madeCall) bool { return m.call.Name == now.call.Name })
		if i >= 0 {
			change.Was = form(was[i].call.Args)
			change.Args = differingArgs(change.Was, change.Is)
			was = slices.Delete(was, i, i+1)
		}
		c.changes = append(c.changes, change)
	}
	for _, before := range was {
		if c.partial && came[before.key] != before.id {
			continue
		}
		c.changes = append(c.changes, ChangeOfRun{
			What: what,
			Key:  before.key,
			Tool: before.call.Name,
			Was:  form(before.call.Args),
		})
	}
}

// withoutEqual removes the calls that both lists have.
func withoutEqual(was, is []madeCall) (onlyWas, onlyIs []madeCall) {
	onlyWas = slices.Clone(was)
	for _, now := range is {
		i := slices.IndexFunc(onlyWas, func(m madeCall) bool { return m.id == now.id })
		if i < 0 {
			onlyIs = append(onlyIs, now)
			continue
		}
		onlyWas = slices.Delete(onlyWas, i, i+1)
	}
	return onlyWas, onlyIs
}

// form returns arguments as JSON. Arguments that are none become a string.
func form(args json.RawMessage) json.RawMessage {
	if json.Valid(args) {
		return jsonform.Canonical(args)
	}
	text, _ := json.Marshal(string(args)) // a string has a form
	return text
}

// compareEnds compares why the runs stopped, and their answers.
func (c *comparison) compareEnds(s *session, res *pawl.Result) {
	end := s.history.End
	stop := func(why pawl.StopReason, limit pawl.LimitName) string {
		if limit == "" {
			return string(why)
		}
		return string(why) + ": " + string(limit)
	}
	c.compareText(ChangedStop, stop(end.Stop, end.Limit), stop(res.Stop, res.Limit))

	was := ""
	if end.Answer != nil {
		was = end.Answer.Text
	}
	is := ""
	if res.Answer != nil {
		is = res.Answer.Text
	}
	c.compareText(ChangedAnswer, was, is)
}

// compareText records a difference of two texts.
func (c *comparison) compareText(what, was, is string) {
	if was == is {
		return
	}
	value := func(text string) json.RawMessage {
		if text == "" {
			return nil
		}
		out, _ := json.Marshal(text) // a string has a form
		return out
	}
	c.changes = append(c.changes, ChangeOfRun{What: what, Was: value(was), Is: value(is)})
}

// String returns the change in a line, such as "write refund: amount 30 becomes 50".
func (c ChangeOfRun) String() string {
	name := strings.TrimSpace(c.What + " " + c.Tool)
	switch {
	case c.Was == nil && c.Is == nil:
		return name
	case c.Was == nil:
		return name + ": new: " + string(c.Is)
	case c.Is == nil:
		return name + ": gone: " + string(c.Was)
	case len(c.Args) == 0:
		return name + ": " + string(c.Was) + " becomes " + string(c.Is)
	}

	was := jsonform.Leaves(c.Was)
	is := jsonform.Leaves(c.Is)
	var parts []string
	for _, arg := range c.Args {
		parts = append(parts, fmt.Sprintf("%s %s becomes %s", arg, orNone(was[arg]), orNone(is[arg])))
	}
	return name + ": " + strings.Join(parts, ", ")
}

// orNone returns the value, or the word for no value.
func orNone(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return string(value)
}
