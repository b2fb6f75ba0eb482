package turns

// turn.go: turns, the parts of a run that answer one request each.

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Asked is the parsed request of an API.
type Asked struct {
	runs.Request
	Prefix string // of the ID of the run
	Stream bool
	Task   string // the kind of a side request, as Open WebUI states it; it may be false

	// Newest returns the run that a new run follows. Nil means Previous.
	Newest func() (run string, err error)
}

// Turn is the part of a run that answers one request.
type Turn struct {
	ID     string // of the run
	Agent  string
	Live   *runs.Live   // the attempt of the run that is followed
	Extras *runs.Extras // of its client; nil means none
	Skip   int          // replies that were sent before
	Spent  pawl.Spent   // usage before

	failed bool // the stream ended with an error
	away   bool // the answer was the error outage: the run goes on
	forget bool // the run is deleted when it has ended
	sent   *sent
}

// The beginnings of the IDs of runs, by the API of their client.
const (
	PrefixChat     = "chat"
	PrefixResponse = "resp"
	PrefixMessage  = "msg"
)

var prefixes = []string{PrefixChat, PrefixResponse, PrefixMessage}

// ResponseID returns the ID of a response: its run, and the number of the run's replies in earlier
// responses.
func ResponseID(run string, skip int) string {
	if skip == 0 {
		return run
	}
	return run + "." + strconv.Itoa(skip)
}

// CallID returns the ID of a run's open call for clients. It contains the ID of the run.
func CallID(run string, key llm.Key) string {
	return "call_" + run + "_" + strings.ReplaceAll(strings.TrimPrefix(string(key), "run/"), "/", "-")
}

// RunOf returns the run in a call's ID. Empty means that the ID was not created by CallID.
func RunOf(id string) string {
	rest, ok := strings.CutPrefix(id, "call_")
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 {
		return ""
	}
	ofTurn := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(rest, p+"_") })
	if !ofTurn {
		return ""
	}
	return rest[:i]
}

// Accept decodes a request into r and opens its turn, which of converts. A streaming request is
// counted as a stream first. The caller calls leave when the request is answered.
func (c *Call) Accept(r any, of func() (Asked, error)) (t *Turn, leave func(), err error) {
	c.Fingerprint = fingerprint
	if err := c.Read(r); err != nil {
		return nil, nil, err
	}
	in, err := of()
	if err != nil {
		return nil, nil, err
	}
	if err := c.sideAgent(&in); err != nil {
		return nil, nil, err
	}
	in.Messages = llm.FromClient(in.Messages...)
	in.KeepFirstResults()

	chat := c.Request.Header.Get("X-OpenWebUI-Chat-Id")
	if chat != "" {
		if err := store.CheckID(chat); err != nil {
			return nil, nil, runs.BadRequest("X-OpenWebUI-Chat-Id: "+err.Error(), "")
		}
	}
	in.Extras.Thread = cmp.Or(in.Extras.Thread, chat)

	// A stream that would be refused must not start a run first.
	release := func() {}
	if in.Stream {
		release, err = c.AcquireStream()
		if err != nil {
			return nil, nil, err
		}
	}
	t, err = c.open(in)
	if err != nil {
		release()
		return nil, nil, err
	}
	read := func() int { return 0 }
	if t.Live != nil {
		read = t.Live.AddReader()
	}
	leave = func() {
		release()
		read()
		c.disconnect(t)
	}
	return t, leave, nil
}

// resultsAtEnd returns the results at the end of a conversation, the run of their calls, and the
// messages of the user after them. An empty ID means that they belong to no run of this server.
func resultsAtEnd(msgs []llm.Message) (id string, results []llm.ToolResult, more []llm.Message) {
	for i, m := range slices.Backward(msgs) {
		if m.Role == llm.RoleUser && results == nil {
			more = msgs[i:]
			continue
		}
		if m.Role != llm.RoleTool {
			break
		}
		for _, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if !ok {
				continue
			}
			results = append(results, r)
			if run := RunOf(r.CallID); run != "" {
				id = run
			}
		}
	}
	return id, results, more
}

// resume resumes a run whose passive calls got their results. Nil means that a new run begins with
// the conversation.
//
// Results that the run has already come from a client that sends the whole conversation. Its user
// writes again, or the run is over: a new run begins. A run that failed continues. repeats reports
// whether the request may instead be the repetition of a request that an earlier process answered,
// for the time of the run's last change: it is refused, since nothing can be answered twice.
func (c *Call) resume(id string, results []llm.ToolResult, more []llm.Message,
	repeats func(changed time.Time) bool) (*Turn, error) {
	head, open, err := c.Runs.Pending(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	t := &Turn{
		ID:     id,
		Agent:  head.Agent,
		Extras: extras,
		Skip:   Replies(x),
		Spent:  runs.SpentOf(head),
	}

	ds, answered := decisionsOf(id, open, results)
	history := answered != "" && len(ds) == 0 && !repeats(head.Updated)
	goesOn := len(more) > 0 || head.State == store.JournalOver
	switch {
	case history && goesOn:
		return nil, nil
	case history && head.State == store.JournalFailed:
		t.Live, err = c.Runs.Resume(c.Context(), c.Caller(), id)
		return t, err
	case answered != "":
		return nil, runs.Fault("conflict", "the call "+answered+" does not wait for a result",
			"it was answered before: wait for the end of its run, or send another message of the user")
	}

	if err := c.Caller().Sign(open, ds); err != nil {
		return nil, err
	}
	t.Live, err = c.Runs.Answer(c.Context(), c.Caller(), id, ds, more...)
	return t, err
}

// decisionsOf returns the decisions that results of the client are, and the ID of a call that does
// not wait for its result; "" means none.
func decisionsOf(run string, open []pawl.PendingCall, results []llm.ToolResult) (ds []llm.Decision, answered string) {
	for _, r := range results {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return CallID(run, w.Key) == r.CallID })
		if i < 0 {
			answered = r.CallID
			continue
		}
		r.CallID = open[i].Call.ID
		ds = append(ds, open[i].Answer("", r))
	}
	return ds, answered
}

// FinishOf returns the finish_reason of a reply without calls.
func FinishOf(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonLength, llm.FinishReasonContentFilter:
		return string(f)
	}
	return "stop"
}

// stopped converts the end of a run for the client. An unsuccessful end is an error.
func (t *Turn) stopped(e pawl.Event, out *Reply) error {
	res := e.Result
	out.Usage = res.Spent.Usage
	out.Usage.Input -= t.Spent.Usage.Input
	out.Usage.Output -= t.Spent.Usage.Output
	out.Usage.Reasoning -= t.Spent.Usage.Reasoning
	out.Usage.CacheRead -= t.Spent.Usage.CacheRead

	switch res.Stop.Class() {
	case pawl.ClassAnswered:
		out.Finish = cmp.Or(out.Finish, "stop")
		return nil
	case pawl.ClassLimited:
		// The calls that the limit left are for the client, as with rounds: 0. They have the IDs of
		// the model, because no run waits for their results, which come with the conversation.
		for _, call := range res.Calls() {
			out.Calls = append(out.Calls, ToClient(t.Extras, call))
		}
		out.Finish = "length"
		if len(out.Calls) > 0 {
			out.Finish = "tool_calls"
		}
		return nil
	case pawl.ClassWaiting:
		return t.pending(res.Pending, out)
	case pawl.ClassCancelled:
		return runs.Fault("model_failed", "the run stopped without an answer: "+cmp.Or(res.Cause, string(res.Stop)), "")
	}
	return runs.Fault("model_failed", "the run failed: "+cmp.Or(e.Error, res.Cause, string(res.Stop)), "")
}

// pending converts the pending calls of a run for the client, which executes them. A call that
// waits for a person is an error.
func (t *Turn) pending(open []pawl.PendingCall, out *Reply) error {
	for _, w := range open {
		if !w.Passive {
			return runs.Fault("needs_decision", "the call of "+w.Call.Name+" waits for a decision",
				"POST /v1/runs/"+t.ID+"/approve, and watch the run there")
		}
		call := ToClient(t.Extras, w.Call)
		call.ID = CallID(t.ID, w.Key)
		out.Calls = append(out.Calls, call)
	}
	out.Finish = "tool_calls"
	return nil
}

// disconnect ends the connection of a turn. A run without a reader is cancelled, unless it goes on.
func (c *Call) disconnect(t *Turn) {
	lost := c.Request.Context().Err() != nil
	deserted := c.Handler.window.release(t.sent, closing{lost: lost, failed: t.failed, away: t.away}, c.Now())
	if !deserted || c.Request.Header.Get("Idempotency-Key") != "" {
		return
	}
	if c.DisconnectCancels(t.Agent) {
		c.CancelLater(t.ID, t.Live, func() bool { return c.Handler.window.deserted(t.sent) })
	}
}

// Replies counts the replies of the run itself, without nested agents.
func Replies(x *journal.Export) (n int) {
	for _, r := range x.Replies {
		if runs.IsOwn(r.Key) {
			n++
		}
	}
	return n
}
