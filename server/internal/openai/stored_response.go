package openai

// stored_response.go: responses that the journal has.

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/store"
)

// runOfResponse returns the run of a response and the number of replies before it.
func runOfResponse(id string) (run string, skip int) {
	run, n, _ := strings.Cut(id, ".")
	skip, _ = strconv.Atoi(n) // an invalid number is 0
	return run, skip
}

// storedResponse is a response that the journal has.
type storedResponse struct {
	head   store.JournalRun
	skip   int // replies of the run in earlier responses
	export *journal.Export
	extras *runs.Extras // nil means none
	reply  turns.Reply  // so far
}

// storedResponse finds a response.
func (c *call) storedResponse(id string) (*storedResponse, error) {
	head, skip, err := c.responseRun(id)
	if err != nil {
		return nil, err
	}
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), head.ID)
	if err != nil {
		return nil, err
	}
	out, ok := turnOf(x, extras, head.ID, skip, head.State == store.JournalOpen)
	if !ok || id != turns.ResponseID(head.ID, skip) {
		return nil, runs.Fault("not_found", "there is no response "+id, "")
	}
	return &storedResponse{head: head, skip: skip, export: x, extras: extras, reply: out}, nil
}

// response returns the response without its output.
func (s *storedResponse) response() *response {
	v := &response{
		id:      turns.ResponseID(s.head.ID, s.skip),
		agent:   runs.BaseName(s.head.Agent),
		created: s.head.Created,
		store:   s.extras == nil || !s.extras.Forget,
	}
	if s.extras == nil || s.extras.Thread == "" {
		return v
	}
	thread := conversationID(s.extras.Thread)
	if strings.HasPrefix(s.head.ID, thread.prefix()+"_") {
		v.conversation = thread
	}
	return v
}

// showResponse handles GET /v1/responses/{id}.
func (c *call) showResponse() error {
	s, err := c.storedResponse(c.Request.PathValue("id"))
	if err != nil {
		return err
	}
	q := c.Request.URL.Query()
	if q.Get("stream") == "true" {
		if q.Get("starting_after") != "" {
			return runs.BadRequest("starting_after: not supported", "without it the stream begins with the response")
		}
		return c.streamStored(s)
	}

	m := s.response().whole(s.reply)
	if len(s.reply.Calls) == 0 {
		setStatus(m, s.head.State, endOf(s.export))
	}
	return c.Write(http.StatusOK, m)
}

// streamStored sends a response from its beginning, and follows it to its end. A response that
// ended with calls for the client is complete, although its run may have gone on.
func (c *call) streamStored(s *storedResponse) error {
	release, err := c.AcquireStream()
	if err != nil {
		return err
	}
	defer release()
	v := s.response()
	if len(s.reply.Calls) > 0 {
		v.begin(c)
		if s.reply.Text != "" {
			v.word(s.reply.Text)
		}
		v.finish(s.reply)
		return nil
	}

	t := &turns.Turn{ID: s.head.ID, Agent: s.head.Agent, Extras: s.extras, Skip: s.skip}
	t.Spent.Usage = usageBefore(s.export, s.skip)
	t.Live, err = c.Runs.Attach(c.Context(), c.Caller(), t.ID)
	if err != nil {
		return err
	}
	v.begin(c)
	c.followResponse(t, v)
	return nil
}

// usageBefore returns the usage of a run before the reply that follows its first n ones.
func usageBefore(x *journal.Export, n int) (u llm.Usage) {
	own := 0
	for _, r := range x.Replies {
		if own == n {
			break
		}
		u.Add(r.Response.Usage)
		if runs.IsOwn(r.Key) {
			own++
		}
	}
	return u
}

// cancelResponse handles POST /v1/responses/{id}/cancel.
func (c *call) cancelResponse() error {
	head, _, err := c.responseRun(c.Request.PathValue("id"))
	if err != nil {
		return err
	}
	l, err := c.Runs.Cancel(c.Context(), c.Caller(), head.ID)
	if err != nil {
		return err
	}
	runs.Settle(c.Request.Context(), l)
	return c.showResponse()
}

// setStatus sets the status of a response whose run is in that state.
func setStatus(m object, state string, end journal.ExportedEnd) {
	fail := func(message string) {
		m["status"] = "failed"
		m["error"] = object{"code": "model_failed", "message": message}
	}

	switch state {
	case store.JournalOver:
	case store.JournalFailed:
		fail(cmp.Or(end.Error, "the run failed"))
		return
	default:
		m["status"] = "in_progress"
		return
	}

	switch end.Stop.Class() {
	case pawl.ClassAnswered:
	case pawl.ClassCancelled:
		m["status"] = "cancelled"
	case pawl.ClassLimited:
		m["status"] = "incomplete"
		m["incomplete_details"] = object{"reason": "max_output_tokens"}
	default:
		fail(cmp.Or(end.Cause, string(end.Stop)))
	}
}

// item returns an item of a response. A client refers to it by its ID instead of sending it again.
func (c *call) item(id string) (inputItem, error) {
	none := runs.Fault("not_found", "there is no item "+strconv.Quote(id),
		"send the item itself; with store: false clients do")
	name, isMessage := strings.CutPrefix(id, "msg_")
	run, skip := runOfResponse("resp_" + name)
	if !isMessage {
		id = "call_" + strings.TrimPrefix(strings.TrimPrefix(id, "fc_"), "ctc_")
		run = turns.RunOf(id)
	}
	if store.CheckID(run) != nil {
		return inputItem{}, none
	}
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return inputItem{}, none
	case err != nil:
		return inputItem{}, err
	}

	if isMessage {
		out, ok := turnOf(x, extras, run, skip, false)
		if !ok || out.Text == "" || id != messageID(turns.ResponseID(run, skip)) {
			return inputItem{}, none
		}
		text, err := json.Marshal(out.Text)
		return inputItem{Type: "message", Role: "assistant", Content: text}, err
	}
	for _, r := range x.Replies {
		for i, call := range r.Response.Message.Calls() {
			if extras.Executes(call) && id == turns.CallID(run, runs.CallKey(r.Key, i)) {
				return storedCall(extras, id, call), nil
			}
		}
	}
	return inputItem{}, none
}

// storedCall returns a call of a stored response as an item.
func storedCall(x *runs.Extras, id string, call llm.ToolCall) inputItem {
	to := turns.ToClient(x, call)
	i := inputItem{Type: "function_call", CallID: id, Name: to.Name, Namespace: to.Namespace}
	if to.Freeform {
		i.Type = "custom_tool_call"
		i.Input = to.Input()
	} else {
		i.Arguments = to.Input()
	}
	return i
}

// responseRun finds the run of a response.
func (c *call) responseRun(id string) (store.JournalRun, int, error) {
	run, skip := runOfResponse(id)
	if !strings.HasPrefix(run, "resp_") || store.CheckID(run) != nil {
		return store.JournalRun{}, 0, runs.Fault("not_found", "there is no response "+strconv.Quote(id), "")
	}
	head, err := c.Runs.Head(c.Context(), c.Caller(), run)
	return head, skip, err
}

// endOf returns the end of a run. The zero value means that it has none.
func endOf(x *journal.Export) journal.ExportedEnd {
	if x.End == nil {
		return journal.ExportedEnd{}
	}
	return *x.End
}

// turnOf returns the part of a run that one response contains: the replies after the first skip
// ones, up to the first reply with calls for the client. ok means that a response begins there.
// open means that the run executes, so that the response may have no reply yet.
func turnOf(x *journal.Export, extras *runs.Extras, run string, skip int, open bool) (out turns.Reply, ok bool) {
	out.Finish = "stop"
	begins := skip == 0 // a response begins after the replies that were skipped
	var texts []string
	n := 0 // replies of the run itself
	for _, r := range x.Replies {
		own := runs.IsOwn(r.Key)
		calls := r.Response.Message.Calls()
		if own {
			n++
		}
		switch {
		case own && n <= skip:
			begins = begins || n == skip && slices.ContainsFunc(calls, extras.Executes)
			continue
		case n < skip: // of a nested agent
			continue
		}

		out.Usage.Add(r.Response.Usage)
		if !own {
			continue
		}
		if text := r.Response.Message.Text(); text != "" {
			texts = append(texts, text)
		}
		out.Finish = turns.FinishOf(r.Response.Finish)
		out.Calls = clientCalls(run, r.Key, calls, extras)
		if len(out.Calls) > 0 {
			break
		}
	}

	if len(out.Calls) == 0 {
		for _, returned := range runs.Returned(x) {
			out.Calls = append(out.Calls, turns.ToClient(extras, returned.Call))
		}
	}
	out.Text = strings.Join(texts, "\n\n")
	if out.Text == "" && len(out.Calls) == 0 {
		out.Text = runs.AnswerOf(x)
	}
	hasReply := n > skip
	return out, begins && (skip == 0 || hasReply || open)
}

// clientCalls returns the calls of a reply that the client executes, with their IDs for it.
func clientCalls(run string, reply llm.Key, calls []llm.ToolCall, extras *runs.Extras) (out []turns.ClientCall) {
	for i, call := range calls {
		if extras.Executes(call) {
			call.ID = turns.CallID(run, runs.CallKey(reply, i))
			out = append(out, turns.ToClient(extras, call))
		}
	}
	return out
}

// deleteResponse handles DELETE /v1/responses/{id}.
func (c *call) deleteResponse() error {
	id := c.Request.PathValue("id")
	head, _, err := c.responseRun(id)
	if err != nil {
		return err
	}
	if err := c.Runs.Delete(c.Context(), c.Caller(), head.ID); err != nil {
		return err
	}
	return c.Write(http.StatusOK, object{"id": id, "object": "response", "deleted": true})
}
