package ui

// agui.go: the endpoints of AG-UI.

import (
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/conversation"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/uistream"
)

// agui handles POST /v1/agui/{agent}.
func (c *call) agui() error {
	if strings.TrimSpace(c.Request.Header.Get("Accept")) == "application/vnd.ag-ui.event+proto" {
		return runs.Fault("not_acceptable", "the answer is text/event-stream", "send Accept: text/event-stream")
	}
	q, err := c.Params("inner")
	if err != nil {
		return err
	}
	var r uistream.RunInput
	if err := c.Read(&r); err != nil {
		return err
	}
	if r.ThreadID == "" || r.RunID == "" {
		return runs.BadRequest("threadId or runId is missing", "an AG-UI client sends both")
	}

	in := &conversation.Request{Key: r.RunID, Stream: r.Options()}
	in.Stream.Inner = q.Get("inner") == "1"
	in.Agent, in.Prefix, err = c.Identify("agui", "", r.ThreadID)
	if err != nil {
		return err
	}
	answers, err := c.addMessages(in, &r)
	if err != nil {
		return err
	}
	if answers || len(r.Resume) > 0 {
		in.Run = in.Extras.Before
		if in.Run == "" && len(r.Resume) > 0 { // it sends no history
			in.Run, _ = uistream.RunOf(r.Resume[0].InterruptID)
			in.Messages = nil
		}
		in.Answers = r.Answers(in.Run, &in.Stream)
		return c.Respond(in)
	}

	for _, about := range r.Context {
		text := "The application states: " + about.Description + ": " + about.Value
		in.Extras.AddSystem([]llm.Part{llm.Text{Text: text}})
	}
	for _, t := range r.Tools {
		in.Extras.Tools = append(in.Extras.Tools, clientTool(uistream.PageTool(t)))
	}
	return c.Respond(in)
}

// clientTool converts a tool that a page executes.
func clientTool(t uistream.PageTool) runs.ClientTool {
	return runs.ClientTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
}

// addMessages adds the messages of r, without the messages of its own run. answers reports whether
// they end with the results of calls, and not with a message of the user.
func (c *call) addMessages(in *conversation.Request, r *uistream.RunInput) (answers bool, err error) {
	own := in.Prefix + conversation.Hash(20, r.RunID)
	var items []conversation.Item
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == "user" {
			in.Extras.Message = m.ID
		}
		run, _ := uistream.RunOf(m.ID)
		if run == own {
			continue
		}
		items = append(items, conversation.Item{Run: run, Read: m.LLM})
		answers = m.Role != "user"
	}
	return answers, c.AddHistory(in, items)
}

// capabilities handles GET /v1/agui/{agent}.
func (c *call) capabilities() error {
	a, err := c.Runs.Agent(c.Request.PathValue("agent"))
	if err != nil {
		return err
	}
	list, err := pawl.Toolsets(a.Tools).Tools(c.Context())
	if err != nil {
		return err
	}
	tools := []runs.ClientTool{}
	for _, t := range list {
		tools = append(tools, runs.ClientTool{Name: t.Name, Description: t.Description, Parameters: t.Input})
	}

	return c.Write(http.StatusOK, object{
		"identity": object{
			"name":        a.Name,
			"description": c.About[a.Name].Description,
		},
		"tools": object{
			"supported":      true,
			"items":          tools,
			"parallelCalls":  true,
			"clientProvided": true,
		},
		"humanInTheLoop": object{
			"supported":        true,
			"approvals":        true,
			"interrupts":       true,
			"approveWithEdits": true,
		},
	})
}
