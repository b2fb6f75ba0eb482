package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// roundTrips is the first protocol version in which a server asks through a result, and the client
// repeats the call with the answer.
const roundTrips = "2026-07-28"

// maxRounds is the maximum number of questions of a call.
const maxRounds = 20

// handle executes a call for a client.
func (h *host) handle(ctx context.Context, r *sdk.CallToolRequest, b begun) (out *sdk.CallToolResult, err error) {
	defer func() { // the SDK does not recover
		if v := recover(); v != nil {
			out = failure("The tool failed unexpectedly and gave no result.")
			err = nil
		}
	}()

	// A client that cancels abandons the task. Calls that have started still get a result.
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(pawl.ErrCancelled) })()
	life = context.WithValue(life, callKey{}, r)

	// Clients of this protocol reconnect, so that no proxy sees a connection older than h.every.
	x := r.Extra
	if x != nil && x.CloseSSEStream != nil && r.ProtocolVersion() >= "2025-11-25" {
		defer time.AfterFunc(h.every, func() {
			x.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: time.Second})
		}).Stop()
	}

	if h.service.Task != nil && b.runner != nil && declares(r) {
		var leave context.CancelFunc
		life, leave = context.WithTimeoutCause(life, taskAfter, errTask)
		defer leave()
	}

	// A call with a state answers the question of an earlier call, whose run goes on.
	id := r.Params.Name + "\x00" + string(canonical(r.Params.Arguments))
	var events events
	var run pawl.Runner
	runID := taskPrefix + strings.ToLower(rand.Text()[:20])
	if r.Params.RequestState == "" {
		if b.runner != nil {
			run = b.runner(runID)
		}
		events = b.stream(life, run, nil)
	} else {
		asked := h.open.accept(r.Params.RequestState, id)
		if asked == nil {
			return failure("Not run: the question that this answers is not open any more. Make the call again."), nil
		}
		from := asked.res
		run = asked.run
		runID = asked.runID
		events = b.stream(life, run, from, llm.DecisionMessage(decisions(from.Pending, r.Params.InputResponses)...))
	}

	for range maxRounds {
		res, err := h.follow(life, r, events)
		switch {
		case res == nil && context.Cause(life) == errTask:
			*ctx.Value(madeKey{}).(*string) = runID
			return &sdk.CallToolResult{}, nil
		case res == nil:
			return failure(err.Error()), nil
		case res.Stop.Class() != pawl.ClassWaiting:
			return b.answer(res, err), nil
		}
		if why := unaskable(r.ClientCapabilities(), res.Pending); why != "" {
			return failure("Not run: " + why + giveUp(life, run)), nil
		}
		if r.ProtocolVersion() >= roundTrips {
			return &sdk.CallToolResult{InputRequests: questionsOf(res.Pending),
				RequestState: h.open.keep(asked{id: id, run: run, runID: runID, res: res})}, nil
		}
		answers := sdk.InputResponseMap{}
		for _, w := range res.Pending { // one after another, because a person reads one at a time
			a, err := r.Session.Elicit(ctx, question(w))
			if err != nil {
				a = &sdk.ElicitResult{Action: "cancel"}
			}
			answers[w.Digest] = a
		}
		events = b.stream(life, run, res, llm.DecisionMessage(decisions(res.Pending, answers)...))
	}
	return failure(fmt.Sprintf("Cancelled: it asked more than %d times.", maxRounds)), nil
}

// canceler is a stored run. Cancel ends it for good.
type canceler interface {
	Cancel(ctx context.Context) error
}

// giveUp cancels a stored run that gets no answer. The returned text says why that failed.
func giveUp(ctx context.Context, run pawl.Runner) string {
	if durable, ok := run.(canceler); ok {
		if err := durable.Cancel(ctx); err != nil {
			return " Its run could not be cancelled and is pending: " + err.Error()
		}
	}
	return ""
}

type callKey struct{}

// Ask asks the person at the client that called a tool of a Service a question with a form of its
// own. It works in calls over protocols before 2026-07-28, of clients with elicitation.
func Ask(ctx context.Context, message string, schema json.RawMessage) (Answer, error) {
	r, ok := ctx.Value(callKey{}).(*sdk.CallToolRequest)
	if !ok {
		return Answer{}, errors.New("no MCP client waits for this call, so no person can be asked")
	}
	a, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: schema})
	if err != nil {
		return Answer{}, err
	}
	return Answer{Accept: a.Action == "accept", Content: a.Content}, nil
}

// noticeOutage is the code of the notice that a run waits for a model's provider. It is progress:
// clients that extend their time with each progress wait as long.
const noticeOutage = "outage"

// follow iterates over the events of a run and sends progress and logs to the client.
func (h *host) follow(ctx context.Context, r *sdk.CallToolRequest, events events) (*pawl.Result, error) {
	token := r.Params.GetProgressToken()
	steps := 0
	return pawl.Collect(events, func(e pawl.Event) {
		text := ""
		switch e.Kind {
		case pawl.EventProgress:
			text = e.Text
			h.log(ctx, r, "info", text)
		case pawl.EventNotice:
			h.log(ctx, r, "notice", e.Text)
			if e.Code == noticeOutage {
				text = e.Text
			}
		case pawl.EventCallStarted:
			text = "calls " + e.Call.Name
		}
		if text != "" && token != nil {
			steps++
			_ = r.Session.NotifyProgress(ctx,
				&sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(steps), Message: text})
		}
	})
}

// log sends a log message to a client that has set a level.
//
//lint:ignore SA1019 clients of older protocols ask for it
func (h *host) log(ctx context.Context, r *sdk.CallToolRequest, level sdk.LoggingLevel, text string) {
	//lint:ignore SA1019 as above
	_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: level, Logger: r.Params.Name,
		Data: h.service.Secrets.String(text)})
}

// unaskable returns the reason why no person can be asked about the pending calls. Empty means that
// a person can be asked.
func unaskable(caps *sdk.ClientCapabilities, waiting []pawl.PendingCall) string {
	var names []string
	for _, w := range waiting {
		if w.Passive {
			return w.Call.Name + " must be executed by the caller, which MCP does not support."
		}
		names = append(names, w.Call.Name)
	}
	if !asksByForm(caps) {
		return strings.Join(names, ", ") + " needs a person's approval, and this client cannot ask for it (it has no elicitation)."
	}
	return ""
}

// asksByForm reports whether a client can show a form to a person. A client that declares neither
// forms nor pages has forms: older protocols have nothing else.
func asksByForm(caps *sdk.ClientCapabilities) bool {
	if caps == nil || caps.Elicitation == nil {
		return false
	}
	return caps.Elicitation.Form != nil || caps.Elicitation.URL == nil
}

// questionsOf returns the requests for approval of calls by their digests, which do not repeat.
func questionsOf(waiting []pawl.PendingCall) sdk.InputRequestMap {
	ask := sdk.InputRequestMap{}
	for _, w := range waiting {
		ask[w.Digest] = question(w)
	}
	return ask
}

// question returns the request for approval of one call.
func question(w pawl.PendingCall) *sdk.ElicitParams {
	text := "May " + w.Call.Name + " run"
	if w.Outcome == pawl.OutcomeUnknown {
		text = "It is not known whether " + w.Call.Name + " has happened. May it run again"
	}
	text += " with " + clip(show(string(w.Call.Args)), 2000) + "?"
	if w.Why != "" {
		text += " (" + w.Why + ")"
	}
	return &sdk.ElicitParams{Mode: "form", Message: text, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"approve": map[string]any{"type": "boolean", "title": "Approve", "description": "Let it run"}},
		"required":   []string{"approve"},
	}}
}

// decisions converts a person's answers. Any answer but a clear yes is a rejection.
func decisions(waiting []pawl.PendingCall, answers sdk.InputResponseMap) []llm.Decision {
	var out []llm.Decision
	for _, w := range waiting {
		a, _ := answers[w.Digest].(*sdk.ElicitResult)
		if a != nil && a.Action == "accept" && a.Content["approve"] == true {
			out = append(out, w.Approve("the MCP client's person"))
			continue
		}
		d := llm.Decision{Key: w.Key, Digest: w.Digest, By: "the MCP client's person", Reason: "The person said no."}
		if a == nil || a.Action == "cancel" {
			d.Reason = "No approval was given."
		}
		out = append(out, d)
	}
	return out
}

// questions holds the runs that wait for an answer, by the key that the client has to send with it.
// Each is used once, for the call that it concerns.
type questions struct {
	mu   sync.Mutex
	open map[string]*asked
}

type asked struct {
	id    string
	run   pawl.Runner // nil means that the run is resumed from res
	runID string
	res   *pawl.Result
	at    time.Time
}

const (
	maxOpen = 64
	maxWait = 30 * time.Minute
)

func (q *questions) keep(a asked) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := ""
	for k, a := range q.open {
		if time.Since(a.at) > maxWait {
			delete(q.open, k)
		} else if oldest == "" || a.at.Before(q.open[oldest].at) {
			oldest = k
		}
	}
	if len(q.open) >= maxOpen {
		delete(q.open, oldest)
	}
	state := rand.Text()
	a.at = time.Now()
	q.open[state] = &a
	return state
}

// accept returns the question that a call with this state and identity answers, and closes it. Nil
// means that it is not open.
func (q *questions) accept(state, id string) *asked {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.open[state]
	if a == nil || a.id != id || time.Since(a.at) > maxWait {
		return nil
	}
	delete(q.open, state)
	return a
}
