package ui

// chat.go: the endpoints of the AI SDK's useChat.

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// streamOptions returns the options of a stream, from the query.
func (c *call) streamOptions() (o uistream.Options, err error) {
	q, err := c.Params("sdk", "agent")
	if err != nil {
		return o, err
	}
	switch q.Get("sdk") {
	case "", "6":
	case "7":
		o.Protocol = uistream.AISDK7
	default:
		return o, runs.BadRequest("sdk is 6 or 7", "")
	}
	return o, nil
}

// chat handles POST /v1/ui/{agent}.
func (c *call) chat() error {
	var r uistream.Request
	if err := c.Read(&r); err != nil {
		return err
	}
	n := len(r.Messages)
	if r.ID == "" || n == 0 {
		return runs.BadRequest("id or messages are missing", "useChat sends both")
	}

	last := &r.Messages[n-1]
	in := &conversation.Request{Numbered: true, Again: r.Trigger == "regenerate-message"}
	in.Extras.Message = last.ID
	var err error
	in.Stream, err = c.streamOptions()
	if err != nil {
		return err
	}
	in.Agent, in.Prefix, err = c.Identify("ui", r.Agent, r.ID)
	if err != nil {
		return err
	}

	// A page answers calls by sending the assistant's message again, with the answers in it.
	if last.Role == "assistant" {
		in.Run = last.ID
		in.Answers = r.Answers(&in.Stream)
		return c.Respond(in)
	}
	in.Extras.System = r.System
	for _, t := range r.Tools {
		in.Extras.Tools = append(in.Extras.Tools, clientTool(t))
	}
	items := make([]conversation.Item, n)
	for i := range r.Messages {
		items[i] = conversation.Item{Run: r.Messages[i].ID, Read: r.Messages[i].LLM}
	}
	if err := c.AddHistory(in, items); err != nil {
		return err
	}
	if n == 1 && in.Extras.Before == "" {
		if err := c.Follow(in); err != nil {
			return err
		}
	}
	return c.Respond(in)
}

// newestRun returns the newest run of the conversation in the path. Nil means that there is none.
func (c *call) newestRun() (*store.JournalRun, uistream.Options, error) {
	o, err := c.streamOptions()
	if err != nil {
		return nil, o, err
	}
	_, prefix, err := c.Identify("ui", c.Request.URL.Query().Get("agent"), c.Request.PathValue("chat"))
	if err != nil {
		return nil, o, err
	}
	head, err := c.NewestNumbered(prefix)
	return head, o, err
}

// resume handles GET /v1/ui/{agent}/{chat}/stream.
func (c *call) resume() error {
	head, o, err := c.newestRun()
	if err != nil {
		return err
	}
	if head == nil || head.State == store.JournalOver || head.State == store.JournalFailed {
		c.Writer.WriteHeader(http.StatusNoContent)
		return nil
	}
	release, err := c.AcquireStream()
	if err != nil {
		return err
	}
	defer release()
	l, err := c.Runs.Attach(c.Context(), c.Caller(), head.ID)
	if err != nil {
		return err
	}
	c.Send(l, o)
	return nil
}

// stop handles POST /v1/ui/{agent}/{chat}/stop.
func (c *call) stop() error {
	head, _, err := c.newestRun()
	if err == nil && head != nil {
		_, err = c.Runs.Cancel(c.Context(), c.Caller(), head.ID)
	}
	if err == nil {
		c.Writer.WriteHeader(http.StatusNoContent)
	}
	return err
}

// messages handles GET /v1/ui/{agent}/{chat}: the chain of runs that ends with the newest.
func (c *call) messages() error {
	head, o, err := c.newestRun()
	if err != nil {
		return err
	}
	all := []json.RawMessage{}
	id := ""
	if head != nil {
		id = head.ID
	}
	for id != "" {
		page, before, err := c.messagesOf(id, o)
		if err != nil {
			return err
		}
		all = append(page, all...)
		id = before
	}
	return c.Write(http.StatusOK, map[string]any{"messages": all})
}

// messagesOf returns the messages of the user in a run and the assistant's message, and the run
// before it; "" means none.
func (c *call) messagesOf(id string, o uistream.Options) (page []json.RawMessage, before string, err error) {
	x, extras, err := c.Runs.Stored(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, "", err
	}
	l, err := c.Runs.Attach(c.Context(), c.Caller(), id)
	if err != nil {
		return nil, "", err
	}
	h := uistream.NewHistory(c.Options(l, o))
	for ev, err := range l.Events(c.Request.Context(), runs.Reading{Stored: true}) {
		if err != nil || len(h.Event(ev)) > 0 || h.Ended() {
			break
		}
	}

	said := x.Messages
	if extras.Before != "" {
		said = afterAnswer(said)
	}
	for i, m := range said {
		ui := map[string]any{
			"id":    conversation.Hash(16, id, strconv.Itoa(i)),
			"role":  m.Role,
			"parts": uistream.UIParts(&m),
		}
		if i == len(said)-1 {
			ui["id"] = extras.Message
		}
		page = append(page, c.message(ui))
	}
	return append(page, c.message(h.Message())), extras.Before, nil
}

// afterAnswer returns the messages after the last one of the assistant: what the run before has
// said precedes them.
func afterAnswer(msgs []llm.Message) []llm.Message {
	said := msgs
	for i, m := range msgs {
		if m.Role == llm.RoleAssistant || m.Role == llm.RoleTool {
			said = msgs[i+1:]
		}
	}
	return said
}

// message returns a message as JSON without secrets.
func (c *call) message(v any) json.RawMessage {
	b, err := c.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}
