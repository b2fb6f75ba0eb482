package journal

// timeline.go: Timeline, the times of a run.

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Timeline is the times of the steps of a run, by the clocks of the processes that wrote its
// journal. Export has the steps without times.
type Timeline struct {
	// Began is the time of the first record.
	Began time.Time `json:"began"`
	// Ended is the time of the last stop. The zero Time means that a process works on the run, or
	// that it was interrupted.
	Ended time.Time `json:"ended,omitzero" doc:"When it last stopped; absent while it works."`
	// Taken has the times at which processes started or resumed the run.
	Taken []time.Time `json:"taken" doc:"When processes started or resumed the run."`
	// Spans has the model requests and the calls, also nested ones, by key.
	Spans []Span `json:"spans" doc:"Model requests and calls, also nested, by key."`
}

// Span is the time of a model request or of the execution of a call.
type Span struct {
	Key llm.Key `json:"key"` // of the request or the call
	// What is "request" or "call".
	What string `json:"what" doc:"request or call"`
	// Started of a request is the end of the step before it, because the journal does not record
	// when it was sent. The zero Time means unknown.
	Started time.Time `json:"started,omitzero" doc:"Of a request: the end of the step before."`
	// Ended is zero while the request or the call has no outcome.
	Ended time.Time `json:"ended,omitzero" doc:"Absent until then."`
	// Copied means that a fork copied it. A copied request has no times.
	Copied bool `json:"copied,omitzero" doc:"Copied by a fork; a request has no times then."`
	// Waits has the times for which the call was pending.
	Waits []Wait `json:"waits,omitzero" doc:"When the call was pending."`
}

// Wait is the time from a question to its answer.
type Wait struct {
	Asked    time.Time `json:"asked"`             // the time of the question
	Answered time.Time `json:"answered,omitzero"` // the zero Time means no answer
	By       string    `json:"by,omitzero"`       // Decision.By of the answer
}

// timeline returns the times of a run.
func timeline(h *record.History) *Timeline {
	c := &chronicle{History: h, written: map[string]store.Record{}, calls: map[llm.Key][]llm.Key{}}
	tl := &Timeline{Taken: []time.Time{}, Spans: []Span{}}
	fence := int64(0)
	for _, r := range h.Records {
		c.written[r.Key] = r
		if r.Fence > fence {
			// Elapsed is the time since the process took the run.
			fence = r.Fence
			tl.Taken = append(tl.Taken, r.At.Add(-r.Elapsed))
		}
		tl.Ended = time.Time{} // a record after an end: the run was resumed
		if r.Kind == record.KindEnd {
			tl.Ended = r.At
		}
	}
	tl.Began = h.Records[0].At

	known := slices.Collect(maps.Keys(h.Outcomes))
	known = slices.AppendSeq(known, maps.Keys(h.Attempts))
	known = slices.AppendSeq(known, maps.Keys(h.Questions))
	slices.Sort(known)
	for _, key := range slices.Compact(known) {
		step, _ := split(key)
		c.calls[step] = append(c.calls[step], key)
		tl.Spans = append(tl.Spans, c.call(key))
	}
	for key := range h.Replies {
		tl.Spans = append(tl.Spans, c.request(key))
	}
	slices.SortFunc(tl.Spans, func(a, b Span) int { return CompareKeys(a.Key, b.Key) })
	return tl
}

// chronicle computes the times of a history.
type chronicle struct {
	*record.History
	written map[string]store.Record
	calls   map[llm.Key][]llm.Key // of a step, such as run/3
}

// call returns the span of a call.
func (c *chronicle) call(key llm.Key) Span {
	s := Span{Key: key, What: "call", Started: c.began(key)}
	if done := c.Outcomes[key]; done != nil {
		s.Ended = done.Execution.Ended
		s.Copied = s.Ended.Before(c.Records[0].At)
	}

	for _, q := range c.Questions[key] {
		w := Wait{Asked: c.written[q.Key].At}
		if q.Answer != nil {
			w.Answered = q.Answer.At
			w.By = q.Answer.By
		}
		s.Waits = append(s.Waits, w)
	}
	return s
}

// began returns the time of the first start of the call at key.
func (c *chronicle) began(key llm.Key) (at time.Time) {
	if done := c.Outcomes[key]; done != nil {
		at = done.Execution.Started
	}
	if started := c.Attempts[key]; len(started) > 0 {
		at = earlier(at, c.Records[started[0].Seq-1].At)
	}
	if asked := c.Questions[key]; len(asked) > 0 {
		at = earlier(at, c.written[asked[0].Key].At)
	}
	return at
}

// request returns the span of a request. The journal does not record when it was sent. The span
// starts when the last step that it depends on has ended.
func (c *chronicle) request(key llm.Key) Span {
	s := Span{Key: key, What: "request", Copied: c.Replies[key].Messages == ""}
	if s.Copied {
		return s
	}
	r := c.written[string(key)]
	s.Ended = r.At
	s.Started = later(c.Records[0].At, r.At.Add(-r.Elapsed)) // the start of the process

	step, _ := split(key)
	run, number := split(step)
	n, _ := strconv.Atoi(number)
	switch {
	case n > 0:
		s.Started = later(s.Started, c.RepliedAt[modelKey(run, n-1)])
	case run != "run":
		around, _ := split(run) // the call around the nested run
		began := c.began(around)
		if began.IsZero() {
			began = c.asker(around)
		}
		s.Started = later(s.Started, began)
	}

	for _, k := range c.calls[step] {
		if done := c.Outcomes[k]; done != nil {
			s.Started = later(s.Started, done.Execution.Ended)
		}
	}
	s.Started = earlier(s.Started, s.Ended)
	return s
}

// asker returns the time of the reply that made the call at key, or of the nearest known one around
// it.
func (c *chronicle) asker(key llm.Key) time.Time {
	for key != "run" && key != "" {
		step, _ := split(key)
		run, number := split(step)
		if n, err := strconv.Atoi(number); err == nil {
			if at := c.RepliedAt[modelKey(run, n-1)]; !at.IsZero() {
				return at
			}
		}
		key = step
	}
	return time.Time{}
}

// modelKey returns the key of the request that a run makes for its step n.
func modelKey(run llm.Key, n int) llm.Key {
	return run + llm.Key("/"+strconv.Itoa(n)+"/model")
}

// split removes the last part of a key.
func split(key llm.Key) (llm.Key, string) {
	i := strings.LastIndexByte(string(key), '/')
	if i < 0 {
		return "", string(key)
	}
	return key[:i], string(key[i+1:])
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier of the known times.
func earlier(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	case b.Before(a):
		return b
	}
	return a
}
