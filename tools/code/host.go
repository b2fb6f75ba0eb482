package code

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// maxReply is the maximum size of a result that a program gets, in bytes.
const maxReply = 8 << 20

// request is a call that a program makes.
type request struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// reply is the program's answer to it: a value, or an error.
type reply struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Outcome pawl.Outcome    `json:"outcome,omitempty"`
}

// madeCall is the record of a program's call.
type madeCall struct {
	Tool    string       `json:"tool"`
	Outcome pawl.Outcome `json:"outcome"`
}

// host is everything that a program can reach: the run's tools, through the pipeline.
type host struct {
	inv   *pawl.Invocation
	most  int // maximum number of calls
	watch *stopwatch

	made  []madeCall
	took  time.Duration // duration of the latest calls; the same when their stored results are used
	fatal error         // error of Do that ends the program and is not shown to it
	spent bool          // the program made more calls than allowed
}

// do executes calls together and returns the program's answers in order. False means that the
// program must end.
func (h *host) do(ctx context.Context, calls []request) ([]reply, bool) {
	if len(h.made)+len(calls) > h.most {
		h.spent = true
		return nil, false
	}

	replies := make([]reply, len(calls))
	var asked []llm.ToolCall
	var places []int // of asked in calls
	for i, c := range calls {
		if c.Name == toolName {
			replies[i] = reply{Error: refusedInside, Tool: c.Name, Outcome: pawl.OutcomeDenied}
			continue
		}
		asked = append(asked, llm.ToolCall{Name: c.Name, Args: c.Args})
		places = append(places, i)
	}

	h.watch.pause()
	xs, err := h.inv.Do(ctx, asked...)
	h.watch.resume()
	if err != nil {
		h.fatal = err
		return nil, false
	}

	h.took = 0
	for i := range xs {
		replies[places[i]] = toReply(&xs[i])
		// by the wall clock, which a record stores; the monotonic clock differs by nanoseconds
		h.took = max(h.took, xs[i].Ended.Round(0).Sub(xs[i].Started.Round(0)))
	}
	for i, c := range calls {
		o := cmp.Or(replies[i].Outcome, pawl.OutcomeOK)
		h.made = append(h.made, madeCall{c.Name, o})
	}
	return replies, true
}

// toReply converts an execution into the program's answer: the text that the model would get,
// parsed if it is JSON. A tool's data may contain less than its text; the data of file_read, for
// example, holds only the position of the text. The data therefore replaces the text only if both
// are the same JSON and the text was shortened for the model.
func toReply(x *pawl.Execution) reply {
	text := x.Result.Text()
	switch {
	case x.Outcome != pawl.OutcomeOK:
		return reply{Error: text, Tool: x.Call.Name, Outcome: x.Outcome}
	case len(x.Result.Data) > maxReply || len(text) > maxReply:
		return reply{
			Error:   fmt.Sprintf("the result of %s has more than %d bytes: ask it for less", x.Call.Name, maxReply),
			Tool:    x.Call.Name,
			Outcome: pawl.OutcomeError,
		}
	case json.Valid([]byte(text)):
		return reply{Value: json.RawMessage(text)}
	case x.Result.Data != nil && beginning(text) == beginning(string(x.Result.Data)):
		return reply{Value: x.Result.Data}
	}
	return reply{Value: quoted(text)}
}

// beginning returns the beginning of a JSON text, independent of its white space.
func beginning(s string) string {
	b := strings.Join(strings.Fields(s[:min(len(s), 200)]), "")
	return b[:min(len(b), 40)]
}

func quoted(text string) json.RawMessage {
	b, _ := jsonform.Marshal(text) // a string always marshals
	return b
}

// ended returns how the host ended the program, and whether it did.
func (h *host) ended() (ended, bool) {
	switch {
	case errors.Is(h.fatal, pawl.ErrDiverged):
		return ended{
			outcome: diverged,
			message: fmt.Sprintf("The program was run again after an interruption, and made a different call than before "+
				"(%v). Nothing more was done. It must make the same calls each time: what is read outside of calls must "+
				"not decide on them.", h.fatal),
		}, true
	case h.spent:
		return ended{
			outcome: tooMany,
			message: fmt.Sprintf("The program was ended: it asked for more than %d calls. Ask for less at once, "+
				"or do the rest in another program.", h.most),
		}, true
	}
	return ended{}, false
}

// stopwatch measures the time of a program without the time of its calls. It calls over once when
// the limit has passed.
type stopwatch struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func newStopwatch(limit time.Duration, over func()) *stopwatch {
	return &stopwatch{left: limit, since: time.Now(), timer: time.AfterFunc(limit, over)}
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer.Stop() {
		s.left -= time.Since(s.since)
	}
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.timer.Reset(max(s.left, time.Millisecond))
}

func (s *stopwatch) stop() { s.timer.Stop() }
