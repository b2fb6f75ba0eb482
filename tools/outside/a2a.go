package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/sending"
)

const (
	a2aTimeout = Duration(10 * time.Minute) // of a task
	a2aPoll    = time.Second                // longest time between two looks at a task
	a2aLosses  = 5                          // looks in sequence that may fail
	a2aBody    = 8 << 20                    // bytes of a response
)

// a2aInput is the schema of the arguments.
const a2aInput = `{"type":"object","properties":{` +
	`"message":{"type":"string","description":"The task, or the answer to the agent's question, with all that the agent must know."},` +
	`"context":{"type":"string","description":"The context of an earlier result, to continue that conversation."},` +
	`"task":{"type":"string","description":"The task of an earlier result that asks a question, to answer it."}},` +
	`"required":["message"],"additionalProperties":false}`

// remote is an agent that is reached by the A2A protocol.
type remote struct {
	base   string
	origin *url.URL
	http   *http.Client
	client atomic.Pointer[a2aclient.Client] // nil until the card was read
}

// a2a creates the tool of a remote agent. It has the address, headers and network of a
// request.
func (m *maker) a2a(d *A2A) (*pawl.Tool, error) {
	t, q, err := m.http(&HTTP{Name: d.Name, Description: d.Description, URL: d.URL, Method: "POST", Headers: d.Headers,
		Input: JSON(`{"type":"object","properties":{}}`), Effect: d.Effect, Concurrent: d.Concurrent,
		Timeout: cmp.Or(d.Timeout, a2aTimeout), Allow: d.Allow})
	if err != nil {
		return nil, err
	}
	if d.Effect == nil {
		t.Effect = pawl.EffectUnstated // the protocol's POST says nothing about the task
	}
	r := &remote{base: strings.TrimSuffix(d.URL, "/"), origin: q.origin}
	r.http = &http.Client{Transport: &sender{q.page.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Input = json.RawMessage(a2aInput)
	t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		h := http.Header{}
		secrets, err := q.setHeaders(ctx, h, map[string]any{})
		if err != nil {
			return llm.ToolResult{}, delivery.NewError(delivery.NotSent, err.Error(), nil)
		}
		res, err := r.run(context.WithValue(ctx, headersKey{}, h), call)
		return hide(res, secrets), err
	}
	return t, nil
}

// headersKey is the key of a context for the headers of a call's requests.
type headersKey struct{}

// sender adds the headers of a call to its requests and bounds the responses.
type sender struct{ next http.RoundTripper }

func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	headers, _ := r.Context().Value(headersKey{}).(http.Header)
	maps.Copy(r.Header, headers)
	res, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = http.MaxBytesReader(nil, res.Body, a2aBody)
	sending.Answered(res)
	lenientParts(res)
	return res, nil
}

// connect reads the card of the agent, once. The card may name addresses of its own host only,
// because the headers are sent there.
func (r *remote) connect(ctx context.Context) (*a2aclient.Client, error) {
	if c := r.client.Load(); c != nil {
		return c, nil
	}
	card, err := agentcard.NewResolver(r.http).Resolve(ctx, r.base)
	if err != nil {
		return nil, fmt.Errorf("the card of the agent: %w", err)
	}
	var own []*a2a.AgentInterface
	for _, i := range card.SupportedInterfaces {
		if i != nil {
			u, err := url.Parse(i.URL)
			if err == nil && u.Scheme == r.origin.Scheme && u.Host == r.origin.Host {
				own = append(own, i)
			}
		}
	}
	if len(own) == 0 {
		return nil, errors.New("the card of the agent names no address of " + r.origin.Host)
	}
	card.SupportedInterfaces = own
	c, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(r.http),
		a2aclient.WithRESTTransport(r.http))
	if err == nil {
		r.client.Store(c)
	}
	return c, err
}

// run sends a message and waits for the end of its task.
func (r *remote) run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	var in struct{ Message, Context, Task string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return llm.ErrorResult(err.Error()), nil
	}
	c, err := r.connect(ctx)
	if err != nil {
		return llm.ToolResult{}, unreached(ctx, delivery.NotSent, err)
	}
	m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(in.Message))
	m.ContextID, m.TaskID = in.Context, a2a.TaskID(in.Task)
	if i := pawl.InvocationFrom(ctx); i != nil { // a repeated message is the same task
		m.ID = i.IdempotencyKey()
	}
	var id a2a.TaskID
	// An agent without streams says at once which task it has started, so that it can be cancelled.
	// Of a task that goes on, it would say the state before.
	req := &a2a.SendMessageRequest{Message: m, Config: &a2a.SendMessageConfig{ReturnImmediately: in.Task == ""}}
	sending, sent := sending.Watch(ctx)
	for e, failed := range c.SendStreamingMessage(sending, req) {
		if err = failed; err != nil || e == nil {
			break
		}
		if said, ok := e.(*a2a.Message); ok {
			return answered(said.Parts, a2a.TaskInfo{ContextID: said.ContextID}, a2a.TaskStateCompleted), nil
		}
		id = cmp.Or(id, e.TaskInfo().TaskID)
	}
	if ctx.Err() != nil {
		id = cmp.Or(id, m.TaskID)
	}
	switch {
	case id != "":
		return r.end(ctx, c, id)
	case err != nil:
		return unsent(ctx, sent, err)
	}
	return llm.ToolResult{}, delivery.NewError(delivery.Unknown, "the agent answered with neither a message nor a task", nil)
}

// unsent returns the result of a message to which the agent gave no task, and err.
func unsent(ctx context.Context, sent *sending.Request, err error) (llm.ToolResult, error) {
	status, empty := sent.Status()
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil
	if status != 0 && !broken {
		return stated(llm.ErrorResult(err.Error()), status, empty)
	}
	return llm.ToolResult{}, unreached(ctx, sent.Certainty(), err)
}

// unreached returns the error of a message whose connection failed, or which was refused here.
func unreached(ctx context.Context, c delivery.Certainty, err error) error {
	e := delivery.NewError(c, err.Error(), cmp.Or(context.Cause(ctx), err))
	var refused *netguard.Refused
	if errors.As(err, &refused) {
		return e
	}
	return sending.Down(e)
}

// end returns the end of a task, or its question. If ctx ends before, it cancels the task.
func (r *remote) end(ctx context.Context, c *a2aclient.Client, id a2a.TaskID) (llm.ToolResult, error) {
	var t *a2a.Task
	for lost, pause := 0, a2aPoll/20; ; pause = min(2*pause, a2aPoll) {
		next, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: id})
		if err == nil {
			t = next
			lost = 0
			if s := t.Status.State; s != a2a.TaskStateSubmitted && s != a2a.TaskStateWorking {
				break
			}
		} else if lost++; ctx.Err() == nil && lost == a2aLosses {
			text := fmt.Sprintf("the task %s was started, and its end is not known: %v", id, err)
			return llm.ToolResult{}, delivery.NewError(delivery.Unknown, text, err)
		}
		select {
		case <-ctx.Done():
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, err := c.CancelTask(stop, &a2a.CancelTaskRequest{ID: id})
			return llm.ToolResult{}, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
	var parts a2a.ContentParts
	for _, a := range t.Artifacts {
		if a != nil {
			parts = append(parts, a.Parts...)
		}
	}
	if len(parts) == 0 && t.Status.Message != nil {
		parts = t.Status.Message.Parts
	}
	return answered(parts, a2a.TaskInfo{TaskID: id, ContextID: t.ContextID}, t.Status.State), nil
}

// answered returns what an agent said, with the task and its state as data.
func answered(parts a2a.ContentParts, of a2a.TaskInfo, state a2a.TaskState) llm.ToolResult {
	word := strings.ToLower(strings.TrimPrefix(string(state), "TASK_STATE_"))
	var r foreign.Reader
	failed := false
	switch state {
	case a2a.TaskStateCompleted:
	case a2a.TaskStateInputRequired, a2a.TaskStateAuthRequired:
		r.Text(fmt.Sprintf("The agent needs an answer (task %s, context %s):", of.TaskID, of.ContextID))
	default:
		failed = true
		r.Text("The task is " + word + ":")
	}
	said := len(r.Parts)
	for _, p := range parts {
		if p != nil {
			readPart(&r, p)
		}
	}

	out := llm.ToolResult{Parts: r.Parts, IsError: failed}
	if !failed {
		text := llm.Message{Parts: r.Parts[said:]}.Text()
		out.Data = mustJSON(map[string]string{"text": text, "task": string(of.TaskID), "context": of.ContextID, "state": word})
	}
	return out
}

// readPart adds a part of a message or an artifact.
func readPart(r *foreign.Reader, p *a2a.Part) {
	switch v := p.Content.(type) {
	case a2a.Text:
		r.Text(string(v))
	case a2a.Data:
		r.JSON(mustJSON(v.Value))
	case a2a.URL:
		r.Link(string(v), p.Filename, p.MediaType)
	case a2a.Raw:
		r.Bytes(v, p.MediaType, p.Filename)
	}
}
