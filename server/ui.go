package server

// ui.go: the endpoints of the AI SDK's useChat.

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
	"github.com/pawl-go/pawl/store"
)

// uiOptions returns the options of a stream, from the query.
func (c *call) uiOptions() (o uistream.Options, err error) {
	q, err := c.params("sdk", "agent")
	if sdk := q.Get("sdk"); sdk == "7" {
		o.Protocol = uistream.AISDK7
	} else if err == nil && sdk != "" && sdk != "6" {
		err = badRequest("sdk is 6 or 7", "")
	}
	return o, err
}

// ui handles POST /v1/ui/{agent}.
func (c *call) ui() error {
	var r uistream.Request
	if err := c.read(&r); err != nil {
		return err
	}
	n := len(r.Messages)
	if r.ID == "" || n == 0 {
		return badRequest("id or messages are missing", "useChat sends both")
	}
	last := &r.Messages[n-1]
	in := &front{again: r.Trigger == "regenerate-message"}
	in.dress.Message = last.ID
	var err error
	in.o, err = c.uiOptions()
	if err != nil {
		return err
	}
	in.model, in.prefix, err = c.conversation("ui", r.Agent, r.ID)
	if err != nil {
		return err
	}
	if last.Role == "assistant" {
		in.run, in.answers = last.ID, r.Answers(&in.o)
		return c.answerFront(in)
	}
	for _, t := range r.Tools {
		in.dress.Tools = append(in.dress.Tools, clientTool(t.Function))
	}
	id := func(i int) string { return r.Messages[i].ID }
	if err := c.follows(in, n, id, func(i int) (llm.Message, error) { return r.Messages[i].LLM() }); err != nil {
		return err
	}
	return c.answerFront(in)
}

// uiChat returns the newest run of the conversation in the path. Nil means that there is none.
func (c *call) uiChat() (*store.JournalRun, uistream.Options, error) {
	o, err := c.uiOptions()
	if err != nil {
		return nil, o, err
	}
	_, prefix, err := c.conversation("ui", c.r.URL.Query().Get("agent"), c.r.PathValue("chat"))
	if err != nil {
		return nil, o, err
	}
	head, err := c.newest(prefix, "")
	return head, o, err
}

// uiStream handles GET /v1/ui/{agent}/{chat}/stream.
func (c *call) uiStream() error {
	head, o, err := c.uiChat()
	if err != nil {
		return err
	}
	if head == nil || head.State == store.JournalOver || head.State == store.JournalFailed {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	leave, err := c.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.look(place{head.Scope, head.ID})
	if err != nil {
		return err
	}
	return c.tellFront(l, o)
}

// uiStop handles POST /v1/ui/{agent}/{chat}/stop.
func (c *call) uiStop() error {
	head, _, err := c.uiChat()
	if err == nil && head != nil {
		_, err = c.giveUp(head.ID)
	}
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// uiMessages handles GET /v1/ui/{agent}/{chat}: the chain of runs that ends with the newest.
func (c *call) uiMessages() error {
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
		x, d, err := c.storedRun(id)
		if err != nil {
			return err
		}
		l, err := c.look(place{c.client.scope(), id})
		if err != nil {
			return err
		}
		h := uistream.NewHistory(c.options(l, o))
		for ev, err := range l.events(c.r.Context(), false, nil, nil) {
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
			ui := map[string]any{"id": short(16, id, strconv.Itoa(i)), "role": m.Role, "parts": uistream.UIParts(&m)}
			if i == len(said)-1 {
				ui["id"] = d.Message
			}
			page = append(page, c.json(ui))
		}
		all = append(append(page, c.json(h.Message())), all...)
		id = d.Before
	}
	return c.write(http.StatusOK, map[string]any{"messages": all})
}
