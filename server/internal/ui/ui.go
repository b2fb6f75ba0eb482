package ui

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

// uiOptions returns the options of a stream, from the query.
func (c *call) uiOptions() (o uistream.Options, err error) {
	q, err := c.Params("sdk", "agent")
	if sdk := q.Get("sdk"); sdk == "7" {
		o.Protocol = uistream.AISDK7
	} else if err == nil && sdk != "" && sdk != "6" {
		err = runs.BadRequest("sdk is 6 or 7", "")
	}
	return o, err
}

// Ui handles POST /v1/ui/{agent}.
func (c *call) Ui() error {
	var r uistream.Request
	if err := c.Read(&r); err != nil {
		return err
	}
	n := len(r.Messages)
	if r.ID == "" || n == 0 {
		return runs.BadRequest("id or messages are missing", "useChat sends both")
	}
	last := &r.Messages[n-1]
	in := &conversation.Front{Again: r.Trigger == "regenerate-message"}
	in.Dress.Message = last.ID
	var err error
	in.O, err = c.uiOptions()
	if err != nil {
		return err
	}
	in.Model, in.Prefix, err = c.Conversation("ui", r.Agent, r.ID)
	if err != nil {
		return err
	}
	if last.Role == "assistant" {
		in.Run, in.Answers = last.ID, r.Answers(&in.O)
		return c.AnswerFront(in)
	}
	for _, t := range r.Tools {
		in.Dress.Tools = append(in.Dress.Tools, runs.ClientTool(t.Function))
	}
	id := func(i int) string { return r.Messages[i].ID }
	if err := c.Follows(in, n, id, func(i int) (llm.Message, error) { return r.Messages[i].LLM() }); err != nil {
		return err
	}
	return c.AnswerFront(in)
}

// uiChat returns the newest run of the conversation in the path. Nil means that there is none.
func (c *call) uiChat() (*store.JournalRun, uistream.Options, error) {
	o, err := c.uiOptions()
	if err != nil {
		return nil, o, err
	}
	_, prefix, err := c.Conversation("ui", c.R.URL.Query().Get("agent"), c.R.PathValue("chat"))
	if err != nil {
		return nil, o, err
	}
	head, err := c.Newest(prefix, "")
	return head, o, err
}

// UiStream handles GET /v1/ui/{agent}/{chat}/stream.
func (c *call) UiStream() error {
	head, o, err := c.uiChat()
	if err != nil {
		return err
	}
	if head == nil || head.State == store.JournalOver || head.State == store.JournalFailed {
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	}
	leave, err := c.EnterStream()
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.Look(runs.Place{Who: head.Scope, Id: head.ID})
	if err != nil {
		return err
	}
	return c.TellFront(l, o)
}

// UiStop handles POST /v1/ui/{agent}/{chat}/stop.
func (c *call) UiStop() error {
	head, _, err := c.uiChat()
	if err == nil && head != nil {
		_, err = c.GiveUp(head.ID)
	}
	if err == nil {
		c.W.WriteHeader(http.StatusNoContent)
	}
	return err
}

// UiMessages handles GET /v1/ui/{agent}/{chat}: the chain of runs that ends with the newest.
func (c *call) UiMessages() error {
	head, o, err := c.uiChat()
	if err != nil {
		return err
	}
	all := []json.RawMessage{}
	id := ""
	if head != nil {
		id = head.ID
	}
	for id != "" {
		x, d, err := c.StoredRun(id)
		if err != nil {
			return err
		}
		l, err := c.Look(runs.Place{Who: c.Client.Scope(), Id: id})
		if err != nil {
			return err
		}
		h := uistream.NewHistory(c.Options(l, o))
		for ev, err := range l.Events(c.R.Context(), false, nil, nil) {
			if err != nil || len(h.Event(ev)) > 0 || h.Ended() {
				break
			}
		}
		said := x.Messages
		for i, m := range x.Messages { // what follows the answer of the run before
			if d.Before != "" && (m.Role == llm.RoleAssistant || m.Role == llm.RoleTool) {
				said = x.Messages[i+1:]
			}
		}
		var page []json.RawMessage
		for i, m := range said {
			ui := map[string]any{"id": runs.Short(16, id, strconv.Itoa(i)), "role": m.Role, "parts": uistream.UIParts(&m)}
			if i == len(said)-1 {
				ui["id"] = d.Message
			}
			page = append(page, c.Json(ui))
		}
		all = append(append(page, c.Json(h.Message())), all...)
		id = d.Before
	}
	return c.Write(http.StatusOK, map[string]any{"messages": all})
}
