package journal

// export.go: Export, a run without times.

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/internal/record"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Export is a run without everything that differs between its executions: times, attempts, leases.
// The same run on another engine, or with crashes, has the same Export. It is plain data; JSON
// returns its canonical form.
type Export struct {
	Form     int           `json:"form"`                 // the version of this form: 1
	Agent    string        `json:"agent,omitzero"`       // the name of the agent; "" means no name
	Forked   *Origin       `json:"forked_from,omitzero"` // nil means no fork
	Messages []llm.Message `json:"messages"`             // the input of the run
	Values   pawl.Values   `json:"values,omitzero"`      // the values of the input (Runner.From)

	Replies []ExportedReply `json:"replies"`          // by key, including nested runs
	Calls   []ExportedCall  `json:"calls"`            // ended calls, by key, including nested calls
	Steered []ExportedWord  `json:"steered,omitzero"` // messages that arrived during the run
	Pending []ExportedAsk   `json:"pending,omitzero"` // pending calls
	End     *ExportedEnd    `json:"end,omitzero"`     // the last stop; nil means not stopped
}

// ExportedReply is a model's reply.
type ExportedReply struct {
	Key      llm.Key      `json:"key"`      // of the request
	Response llm.Response `json:"response"` // byte for byte as it was received
}

// ExportedCall is the outcome of a call.
type ExportedCall struct {
	Key       llm.Key        `json:"key"`       // of the call
	Call      llm.ToolCall   `json:"call"`      // as the model or a call made it
	Execution pawl.Execution `json:"execution"` // see Timeless
}

// ExportedWord is the messages that a request received during the run.
type ExportedWord struct {
	Key      llm.Key       `json:"key"`      // of the request
	Messages []llm.Message `json:"messages"` // in the order in which they were sent
}

// ExportedAsk is an open question.
type ExportedAsk struct {
	Key     llm.Key      `json:"key"`              // of the call
	Call    llm.ToolCall `json:"call"`             // with the arguments of its start
	Outcome pawl.Outcome `json:"outcome"`          // OutcomePending or OutcomeUnknown
	Why     string       `json:"why,omitzero"`     // the reason of the question; "" means none
	Passive bool         `json:"passive,omitzero"` // the caller executes the call
}

// ExportedEnd is the reason why a run stopped. Its fields are the fields of pawl.Result.
type ExportedEnd struct {
	Stop   pawl.StopReason `json:"stop"`            // Result.Stop
	Limit  pawl.LimitName  `json:"limit,omitzero"`  // Result.Limit; "" means no limit
	Cause  string          `json:"cause,omitzero"`  // Result.Cause; "" means none
	Error  string          `json:"error,omitzero"`  // the text of the run's error; "" means none
	Spent  pawl.Spent      `json:"spent"`           // Result.Spent
	Values pawl.Values     `json:"values,omitzero"` // Result.Values
	Output json.RawMessage `json:"output,omitzero"` // Result.Output; nil means none
	// Answer is Result.Answer. Nil means that the run did not answer, or that an earlier version of
	// the program stored its end.
	Answer *pawl.Answer `json:"answer,omitzero"`
	Unfit  []string     `json:"unfit,omitzero"` // Result.Unfit; nil means none
}

// Origin is the source of a fork.
type Origin struct {
	Run   string `json:"run"`   // the ID of the original run
	Steps int    `json:"steps"` // the number of copied steps
	// Trace is the position of the original run in a trace, in the form of the W3C (package
	// telemetry). Empty means unknown, and so it is in an Export.
	Trace string `json:"trace,omitzero"`
}

// originOf returns o without its position in a trace, which differs between the executions of a
// run.
func originOf(o *record.Origin) *Origin {
	if o == nil {
		return nil
	}
	return &Origin{Run: o.Run, Steps: o.Steps}
}

// export returns a run without times.
func export(h *record.History) (*Export, error) {
	x := &Export{
		Form:    1,
		Agent:   h.Begin.Agent,
		Forked:  originOf(h.Begin.ForkedFrom),
		Replies: []ExportedReply{},
		Calls:   []ExportedCall{},
	}
	in, err := h.Begin.Input()
	if err != nil {
		return nil, err
	}
	x.Messages = in.All()
	if in.From != nil {
		x.Values = in.From.Values
	}

	for key, b := range h.Replies {
		x.Replies = append(x.Replies, ExportedReply{key, *b.Original()})
	}
	for key, b := range h.Outcomes {
		x.Calls = append(x.Calls, ExportedCall{key, b.Call, Timeless(b.Execution)})
	}
	for key, b := range h.Steered {
		x.Steered = append(x.Steered, ExportedWord{key, b.Messages})
	}
	for _, q := range h.OpenQuestions() {
		w := q.Waiting
		x.Pending = append(x.Pending, ExportedAsk{w.Key, w.Call, w.Outcome, w.Why, w.Passive})
	}

	// Maps have no order, and exports are compared.
	x.Sort()

	if e := h.End; e != nil {
		x.End = &ExportedEnd{
			Stop:   e.Stop,
			Limit:  e.Limit,
			Cause:  e.Cause,
			Error:  e.Error,
			Spent:  e.Spent,
			Values: e.Values,
			Output: e.Output,
			Answer: e.Answer,
			Unfit:  e.Unfit,
		}
	}
	return x, nil
}

// Sort sorts all lists by key.
func (x *Export) Sort() {
	slices.SortFunc(x.Replies, func(a, b ExportedReply) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Calls, func(a, b ExportedCall) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Steered, func(a, b ExportedWord) int { return CompareKeys(a.Key, b.Key) })
	slices.SortFunc(x.Pending, func(a, b ExportedAsk) int { return CompareKeys(a.Key, b.Key) })
}

// Timeless returns x without times and attempts.
func Timeless(x pawl.Execution) pawl.Execution {
	x.Attempts = 0
	x.Started = time.Time{}
	x.Ended = time.Time{}
	x.Index = 0
	x.Pending = nil
	if x.Decision != nil {
		d := *x.Decision
		d.Digest = ""
		d.At = time.Time{} // it depends on the attempt
		x.Decision = &d
	}
	return x
}

// JSON returns the canonical form: sorted names, no spaces, and a final line end.
func (x *Export) JSON() ([]byte, error) {
	form, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return append(jsonform.Canonical(form), '\n'), nil
}

// CompareKeys orders keys by their place in the run, with numbers in numeric order. It fits
// slices.SortFunc.
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
