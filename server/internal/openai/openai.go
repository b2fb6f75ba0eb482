package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
	"github.com/pawl-go/pawl/store"
)

// unrepeated maps statuses after which clients of OpenAI's API repeat a request to statuses after
// which they do not.
var unrepeated = map[int]int{
	http.StatusConflict:   http.StatusUnprocessableEntity,
	http.StatusBadGateway: http.StatusFailedDependency,
}

// OpenAIError answers in the form of OpenAI's API.
func (c *call) openAIError(e *api.Error) {
	kind := "invalid_request_error"
	if to, ok := unrepeated[e.Status]; ok {
		e = &api.Error{Status: to, Code: e.Code, Message: e.Message, Hint: e.Hint}
		c.W.Header().Set("X-Should-Retry", "false")
	}
	if e.Code == "needs_decision" {
		e.Status = http.StatusLocked
	}
	if c.langChain() && e.Status >= http.StatusUnprocessableEntity && e.Status <= http.StatusFailedDependency {
		e.Status = http.StatusConflict // the status for states that it does not repeat
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case e.Status == http.StatusForbidden:
		kind = "permission_error"
	case e.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.Status >= 500:
		kind = "server_error"
	}
	if e.RetryAfter > 0 {
		c.W.Header().Set("Retry-After", fmt.Sprint(e.RetryAfter))
	}
	web.WriteBytes(c.W, e.Status, openAIFault(e, kind, c.S.O.Secrets))
}

// langChain reports whether the client is LangChain's in JavaScript. It repeats requests by itself,
// after all but a few statuses of its own, and always states that it does not.
func (c *call) langChain() bool { return strings.HasPrefix(c.R.UserAgent(), "langchainjs") }

func openAIFault(e *api.Error, kind string, secrets *redact.Redactor) []byte {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	// text always marshals
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": secrets.String(message), "type": kind, "param": nil, "code": e.Code}})
	return b
}

// Models handles GET /v1/models: the agents.
func (c *call) Models() error {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Name        string `json:"name"`
		Description string `json:"description,omitzero"`
		Window      int    `json:"context_length,omitzero"`
	}
	list := []model{}
	for _, a := range c.S.O.Agents {
		about := c.S.O.About[a.Name]
		list = append(list, model{ID: a.Name, Object: "model", Created: c.S.Started.Unix(), OwnedBy: "pawl", Name: cmp.Or(about.Title, a.Name),
			Description: about.Description, Window: about.Window})
	}
	if id := c.R.PathValue("model"); id != "" {
		i := slices.IndexFunc(list, func(m model) bool { return m.ID == id })
		if i < 0 {
			_, err := c.S.Agent(id)
			return err
		}
		return c.Write(http.StatusOK, list[i])
	}
	return c.Write(http.StatusOK, map[string]any{"object": "list", "data": list})
}

// Turn is the part of a run that answers one request.
type Turn struct {
	Id     string // ID of the run
	Agent  string
	Live   *runs.Live
	skip   int        // replies that were sent before
	spent  pawl.Spent // usage before
	Forget bool       // the run is deleted when it has ended
	failed bool       // the stream ended with an error
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
	if !ok || i < 0 || !strings.HasPrefix(rest, "chat_") && !strings.HasPrefix(rest, "resp_") {
		return ""
	}
	return rest[:i]
}

// trailing returns the run of the results at the end of a conversation, and the messages after
// them. An empty ID means that they belong to no run of this server.
func trailing(msgs []llm.Message) (id string, results []llm.ToolResult, more []llm.Message) {
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		if m.Role == llm.RoleUser && results == nil {
			more = append([]llm.Message{m}, more...)
			continue
		}
		if m.Role != llm.RoleTool {
			break
		}
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				if run := runOf(r.CallID); run != "" {
					id = run
				}
				results = append(results, r)
			}
		}
	}
	return id, results, more
}

// resume resumes a run whose passive calls got their results. Nil means that they had them before,
// and a new run begins with the conversation: its user writes again, or the run is over. A run that
// failed continues. old reports whether an earlier process may have answered the request, for the
// time of the run's last change.
func (c *call) resume(id string, results []llm.ToolResult, more []llm.Message,
	old func(time.Time) bool) (*Turn, error) {
	p := runs.Place{Who: c.Client.Scope(), Id: id}
	head, open, err := c.Waiting(id)
	if err != nil {
		return nil, err
	}
	x, err := c.S.Engine.Export(c.Ctx(), id)
	if err != nil {
		return nil, err
	}
	t := &Turn{Id: id, Agent: head.Agent, skip: runs.Replies(x)}
	var sum durable.Summary
	if len(head.Summary) > 0 && json.Unmarshal(head.Summary, &sum) == nil {
		t.spent = sum.Spent
	}
	ds := []llm.Decision(nil)
	answered := ""
	for _, r := range results {
		i := slices.IndexFunc(open, func(w pawl.PendingCall) bool { return callID(id, w.Key) == r.CallID })
		if i < 0 {
			answered = r.CallID
			continue
		}
		r.CallID = open[i].Call.ID
		ds = append(ds, open[i].Answer("", r))
	}
	again := answered != "" && len(ds) == 0 && !old(head.Updated)
	switch {
	case again && (len(more) > 0 || head.State == store.JournalOver):
		return nil, nil
	case again && head.State == store.JournalFailed:
		t.Live, err = c.TakeUp(p, head.Agent)
		return t, err
	case answered != "":
		return nil, runs.Fault("conflict", "the call "+answered+" does not wait for a result", "it was answered before: wait for the end of its run, or send another message of the user")
	}
	if err := c.May(open, ds); err != nil {
		return nil, err
	}
	t.Live, err = c.TakeAnswers(p, head.Agent, ds, more)
	return t, err
}

func finishOf(f llm.FinishReason) string {
	switch f {
	case llm.FinishReasonLength, llm.FinishReasonContentFilter:
		return string(f)
	}
	return "stop"
}

// stopped converts the end of a run for the client. An unsuccessful end is an error.
func (c *call) stopped(t *Turn, e pawl.Event, out *reply) error {
	res := e.Result
	out.usage = res.Spent.Usage
	out.usage.Input -= t.spent.Usage.Input
	out.usage.Output -= t.spent.Usage.Output
	out.usage.Reasoning -= t.spent.Usage.Reasoning
	out.usage.CacheRead -= t.spent.Usage.CacheRead
	switch res.Stop {
	case pawl.StopAnswer, pawl.StopFinished:
		out.finish = cmp.Or(out.finish, "stop")
		return nil
	case pawl.StopLimit:
		out.finish = "length"
		return nil
	case pawl.StopPending:
		for _, w := range res.Pending {
			if !w.Passive {
				return runs.Fault("needs_decision", "the call of "+w.Call.Name+" waits for a decision", "POST /v1/runs/"+t.Id+"/approve, and watch the run there")
			}
			call := w.Call
			call.ID = callID(t.Id, w.Key)
			out.calls = append(out.calls, call)
		}
		out.finish = "tool_calls"
		return nil
	case pawl.StopFailed:
		return runs.Fault("model_failed", "the run failed: "+cmp.Or(e.Error, res.Cause), "")
	}
	return runs.Fault("model_failed", "the run stopped without an answer: "+cmp.Or(res.Cause, string(res.Stop)), "")
}

func (t *Turn) created() int64 { return time.Now().Unix() }
