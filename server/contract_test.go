package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
)

// An agent does the same at each endpoint.
func TestContract(t *testing.T) {
	contract.Play(t, "/v1/runs", visitRuns)
	contract.Play(t, "chat completions", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitChat(t, s, false)
	})
	contract.Play(t, "responses", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitResponses(t, s, false)
	})
	contract.Play(t, "messages", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitMessages(t, s, false)
	})
	contract.Play(t, "UI stream", visitUI)
	contract.Play(t, "AG-UI", visitAGUI)
	contract.Play(t, "A2A", visitA2A)
}

// An agent does the same at the streams of the APIs of models.
func TestContractOfStreams(t *testing.T) {
	contract.Play(t, "chat completions", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitChat(t, s, true)
	})
	contract.Play(t, "responses", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitResponses(t, s, true)
	})
	contract.Play(t, "messages", func(t *testing.T, s *contract.Scene) contract.Visit {
		return visitMessages(t, s, true)
	})
}

// scene starts a server with the agent of a scene.
func scene(t *testing.T, s *contract.Scene) *serving {
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{s.Agent()}
		o.A2A = &server.A2A{}
		o.Access.Tokens = a2aTokens[:1]
	})
	v.token = a2aTokens[0].Token
	return v
}

// object is JSON as it came.
type object = map[string]any

// postJSON sends JSON, and returns the status and the body.
func (v *serving) postJSON(path string, body any, headers ...string) (status int, reply string) {
	v.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.postJSONText(path, string(b), headers...)
}

// postJSONText sends a body, and returns the status and the body of the reply.
func (v *serving) postJSONText(path, body string, headers ...string) (status int, reply string) {
	v.t.Helper()
	res := v.request(http.MethodPost, path, body, headers...)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, string(got)
}

// visitRuns is a client of /v1/runs.
func visitRuns(t *testing.T, s *contract.Scene) contract.Visit {
	v := scene(t, s)
	n := 0
	id := func(n int) string { return fmt.Sprint("run-", n) }
	say := func(body object) contract.Shown {
		body["wait"] = true
		body["id"] = id(n)
		status, reply := v.postJSON("/v1/runs", body)
		if status/100 != 2 {
			return contract.Shown{End: pawl.ClassFailed, Cause: reply}
		}
		var run api.Run
		if err := json.Unmarshal([]byte(reply), &run); err != nil {
			t.Fatal(err)
		}
		return shownRun(&run)
	}
	return contract.Visit{
		Say: func(text string) contract.Shown {
			n++
			body := object{"input": text}
			if n > 1 {
				body = object{"previous": id(n - 1), "messages": []llm.Message{llm.User(text)}}
			}
			return say(body)
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			return say(object{"messages": []llm.Message{contract.Decisions(answers)}})
		},
	}
}

// shownRun returns what a client sees of a run.
func shownRun(run *api.Run) contract.Shown {
	shown := contract.Shown{Text: run.Answer, End: run.Stop.Class(), Cause: run.Cause, Output: run.Output}
	if run.Spent != nil {
		shown.Tokens = run.Spent.Usage.Input + run.Spent.Usage.Output
	}
	for _, w := range run.Pending {
		shown.Questions = append(shown.Questions, contract.QuestionOf(&w))
	}
	for _, c := range run.Calls {
		shown.Calls = append(shown.Calls, c.Name+" "+string(c.Args))
	}
	return shown
}

// newest returns the run that began last.
func (v *serving) newest() (run api.Run) {
	v.t.Helper()
	var list api.Runs
	v.do("GET", "/v1/runs", "", 200, &list)
	last := slices.MaxFunc(list.Runs, func(a, b api.Run) int { return a.Created.Compare(b.Created) })
	v.do("GET", "/v1/runs/"+last.ID, "", 200, &run)
	return run
}

// decide answers the questions of a run of a client whose protocol has no answers.
func (v *serving) decide(answers []contract.Answer) {
	v.t.Helper()
	body := object{"id": v.newest().ID, "wait": true, "messages": []llm.Message{contract.Decisions(answers)}}
	if status, reply := v.postJSON("/v1/runs", body); status/100 != 2 {
		v.t.Fatalf("%d: %s", status, reply)
	}
}

// modelAPI is a client of one of the APIs of models.
type modelAPI struct {
	v    *serving
	read func(status int, reply string) contract.Shown
	path string
	last object // the last request
}

// send sends a request. again is the number of attempts before.
func (c *modelAPI) send(body object, again int) contract.Shown {
	c.last = body
	shown := c.read(c.v.postJSON(c.path, body, "X-Stainless-Retry-Count", fmt.Sprint(again)))
	if shown.End == pawl.ClassWaiting && len(shown.Questions) == 0 {
		run := c.v.newest()
		shown.Questions = shownRun(&run).Questions
	}
	return shown
}

// decided answers questions outside of the protocol, and sends the request again.
func (c *modelAPI) decided(answers []contract.Answer) contract.Shown {
	c.v.decide(answers)
	return c.send(c.last, 1)
}

// visitChat is a client of Chat Completions.
func visitChat(t *testing.T, s *contract.Scene, stream bool) contract.Visit {
	c := &modelAPI{v: scene(t, s), path: "/v1/chat/completions", read: readChat}
	var messages []any
	send := func(again int) contract.Shown {
		body := object{"model": s.Name, "messages": messages}
		if stream {
			body["stream"] = true
			body["stream_options"] = object{"include_usage": true}
		}
		return c.send(body, again)
	}
	var last contract.Shown
	return contract.Visit{
		Say: func(text string) contract.Shown {
			if len(messages) > 0 {
				messages = append(messages, object{"role": "assistant", "content": last.Text})
			}
			messages = append(messages, object{"role": "user", "content": text})
			last = send(0)
			return last
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			if answers[0].Result == "" {
				return c.decided(answers)
			}
			q := answers[0].Question
			messages = append(messages,
				object{"role": "assistant", "tool_calls": []any{object{"id": q.Key, "type": "function",
					"function": object{"name": q.Tool, "arguments": q.Args}}}},
				object{"role": "tool", "tool_call_id": q.Key, "content": answers[0].Result})
			return send(0)
		},
	}
}

// chatForm is a reply, or a chunk of it, of Chat Completions.
type chatForm struct {
	Choices []struct {
		Finish         string `json:"finish_reason"`
		Message, Delta struct {
			Content string
			Calls   []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	Usage struct {
		Total int `json:"total_tokens"`
	}
	Error *struct{ Code, Message string }
}

// readChat returns what a reply shows.
func readChat(_ int, reply string) (shown contract.Shown) {
	for _, data := range frames(reply) {
		var part chatForm
		if json.Unmarshal([]byte(data), &part) != nil {
			continue
		}
		if part.Error != nil {
			return modelError(part.Error.Code, part.Error.Message)
		}
		shown.Tokens = cmp.Or(part.Usage.Total, shown.Tokens)
		for _, c := range part.Choices {
			shown.Text += c.Message.Content + c.Delta.Content
			shown.End = cmp.Or(endOfChat(c.Finish), shown.End)
			for _, call := range append(c.Message.Calls, c.Delta.Calls...) {
				q := contract.Question{Key: call.ID, Tool: call.Function.Name, Args: call.Function.Arguments}
				shown.Questions = append(shown.Questions, q)
				shown.Calls = append(shown.Calls, call.Function.Name+" "+call.Function.Arguments)
			}
		}
	}
	shown.Output = outputOf(shown.Text)
	return shown
}

// outputOf returns a text as output; nil if it is no JSON.
func outputOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}

// endOfChat returns the class of a finish reason.
func endOfChat(reason string) pawl.StopClass {
	return map[string]pawl.StopClass{"stop": pawl.ClassAnswered, "length": pawl.ClassLimited,
		"tool_calls": pawl.ClassWaiting, "content_filter": pawl.ClassFailed}[reason]
}

// modelError returns what an error shows.
func modelError(code, message string) contract.Shown {
	if code == "needs_decision" {
		return contract.Shown{End: pawl.ClassWaiting, Cause: message}
	}
	return contract.Shown{End: pawl.ClassFailed, Cause: message}
}

// frames returns the JSON texts of a body: the events of a stream, or the whole.
func frames(body string) (all []string) {
	if !strings.Contains(body, "data: ") {
		return []string{body}
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// visitResponses is a client of Responses.
func visitResponses(t *testing.T, s *contract.Scene, stream bool) contract.Visit {
	c := &modelAPI{v: scene(t, s), path: "/v1/responses"}
	id := ""
	c.read = func(_ int, reply string) contract.Shown {
		shown, made := readResponse(reply)
		id = cmp.Or(made, id)
		return shown
	}
	send := func(input any) contract.Shown {
		body := object{"model": s.Name, "input": input}
		if id != "" {
			body["previous_response_id"] = id
		}
		if stream {
			body["stream"] = true
		}
		return c.send(body, 0)
	}
	return contract.Visit{
		Say: func(text string) contract.Shown { return send(text) },
		Reply: func(answers []contract.Answer) contract.Shown {
			if answers[0].Result == "" {
				return c.decided(answers)
			}
			return send([]any{object{"type": "function_call_output", "call_id": answers[0].Question.Key,
				"output": answers[0].Result}})
		},
	}
}

// responseForm is a response of Responses.
type responseForm struct {
	ID, Status string
	Incomplete *struct{ Reason string } `json:"incomplete_details"`
	Output     []struct {
		Type, Name, Arguments string
		Call                  string `json:"call_id"`
		Content               []struct{ Text string }
	}
	Usage struct {
		Total int `json:"total_tokens"`
	}
	Error *struct{ Code, Message string }
}

// readResponse returns what a reply shows, and the ID of the response.
func readResponse(reply string) (shown contract.Shown, id string) {
	var last responseForm
	for _, data := range frames(reply) {
		var event struct {
			Type, Code, Message string
			Response            responseForm
			Error               *struct{ Code, Message string }
		}
		if json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		switch {
		case event.Type == "":
			_ = json.Unmarshal([]byte(data), &last)
		case event.Type == "error":
			return modelError(event.Code, event.Message), id
		case event.Response.ID != "":
			last = event.Response
		}
	}
	if last.Error != nil {
		return modelError(last.Error.Code, last.Error.Message), last.ID
	}

	shown.End = map[string]pawl.StopClass{"completed": pawl.ClassAnswered, "incomplete": pawl.ClassLimited,
		"failed": pawl.ClassFailed}[last.Status]
	shown.Tokens = last.Usage.Total
	for _, item := range last.Output {
		switch item.Type {
		case "message":
			for _, c := range item.Content {
				shown.Text += c.Text
			}
		case "function_call":
			shown.End = pawl.ClassWaiting
			q := contract.Question{Key: item.Call, Tool: item.Name, Args: item.Arguments}
			shown.Questions = append(shown.Questions, q)
			shown.Calls = append(shown.Calls, item.Name+" "+item.Arguments)
		}
	}
	shown.Output = outputOf(shown.Text)
	return shown, last.ID
}

// visitUI is a page of the AI SDK.
func visitUI(t *testing.T, s *contract.Scene) contract.Visit {
	v := scene(t, s)
	var messages []any
	edits := object{}
	var last uiMessage
	send := func() contract.Shown {
		status, reply := v.postJSON("/v1/ui/"+s.Name, object{"id": "chat", "trigger": "submit-message",
			"messages": messages, "pawl": object{"edits": edits}})
		if status != http.StatusOK {
			return contract.Shown{End: pawl.ClassFailed, Cause: reply}
		}
		last = readUI(reply)
		return last.shown
	}
	return contract.Visit{
		Say: func(text string) contract.Shown {
			if len(messages) > 0 {
				messages = append(messages, last.form(nil))
			}
			messages = append(messages, object{"id": fmt.Sprint("m", len(messages)), "role": "user",
				"parts": []any{object{"type": "text", "text": text}}})
			return send()
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			before := messages
			for _, a := range answers {
				if a.Args != "" {
					edits[a.Question.Digest] = json.RawMessage(a.Args)
				}
			}
			messages = append(slices.Clone(messages), last.form(answers))
			shown := send()
			messages = before
			return shown
		},
	}
}

// uiMessage is the message that a stream of the AI SDK builds.
type uiMessage struct {
	id    string
	shown contract.Shown
}

// form returns the message as a page sends it, with the answers to its questions.
func (m *uiMessage) form(answers []contract.Answer) object {
	parts := []any{}
	if m.shown.Text != "" {
		parts = append(parts, object{"type": "text", "text": m.shown.Text})
	}
	for _, a := range answers {
		part := object{"type": "tool-" + a.Question.Tool, "toolCallId": a.Question.Key,
			"input": json.RawMessage(a.Question.Args)}
		if a.Result != "" {
			part["state"] = "output-available"
			part["output"] = a.Result
		} else {
			part["state"] = "approval-responded"
			part["approval"] = object{"id": a.Question.Digest, "approved": a.Approve, "reason": a.Reason}
		}
		parts = append(parts, part)
	}
	return object{"id": m.id, "role": "assistant", "parts": parts}
}

// uiFrame is a chunk of a stream of the AI SDK.
type uiFrame struct {
	Type, MessageID, Delta, ErrorText, FinishReason, Reason string
	ToolCallID, ToolName, ApprovalID                        string
	Input, Data                                             json.RawMessage
	ProviderExecuted                                        *bool
	MessageMetadata                                         struct {
		Pawl struct {
			Stop  pawl.StopReason
			Cause string
			Spent *pawl.Spent
		}
	}
}

// readUI returns the message of a stream.
func readUI(body string) (m uiMessage) {
	var calls []contract.Question
	asked := map[string]string{}
	returned := map[string]bool{}
	for _, data := range frames(body) {
		var f uiFrame
		if json.Unmarshal([]byte(data), &f) != nil {
			continue
		}
		switch f.Type {
		case "start":
			m.id = f.MessageID
		case "start-step":
			m.shown.Text = ""
		case "text-delta":
			m.shown.Text += f.Delta
		case "data-pawl-output":
			m.shown.Output = f.Data
		case "tool-input-available":
			calls = append(calls, contract.Question{Key: f.ToolCallID, Tool: f.ToolName, Args: string(f.Input)})
			returned[f.ToolCallID] = f.ProviderExecuted == nil
		case "tool-approval-request":
			asked[f.ToolCallID] = f.ApprovalID
		case "error":
			m.shown.End = pawl.ClassFailed
			m.shown.Cause = f.ErrorText
		case "finish":
			stop := f.MessageMetadata.Pawl
			m.shown.End = stop.Stop.Class()
			m.shown.Cause = stop.Cause
			if stop.Spent != nil {
				m.shown.Tokens = stop.Spent.Usage.Input + stop.Spent.Usage.Output
			}
		}
	}
	for _, q := range calls {
		q.Digest = asked[q.Key]
		if q.Digest != "" || returned[q.Key] {
			m.shown.Questions = append(m.shown.Questions, q)
			m.shown.Calls = append(m.shown.Calls, q.Tool+" "+q.Args)
		}
	}
	return m
}

// visitAGUI is a client of AG-UI.
func visitAGUI(t *testing.T, s *contract.Scene) contract.Visit {
	v := scene(t, s)
	messages := []any{}
	var last contract.Shown
	var id string
	n := 0
	send := func(resume []any) contract.Shown {
		n++
		status, reply := v.postJSON("/v1/agui/"+s.Name, object{"threadId": "t", "runId": fmt.Sprint("r", n),
			"protocolVersion": "1.0", "messages": messages, "tools": []any{}, "context": []any{}, "state": object{},
			"forwardedProps": object{}, "resume": resume})
		if status != http.StatusOK {
			return contract.Shown{End: pawl.ClassFailed, Cause: reply}
		}
		last, id = readAGUI(reply)
		return last
	}
	return contract.Visit{
		Say: func(text string) contract.Shown {
			if len(messages) > 0 {
				messages = append(messages, object{"id": id, "role": "assistant", "content": last.Text})
			}
			messages = append(messages, object{"id": fmt.Sprint("m", n), "role": "user", "content": text})
			return send(nil)
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			var resume []any
			for _, a := range answers {
				if a.Result != "" {
					messages = append(messages,
						object{"id": id, "role": "assistant", "toolCalls": []any{object{"id": a.Question.Key, "type": "function",
							"function": object{"name": a.Question.Tool, "arguments": a.Question.Args}}}},
						object{"id": "res", "role": "tool", "toolCallId": a.Question.Key, "content": a.Result})
					continue
				}
				payload := object{"approved": a.Approve, "reason": a.Reason}
				if a.Args != "" {
					payload["args"] = json.RawMessage(a.Args)
				}
				resume = append(resume, object{"interruptId": a.Question.Digest, "status": "resolved", "payload": payload})
			}
			return send(resume)
		},
	}
}

// aguiFrame is an event of AG-UI.
type aguiFrame struct {
	Type, MessageID, Delta, Message, Code string
	Name, ParentMessageID                 string
	ToolCallID, ToolCallName              string
	Value                                 struct{ Stop, Cause string }
	Result                                json.RawMessage
	Usage                                 json.RawMessage
	Outcome                               struct {
		Type       string
		Pending    []string `json:"pendingToolCallIds"`
		Interrupts []struct{ ID, ToolCallID string }
	}
}

// readAGUI returns what a stream shows, and the ID of its last message.
func readAGUI(body string) (shown contract.Shown, id string) {
	names := map[string]string{}
	args := map[string]string{}
	done := map[string]bool{}
	var order []string
	var limit string
	for _, data := range frames(body) {
		var f aguiFrame
		if json.Unmarshal([]byte(data), &f) != nil {
			var plain struct{ Type string }
			if json.Unmarshal([]byte(data), &plain) != nil || plain.Type == "" {
				continue
			}
			f.Type = plain.Type
		}
		switch f.Type {
		case "STEP_STARTED":
			shown.Text = ""
		case "TEXT_MESSAGE_CONTENT":
			shown.Text += f.Delta
			id = f.MessageID
		case "TOOL_CALL_START":
			names[f.ToolCallID] = f.ToolCallName
			id = f.ParentMessageID
			order = append(order, f.ToolCallID)
		case "TOOL_CALL_ARGS":
			args[f.ToolCallID] += f.Delta
		case "TOOL_CALL_RESULT":
			done[f.ToolCallID] = true
		case "CUSTOM":
			if f.Name == "pawl.stop" {
				limit = f.Value.Cause
			}
		case "RUN_ERROR":
			shown.End = pawl.ClassFailed
			shown.Cause = f.Message
		case "RUN_FINISHED":
			shown.End = pawl.ClassAnswered
			if limit != "" {
				shown.End = pawl.ClassLimited
				shown.Cause = limit
			}
			shown.Output = f.Result
			shown.Tokens = tokensOf(f.Usage)
			for _, i := range f.Outcome.Interrupts {
				shown.End = pawl.ClassWaiting
				shown.Questions = append(shown.Questions, contract.Question{Key: i.ToolCallID, Digest: i.ID,
					Tool: names[i.ToolCallID], Args: args[i.ToolCallID]})
			}
			for _, key := range f.Outcome.Pending {
				shown.End = pawl.ClassWaiting
				q := contract.Question{Key: key, Tool: names[key], Args: args[key]}
				shown.Questions = append(shown.Questions, q)
			}
		}
	}
	for _, key := range order {
		if !done[key] {
			shown.Calls = append(shown.Calls, names[key]+" "+args[key])
		}
	}
	return shown, id
}

// tokensOf returns the sum of the usage of AG-UI.
func tokensOf(usage json.RawMessage) int {
	var list []struct{ InputTokens, OutputTokens int }
	var one struct{ InputTokens, OutputTokens int }
	if json.Unmarshal(usage, &list) != nil && json.Unmarshal(usage, &one) == nil {
		list = append(list, one)
	}
	n := 0
	for _, u := range list {
		n += u.InputTokens + u.OutputTokens
	}
	return n
}

// visitA2A is a client of the official SDK of A2A.
func visitA2A(t *testing.T, s *contract.Scene) contract.Visit {
	v := scene(t, s)
	client := a2aAs(t, a2aCardAt(t, v.url), a2aTokens[0])
	var last *a2a.Task
	send := func(req *a2a.SendMessageRequest) contract.Shown {
		res, err := client.SendMessage(t.Context(), req)
		if err != nil {
			return contract.Shown{End: pawl.ClassFailed, Cause: err.Error()}
		}
		last = res.(*a2a.Task)
		return shownTask(t, last)
	}
	return contract.Visit{
		Say: func(text string) contract.Shown {
			req := a2aSay(text)
			if last != nil {
				req.Message.ContextID = last.ContextID
			}
			return send(req)
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			var list []any
			for _, a := range answers {
				entry := object{"key": a.Question.Key, "digest": a.Question.Digest}
				if a.Result != "" {
					entry["text"] = a.Result
				} else {
					entry["approve"] = a.Approve
					entry["reason"] = a.Reason
				}
				if a.Args != "" {
					entry["args"] = json.RawMessage(a.Args)
				}
				list = append(list, entry)
			}
			part := a2a.NewDataPart(plainJSON(t, object{"pawl": list}))
			return send(&a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, last, part)})
		},
	}
}

// plainJSON returns v as JSON without types.
func plainJSON(t *testing.T, v any) (plain map[string]any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// shownTask returns what a client sees of a task.
func shownTask(t *testing.T, task *a2a.Task) (shown contract.Shown) {
	t.Helper()
	shown.End = map[a2a.TaskState]pawl.StopClass{a2a.TaskStateCompleted: pawl.ClassAnswered,
		a2a.TaskStateInputRequired: pawl.ClassWaiting, a2a.TaskStateCanceled: pawl.ClassCancelled,
		a2a.TaskStateFailed: pawl.ClassFailed}[task.Status.State]
	for _, artifact := range task.Artifacts {
		for _, p := range artifact.Parts {
			shown.Text += p.Text()
			if data := p.Data(); data != nil {
				b, _ := json.Marshal(data)
				shown.Output = b
				shown.Text = string(b)
			}
		}
	}
	if task.Status.Message == nil {
		return shown
	}
	for _, p := range task.Status.Message.Parts {
		shown.Cause += p.Text()
		if p.Data() == nil {
			continue
		}
		var asked struct {
			Pawl []struct {
				Key, Digest string
				Call        llm.ToolCall
			}
			Calls []llm.ToolCall
		}
		b, _ := json.Marshal(p.Data())
		if err := json.Unmarshal(b, &asked); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		for _, q := range asked.Pawl {
			shown.Questions = append(shown.Questions, contract.Question{Key: q.Key, Digest: q.Digest,
				Tool: q.Call.Name, Args: string(q.Call.Args)})
		}
		for _, c := range asked.Calls {
			shown.Calls = append(shown.Calls, c.Name+" "+string(c.Args))
		}
	}
	return shown
}
