package ui

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
)

// Agui handles POST /v1/agui/{agent}.
func (c *call) Agui() error {
	if strings.TrimSpace(c.R.Header.Get("Accept")) == "application/vnd.ag-ui.event+proto" {
		return runs.Fault("not_acceptable", "the answer is text/event-stream", "send Accept: text/event-stream")
	}
	var r uistream.RunInput
	q, err := c.Params("inner")
	if err := cmp.Or(err, c.Read(&r)); err != nil {
		return err
	} else if r.ThreadID == "" || r.RunID == "" {
		return runs.BadRequest("threadId or runId is missing", "an AG-UI client sends both")
	}
	in := &conversation.Front{Key: r.RunID, O: r.Options()}
	in.O.Inner = q.Get("inner") == "1"
	in.Model, in.Prefix, err = c.Conversation("agui", "", r.ThreadID)
	if err != nil {
		return err
	}
	var messages []uistream.RunMessage // without the messages of this run
	for _, m := range r.Messages {
		if run, _ := uistream.RunOf(m.ID); run != in.Prefix+runs.Short(20, r.RunID) {
			messages = append(messages, m)
		}
		if m.Role == "user" {
			in.Dress.Message = m.ID
		}
	}
	n := len(messages)
	run := func(i int) string { id, _ := uistream.RunOf(messages[i].ID); return id }
	if err := c.Follows(in, n, run, func(i int) (llm.Message, error) { return messages[i].LLM() }); err != nil {
		return err
	}
	if len(r.Resume) > 0 || n > 0 && messages[n-1].Role != "user" {
		in.Run = in.Dress.Before
		if in.Run == "" && len(r.Resume) > 0 { // it sends no history
			in.Run, _ = uistream.RunOf(r.Resume[0].InterruptID)
			in.Messages = nil
		}
		in.Answers = r.Answers(in.Run, &in.O)
		return c.AnswerFront(in)
	}
	for _, about := range r.Context {
		in.System([]llm.Part{llm.Text{Text: "The application states: " + about.Description + ": " + about.Value}})
	}
	for _, t := range r.Tools {
		in.Dress.Tools = append(in.Dress.Tools, runs.ClientTool(t))
	}
	return c.AnswerFront(in)
}

// AguiAbout handles GET /v1/agui/{agent}.
func (c *call) AguiAbout() error {
	a, err := c.S.Agent(c.R.PathValue("agent"))
	if err != nil {
		return err
	}
	list, err := pawl.Toolsets(a.Tools).Tools(c.Ctx())
	if err != nil {
		return err
	}
	tools := []runs.ClientTool{}
	for _, t := range list {
		tools = append(tools, runs.ClientTool{Name: t.Name, Description: t.Description, Parameters: t.Input})
	}
	return c.Write(http.StatusOK, object{
		"identity":       object{"name": a.Name, "description": c.S.O.About[a.Name].Description},
		"tools":          object{"supported": true, "items": tools, "parallelCalls": true, "clientProvided": true},
		"humanInTheLoop": object{"supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true},
	})
}
