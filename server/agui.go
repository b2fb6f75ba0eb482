package server

// agui.go: the endpoints of AG-UI.

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
)

// agui handles POST /v1/agui/{agent}.
func (c *call) agui() error {
	if strings.TrimSpace(c.r.Header.Get("Accept")) == "application/vnd.ag-ui.event+proto" {
		return fault("not_acceptable", "the answer is text/event-stream", "send Accept: text/event-stream")
	}
	var r uistream.RunInput
	q, err := c.params("inner")
	if err := cmp.Or(err, c.read(&r)); err != nil {
		return err
	} else if r.ThreadID == "" || r.RunID == "" {
		return badRequest("threadId or runId is missing", "an AG-UI client sends both")
	}
	in := &front{key: r.RunID, o: r.Options()}
	in.o.Inner = q.Get("inner") == "1"
	in.model, in.prefix, err = c.conversation("agui", "", r.ThreadID)
	if err != nil {
		return err
	}
	var messages []uistream.RunMessage // without the messages of this run
	for _, m := range r.Messages {
		if run, _ := uistream.RunOf(m.ID); run != in.prefix+short(20, r.RunID) {
			messages = append(messages, m)
		}
		if m.Role == "user" {
			in.dress.Message = m.ID
		}
	}
	n := len(messages)
	run := func(i int) string { id, _ := uistream.RunOf(messages[i].ID); return id }
	if err := c.follows(in, n, run, func(i int) (llm.Message, error) { return messages[i].LLM() }); err != nil {
		return err
	}
	if len(r.Resume) > 0 || n > 0 && messages[n-1].Role != "user" {
		in.run = in.dress.Before
		if in.run == "" && len(r.Resume) > 0 { // it sends no history
			in.run, _ = uistream.RunOf(r.Resume[0].InterruptID)
			in.messages = nil
		}
		in.answers = r.Answers(in.run, &in.o)
		return c.answerFront(in)
	}
	for _, about := range r.Context {
		in.system([]llm.Part{llm.Text{Text: "The application states: " + about.Description + ": " + about.Value}})
	}
	for _, t := range r.Tools {
		in.dress.Tools = append(in.dress.Tools, clientTool(t))
	}
	return c.answerFront(in)
}

// aguiAbout handles GET /v1/agui/{agent}.
func (c *call) aguiAbout() error {
	a, err := c.s.agent(c.r.PathValue("agent"))
	if err != nil {
		return err
	}
	list, err := pawl.Toolsets(a.Tools).Tools(c.ctx())
	if err != nil {
		return err
	}
	tools := []clientTool{}
	for _, t := range list {
		tools = append(tools, clientTool{t.Name, t.Description, t.Input})
	}
	return c.write(http.StatusOK, object{
		"identity":       object{"name": a.Name, "description": c.s.o.About[a.Name].Description},
		"tools":          object{"supported": true, "items": tools, "parallelCalls": true, "clientProvided": true},
		"humanInTheLoop": object{"supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true},
	})
}
