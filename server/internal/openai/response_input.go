package openai

// response_input.go: the items that a stored response was made from.

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
)

// inputItems handles GET /v1/responses/{id}/input_items.
func (c *call) inputItems() error {
	s, err := c.storedResponse(c.Request.PathValue("id"))
	if err != nil {
		return err
	}
	items := s.input()
	q := c.Request.URL.Query()
	if q.Get("order") != "asc" {
		slices.Reverse(items)
	}

	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(m object) bool { return m["id"] == after })
		if i < 0 {
			return runs.Fault("not_found", "the response has no item "+strconv.Quote(after), "")
		}
		items = items[i+1:]
	}
	const most = 100
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "20"))
	if err != nil || limit < 1 || limit > most {
		return runs.BadRequest("limit must be a number from 1 to "+strconv.Itoa(most), "")
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]

	page := object{"object": "list", "data": items, "has_more": more, "first_id": nil, "last_id": nil}
	if len(items) > 0 {
		page["first_id"] = items[0]["id"]
		page["last_id"] = items[len(items)-1]["id"]
	}
	return c.Write(http.StatusOK, page)
}

// input returns the items that a response was made from: the messages of its run, and what the
// client has seen of the replies before it.
func (s *storedResponse) input() []object {
	items := []object{}
	of := strings.TrimPrefix(turns.ResponseID(s.head.ID, s.skip), "resp_")
	add := func(m object) {
		if m["id"] == nil {
			m["id"] = "msg_" + of + "_in_" + strconv.Itoa(len(items))
		}
		items = append(items, m)
	}

	names := s.calledNames()
	for i := range s.export.Messages {
		s.addMessage(&s.export.Messages[i], names, add)
	}

	n := 0
	for _, r := range s.export.Replies {
		if !runs.IsOwn(r.Key) {
			continue
		}
		n++
		if n > s.skip {
			break
		}
		s.addReply(&r, add)
	}
	return items
}

// addMessage adds the items of a message that the run began with. The agent's own calls are not
// among them. names comes from calledNames.
func (s *storedResponse) addMessage(m *llm.Message, names map[string]string, add func(object)) {
	if content := contentItems(m); len(content) > 0 {
		add(object{"type": "message", "role": m.Role, "status": "completed", "content": content})
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.ToolCall:
			if s.extras.Executes(p) {
				call := turns.ToClient(s.extras, p)
				add(item(call, "completed", call.Input()))
			}
		case llm.ToolResult:
			if name := names[p.CallID]; s.extras.Tool(name) != nil {
				add(resultItem(turns.ToClient(s.extras, llm.ToolCall{ID: p.CallID, Name: name}), p))
			}
		}
	}
}

// calledNames returns the names of the tools by the IDs of their calls in the messages that the run
// began with. The first call of an ID counts.
func (s *storedResponse) calledNames() map[string]string {
	names := map[string]string{}
	for _, m := range s.export.Messages {
		for _, call := range m.Calls() {
			if _, known := names[call.ID]; !known {
				names[call.ID] = call.Name
			}
		}
	}
	return names
}

// addReply adds a reply of an earlier response of the run, and the client's results.
func (s *storedResponse) addReply(r *journal.ExportedReply, add func(object)) {
	message := r.Response.Message
	if text := message.Text(); text != "" {
		add(object{"type": "message", "role": "assistant", "status": "completed", "content": []any{part(text)}})
	}
	for i, call := range message.Calls() {
		if !s.extras.Executes(call) {
			continue
		}
		key := runs.CallKey(r.Key, i)
		call.ID = turns.CallID(s.head.ID, key)
		to := turns.ToClient(s.extras, call)
		add(item(to, "completed", to.Input()))

		ended := slices.IndexFunc(s.export.Calls, func(x journal.ExportedCall) bool { return x.Key == key })
		if ended >= 0 {
			add(resultItem(to, s.export.Calls[ended].Execution.Result))
		}
	}
}

// resultItem returns the result of a call of the client as an item.
func resultItem(call turns.ClientCall, result llm.ToolResult) object {
	kind := "function_call_output"
	if call.Freeform {
		kind = "custom_tool_call_output"
	}
	return object{"type": kind, "status": "completed", "call_id": call.ID, "output": result.Text()}
}

// contentItems returns the texts and files of a message as content of an item.
func contentItems(m *llm.Message) (content []any) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			if m.Role == llm.RoleAssistant {
				content = append(content, part(p.Text))
			} else {
				content = append(content, object{"type": "input_text", "text": p.Text})
			}
		case llm.Media:
			content = append(content, mediaItem(p))
		}
	}
	return content
}

// mediaItem returns an image or a file as content of an item.
func mediaItem(p llm.Media) object {
	url := p.URL
	if url == "" {
		url = "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
	}
	switch {
	case strings.HasPrefix(p.MIME, "image/") || p.MIME == "":
		return object{"type": "input_image", "image_url": url, "detail": "auto"}
	case p.URL != "":
		return object{"type": "input_file", "file_url": url}
	}
	return object{"type": "input_file", "file_data": url}
}
