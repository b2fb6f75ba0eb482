package openai

// turn.go: turns, the parts of a run that answer one request each.

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// asked is the parsed request of either API form.
type asked struct {
	runs.Request
	Stream bool
	Task   string // the kind of a side request, as Open WebUI states it; it may be false

	conversation conversationID // of Responses; "" means none
	tools        toolIndex      // of Extras.Tools
}

// turn is the part of a run that answers one request.
type turn struct {
	id     string // ID of the run
	agent  string
	live   *runs.Live
	extras *runs.Extras // of its client; nil means none
	skip   int          // replies that were sent before
	spent  pawl.Spent   // usage before
	forget bool         // the run is deleted when it has ended
	failed bool         // the stream ended with an error
	away   bool         // the answer was the error outage: the run goes on
	sent   *sent
}

// callID returns the ID of a run's open call for clients. It contains the ID of the run.
func callID(run string, key llm.Key) string {
	return "call_" + run + "_" + strings.ReplaceAll(strings.TrimPrefix(string(key), "run/"), "/", "-")
}

// runOf returns the run in a call's ID. Empty means that the ID was not created by callID.
func runOf(id string) string {
	rest, ok := strings.CutPrefix(id, "call_")
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 {
		return ""
	}
	if !strings.HasPrefix(rest, "chat_") && !strings.HasPrefix(rest, "resp_") {
		return ""
	}
	return rest[:i]
}

// accept decodes a request into r and opens its turn, which of converts. A streaming request is
// counted as a stream first. The caller calls leave when the request is answered.
func (c *call) accept(prefix string, r any, of func() (asked, error)) (t *turn, leave func(), err error) {
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

	in.Extras.Thread = c.Request.Header.Get("X-OpenWebUI-Chat-Id")
	if in.Extras.Thread != "" {
		if err := store.CheckID(in.Extras.Thread); err != nil {
			return nil, nil, runs.BadRequest("X-OpenWebUI-Chat-Id: "+err.Error(), "")
		}
	}

	if in.conversation != "" {
		in.Extras.Thread = string(in.conversation)
		prefix = in.conversation.prefix()
	}

	// A stream that would be refused must not start a run first.
	release := func() {}
	if in.Stream {
		release, err = c.AcquireStream()
		if err != nil {
			return nil, nil, err
		}
	}
	t, err = c.open(prefix, in)
	if err != nil {
		release()
		return nil, nil, err
	}
	read := func() int { return 0 }
	if t.live != nil {
		read = t.live.AddReader()
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
			if run := runOf(r.CallID); run != "" {
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
func (c *call) resume(id string, results []llm.ToolResult, more []llm.Message,
	repeats func(changed time.Time) bool) (*turn, error) {
	head, open, err := c.Runs.Pending(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, err
	}
	t := &turn{
		id:     id,
		agent:  head.Agent,
		extras: extras,
		skip:   replies(x),
		spent:  runs.SpentOf(head),
	}

	ds, answered := decisionsOf(id, open, results)
	history := answered != "" && len(ds) == 0 && !repeats(head.Updated)
	goesOn := len(more) > 0 || head.State == store.JournalOver
	switch {
	case history && goesOn:
		return nil, nil
	case history && head.State == store.JournalFailed:
		t.live, err = c.Runs.Resume(c.Context(), c.Caller(), id)
		return t, err
	case answered != "":
		return nil, runs.Fault("conflict", "the call "+answered+" does not wait for a result",
			"it was answered before: wait for the end of its run, or send another message of the user")
	}

	if err := c.Caller().Sign(open, ds); err != nil {
		return nil, err
	}
	t.live, err = c.Runs.Answer(c.Context(), c.Caller(), id, ds, more...)
	return t, err
}

// decisionsOf returns the decisions that results of the client are, and the ID of a call that does
// not wait for its result; "" means none.
func decisionsOf(run string, open []pawl.PendingCall, results []llm.ToolResult) (ds []llm.Decision, answered string) {
	for _, r := range results {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return callID(run, w.Key) == r.CallID })
		if i < 0 {
			answered = r.CallID
			continue
		}
		r.CallID = open[i].Call.ID
		ds = append(ds, open[i].Answer("", r))
	}
	return ds, answered
}

// finishOf returns the finish_reason of a reply without calls.
func finishOf(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonLength, llm.FinishReasonContentFilter:
		return string(f)
	}
	return "stop"
}

// stopped converts the end of a run for the client. An unsuccessful end is an error.
func (t *turn) stopped(e pawl.Event, out *reply) error {
	res := e.Result
	out.usage = res.Spent.Usage
	out.usage.Input -= t.spent.Usage.Input
	out.usage.Output -= t.spent.Usage.Output
	out.usage.Reasoning -= t.spent.Usage.Reasoning
	out.usage.CacheRead -= t.spent.Usage.CacheRead

	switch res.Stop.Class() {
	case pawl.ClassAnswered:
		out.finish = cmp.Or(out.finish, "stop")
		return nil
	case pawl.ClassLimited:
		// The calls that the limit left are for the client, as with rounds: 0. They have the IDs of
		// the model, because no run waits for their results, which come with the conversation.
		for _, call := range res.Calls() {
			out.calls = append(out.calls, toClient(t.extras, call))
		}
		out.finish = "length"
		if len(out.calls) > 0 {
			out.finish = "tool_calls"
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
func (t *turn) pending(open []pawl.PendingCall, out *reply) error {
	for _, w := range open {
		if !w.Passive {
			return runs.Fault("needs_decision", "the call of "+w.Call.Name+" waits for a decision",
				"POST /v1/runs/"+t.id+"/approve, and watch the run there")
		}
		call := toClient(t.extras, w.Call)
		call.ID = callID(t.id, w.Key)
		out.calls = append(out.calls, call)
	}
	out.finish = "tool_calls"
	return nil
}

// disconnect ends the connection of a turn. A run without a reader is cancelled, unless it goes on.
func (c *call) disconnect(t *turn) {
	lost := c.Request.Context().Err() != nil
	deserted := c.handler.window.release(t.sent, closing{lost: lost, failed: t.failed, away: t.away}, c.Now())
	if !deserted || c.Request.Header.Get("Idempotency-Key") != "" {
		return
	}
	if c.DisconnectCancels(t.agent) {
		c.CancelLater(t.id, t.live, func() bool { return c.handler.window.deserted(t.sent) })
	}
}
