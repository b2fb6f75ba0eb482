package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// A request template has all that the two have in common: the checks of name, address and
	// headers, and the guarded network.
	t, q, err := m.http(&HTTP{Name: d.Name, Description: d.Description, URL: d.URL, Method: "POST", Headers: d.Headers,
		Input: JSON(`{"type":"object","properties":{}}`), Effect: d.Effect, Concurrent: d.Concurrent,
		Timeout: cmp.Or(d.Timeout, a2aTimeout), Allow: d.Allow})
	if err != nil {
		return nil, err
	}
	if d.Effect == nil {
		t.Effect = pawl.EffectUnstated // the protocol's POST says nothing about the task
	}
	// A task may stay at work for ever. The call ends when its time is over. The cancellation of
	// the task may be slow too, and goes on without the call.
	t.Timeout = time.Duration(cmp.Or(d.Timeout, a2aTimeout))

	r := &remote{base: strings.TrimSuffix(d.URL, "/"), origin: q.origin}
	r.http = &http.Client{Transport: &sender{q.page.Transport},
		// A redirect would send the headers, with their credentials, to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Input = json.RawMessage(a2aInput)
	t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		h := http.Header{}
		secrets, err := q.setHeaders(ctx, h, map[string]any{})
		if err != nil {
			return llm.ToolResult{}, delivery.NewError(delivery.NotSent, err.Error(), nil)
		}
		res, err := r.run(context.WithValue(ctx, headersKey{}, h), call)
		return hide(res, secrets), hideIn(err, secrets)
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
		if i != nil && r.ownAddress(i.URL) {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return nil, errors.New("the card of the agent names no address of " + r.origin.Host)
	}

	card.SupportedInterfaces = own
	c, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(r.http),
		a2aclient.WithRESTTransport(r.http))
	// Only success is stored: an agent that was not running may be running at the next call.
	if err == nil {
		r.client.Store(c)
	}
	return c, err
}

// ownAddress reports whether an address is of the agent's own host.
func (r *remote) ownAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == r.origin.Scheme && u.Host == r.origin.Host
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
	m.ContextID = in.Context
	m.TaskID = a2a.TaskID(in.Task)
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

	// A task that the message was for is cancelled with the call, also before the agent answers.
	if ctx.Err() != nil {
		id = cmp.Or(id, m.TaskID)
	}
	switch {
	case id != "":
		return r.await(ctx, c, id)
	case err != nil:
		return unsent(ctx, sent, err)
	}
	return llm.ToolResult{}, delivery.NewError(delivery.Unknown,
		"the agent answered with neither a message nor a task", nil)
}

// unsent returns the result of a message to which the agent gave no task, and err.
func unsent(ctx context.Context, sent *sending.Request, err error) (llm.ToolResult, error) {
	status, empty := sent.Status()
	_, isOfProtocol := errors.AsType[*a2a.Error](err)
	accepted := status/100 == 2
	switch {
	case status == 0 || ctx.Err() != nil:
		return llm.ToolResult{}, unreached(ctx, sent.Certainty(), err)

	// The answer broke off, or cannot be read. What the agent did is in the part that is missing.
	case accepted && !isOfProtocol:
		return llm.ToolResult{}, unreached(ctx, delivery.Unknown, err)
	}
	return stated(llm.ErrorResult(err.Error()), status, empty)
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

// await returns the result of a task that has ended, or its question. If ctx ends before, it
// cancels the task.
func (r *remote) await(ctx context.Context, c *a2aclient.Client, id a2a.TaskID) (llm.ToolResult, error) {
	lost := 0 // requests in a row that failed
	for pause := a2aPoll / 20; ; pause = min(2*pause, a2aPoll) {
		t, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: id})
		switch {
		case err == nil && t.Status.State != a2a.TaskStateSubmitted && t.Status.State != a2a.TaskStateWorking:
			return endOf(t, id)
		case err == nil:
			lost = 0
		default:
			lost++
		}
		// The task may still do its work, so that the call must not be repeated without a question.
		if lost == a2aLosses && ctx.Err() == nil {
			text := fmt.Sprintf("the task %s was started, and its end is not known: %v", id, err)
			return llm.ToolResult{}, delivery.NewError(delivery.Unknown, text, err)
		}

		select {
		case <-ctx.Done():
			// The context of the call has ended. The order to cancel needs one of its own.
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, err := c.CancelTask(stop, &a2a.CancelTaskRequest{ID: id})
			return llm.ToolResult{}, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// endOf returns the result of a task that has stopped. An answer that does not fit the schema of
// the agent is a *pawl.OutputError, if the agent says so.
func endOf(t *a2a.Task, id a2a.TaskID) (llm.ToolResult, error) {
	res := resultOf(t, id)
	if !res.IsError || t.Status.Message == nil {
		return res, nil
	}
	if u := foreign.UnfitIn(t.Status.Message.Metadata); u != nil {
		unfit := &pawl.OutputError{Text: u.Answer, Faults: u.Faults}
		return llm.ToolResult{}, &delivery.Error{Result: res, Err: unfit}
	}
	return res, nil
}

// resultOf returns what a task has made, or else its last message.
func resultOf(t *a2a.Task, id a2a.TaskID) llm.ToolResult {
	var parts a2a.ContentParts
	for _, a := range t.Artifacts {
		if a != nil {
			parts = append(parts, a.Parts...)
		}
	}
	if len(parts) == 0 && t.Status.Message != nil {
		parts = t.Status.Message.Parts
	}
	return answered(parts, a2a.TaskInfo{TaskID: id, ContextID: t.ContextID}, t.Status.State)
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
	// The data has what the agent said, without the line about the task, which is for the model.
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
