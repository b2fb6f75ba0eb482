package durable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Export is what a run was, without what differs from one execution of it to the next: times, attempts, leases. The same run on another engine, or with crashes in
// it, has the same Export. It is plain data; JSON gives its canonical form.
type Export struct {
	Form     int             `json:"form"` // of this structure: 1
	Agent    string          `json:"agent,omitzero"`
	Forked   *Origin         `json:"forked_from,omitzero"` // nil: it is no fork
	Messages []llm.Message   `json:"messages"`             // what it was given
	Values   pawl.Values     `json:"values,omitzero"`      // what it was given beside them (Runner.From)
	Replies  []ExportedReply `json:"replies"`              // in the order of their keys, those of runs inside calls too
	Calls    []ExportedCall  `json:"calls"`                // that have ended, in the order of their keys, those inside calls too
	Steered  []ExportedWord  `json:"steered,omitzero"`     // messages that came on the way
	Pending  []ExportedAsk   `json:"pending,omitzero"`     // the calls that wait
	End      *ExportedEnd    `json:"end,omitzero"`         // why it stopped last; nil: it has not
}

// ExportedReply is a reply of a model.
type ExportedReply struct {
	Key      llm.Key      `json:"key"` // of the request
	Response llm.Response `json:"response"`
}

// ExportedCall is how a call ended.
type ExportedCall struct {
	Key       llm.Key        `json:"key"`
	Call      llm.ToolCall   `json:"call"` // as it was made
	Execution pawl.Execution `json:"execution"`
}

// ExportedWord is messages that a request took on the way.
type ExportedWord struct {
	Key      llm.Key       `json:"key"` // of the request
	Messages []llm.Message `json:"messages"`
}

// ExportedAsk is an open question.
type ExportedAsk struct {
	Key     llm.Key      `json:"key"`
	Call    llm.ToolCall `json:"call"`
	Outcome pawl.Outcome `json:"outcome"`
	Why     string       `json:"why,omitzero"`
	Passive bool         `json:"passive,omitzero"`
}

// ExportedEnd is why a run stopped.
type ExportedEnd struct {
	Stop   pawl.Stop       `json:"stop"`
	Cause  string          `json:"cause,omitzero"`
	Error  string          `json:"error,omitzero"`
	Spent  pawl.Spent      `json:"spent"`
	Values pawl.Values     `json:"values,omitzero"`
	Output json.RawMessage `json:"output,omitzero"`
}

// Export returns what a run was.
func (e *Engine) Export(ctx context.Context, id string) (*Export, error) {
	h, err := e.history(ctx, scope(ctx), id)
	if err != nil {
		return nil, err
	}
	return h.export()
}

func (h *history) export() (*Export, error) {
	x := &Export{Form: 1, Agent: h.begin.Agent, Forked: h.begin.ForkedFrom.plain(), Replies: []ExportedReply{}, Calls: []ExportedCall{}}
	in, err := h.begin.input()
	if err != nil {
		return nil, err
	}
	if x.Messages = in.all(); in.from != nil {
		x.Values = in.from.Values
	}
	for key, b := range h.replies {
		x.Replies = append(x.Replies, ExportedReply{key, *b.reply()})
	}
	for key, b := range h.outcomes {
		x.Calls = append(x.Calls, ExportedCall{key, b.Call, Timeless(b.Execution)})
	}
	for key, b := range h.steers {
		x.Steered = append(x.Steered, ExportedWord{key, b.Messages})
	}
	for _, q := range h.waiting() {
		w := q.waiting
		x.Pending = append(x.Pending, ExportedAsk{w.Key, w.Call, w.Outcome, w.Why, w.Passive})
	}
	x.Sort()
	if e := h.end; e != nil {
		x.End = &ExportedEnd{e.Stop, e.Cause, e.Error, e.Spent, e.Values, e.Output}
	}
	return x, nil
}

// Sort puts everything in the order of its key.
func (x *Export) Sort() {
	slices.SortFunc(x.Replies, func(a, b ExportedReply) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Calls, func(a, b ExportedCall) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Steered, func(a, b ExportedWord) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Pending, func(a, b ExportedAsk) int { return CompareKeys(a.Key, b.Key) })
}

// Timeless returns x without times and attempts.
func Timeless(x pawl.Execution) pawl.Execution {
	x.Attempts, x.Started, x.Ended, x.Index, x.Waiting = 0, time.Time{}, time.Time{}, 0, nil
	if x.Decision != nil {
		d := *x.Decision
		d.Digest = "" // it is of the attempt
		x.Decision = &d
	}
	return x
}

// JSON returns the canonical form: names sorted, no spaces, a line end behind it.
func (x *Export) JSON() ([]byte, error) {
	form, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(form))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	out, err := json.Marshal(v)
	return append(out, '\n'), err
}

// CompareKeys orders keys by their place in the run: numbers as numbers. It is for slices.SortFunc.
func CompareKeys(a, b llm.Key) int {
	return slices.CompareFunc(strings.Split(string(a), "/"), strings.Split(string(b), "/"), func(x, y string) int {
		n, errN := strconv.Atoi(x)
		m, errM := strconv.Atoi(y)
		if errN == nil && errM == nil {
			return cmp.Compare(n, m)
		}
		return strings.Compare(x, y)
	})
}
