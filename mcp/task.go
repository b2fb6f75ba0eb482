package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

const (
	tasks      = "io.modelcontextprotocol/tasks" // the identifier of the extension
	taskPrefix = "mcp_"                          // begins the IDs of runs
	taskAfter  = 5 * time.Second                 // then a call becomes a task
)

// errTask is the cause with which a call stops waiting for its run.
var errTask = errors.New("the call is a task now")

// Task is the stored run of a call, as a task of the extension io.modelcontextprotocol/tasks.
// Stream takes the answers to its questions. The run continues when the context of Stream ends
// with another cause than pawl.ErrCancelled.
type Task interface {
	pawl.Runner
	Cancel(context.Context) error

	// State returns the end of the run, or its pending calls, or while it works a Result without
	// Stop. The error is pawl.ErrNotFound if the caller in the context has no such run.
	State(context.Context) (res *pawl.Result, created, updated time.Time, err error)
}

// taskResult is a task, or an acknowledgement.
type taskResult struct {
	sdk.ResultBase
	fields map[string]any
}

// MarshalJSON returns the fields with the metadata, which the SDK adds.
func (r *taskResult) MarshalJSON() ([]byte, error) {
	r.fields["_meta"] = r.Meta
	return json.Marshal(r.fields)
}

// madeKey is the key of the place for the ID of a run that becomes a task.
type madeKey struct{}

type taskParams struct {
	sdk.ParamsBase
	ID        string               `json:"taskId"`
	Responses sdk.InputResponseMap `json:"inputResponses"`
}

// declares reports whether a request declares the extension.
func declares[P sdk.Params](r *sdk.ServerRequest[P]) bool {
	caps := r.ClientCapabilities()
	return r.ProtocolVersion() >= roundTrips && caps != nil && caps.Extensions[tasks] != nil
}

// offerTasks adds the extension and its methods.
func (h *host) offerTasks(caps *sdk.ServerCapabilities) {
	caps.AddExtension(tasks, nil)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		do := func(ctx context.Context, s *sdk.ServerSession, p *taskParams) (*taskResult, error) {
			r := &sdk.ServerRequest[*taskParams]{Session: s, Params: cmp.Or(p, new(taskParams))}
			if !declares(r) {
				return nil, &jsonrpc.Error{
					Code:    sdk.CodeMissingRequiredClientCapabilities,
					Message: "the request does not declare the extension " + tasks,
					Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasks + `":{}}}}`),
				}
			}

			out, open, err := h.task(ctx, r.Params.ID, "complete", r.ClientCapabilities())
			run := h.service.Task(r.Params.ID)
			ack := &taskResult{fields: map[string]any{"resultType": "complete"}}
			switch {
			case err == nil && method == "tasks/update":
				out = ack
				err = answer(ctx, run, open, r.Params.Responses)
			case err == nil && method == "tasks/cancel":
				out = ack
				err = run.Cancel(ctx)
			}

			switch {
			case errors.Is(err, pawl.ErrNotFound):
				err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task"}
			case err != nil:
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: h.service.Secrets.Error(err).Error()}
			}
			return out, err
		}
		_ = sdk.AddReceivingCustomMethod(h.sdk, method, do) // it fails for standard methods only
	}
}

// task returns a task for a client as a result of a kind, and the open calls of its run.
func (h *host) task(ctx context.Context, id, kind string, caps *sdk.ClientCapabilities) (*taskResult,
	[]pawl.PendingCall, error) {
	if !strings.HasPrefix(id, taskPrefix) || len(id) > 64 {
		return nil, nil, pawl.ErrNotFound
	}
	res, created, updated, err := h.service.Task(id).State(ctx)
	if err != nil {
		return nil, nil, err
	}
	f := map[string]any{"resultType": kind, "taskId": id, "status": "working", "statusMessage": res.Cause,
		"createdAt": created, "lastUpdatedAt": updated, "ttlMs": nil, "pollIntervalMs": 2000}
	switch {
	case res.Stop == "": // it runs
	case res.Stop.Class() == pawl.ClassWaiting:
		f["statusMessage"] = unaskable(caps, res.Pending)
		if f["statusMessage"] == "" {
			f["status"], f["inputRequests"] = "input_required", questionsOf(res.Pending)
		}
	case res.Stop.Class() == pawl.ClassCancelled:
		f["status"] = "cancelled"
	default: // a failed run is the result of its call
		b, _ := json.Marshal(h.agentAnswer("The agent", res, nil)) // invalid JSON fails below
		f["status"], f["result"] = "completed", json.RawMessage(`{"resultType":"complete",`+strings.TrimPrefix(string(b), "{"))
	}
	return &taskResult{fields: f}, res.Pending, nil
}

// answer gives the run the client's answers to open questions, and ignores others.
func answer(ctx context.Context, run pawl.Runner, open []pawl.PendingCall, answers sdk.InputResponseMap) error {
	open = slices.DeleteFunc(open, func(w pawl.PendingCall) bool { return w.Passive || answers[w.Digest] == nil })
	if len(open) > 0 {
		for _, err := range run.Stream(ctx, llm.DecisionMessage(decisions(open, answers)...)) {
			return err // the run continues without a reader
		}
	}
	return nil
}
