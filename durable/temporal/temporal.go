// Package temporal executes runs on a Temporal cluster, for programs on more than one machine. The
// loop of package pawl is the workflow. Each model request and each call is an activity, which any
// worker can execute.
//
//	eng, err := temporal.Cluster{Address: "…"}.Dial(ctx, blobs)
//
//	w := eng.Worker(nil)                     // in the worker processes
//	err = w.Add(ctx, "billing", agent)
//	err = w.Run(ctx)
//
//	// anywhere:
//	res, err := eng.Runner("invoice-7", "billing").Run(ctx, llm.User("Pay invoice 7."))
//
// The places of execution:
//
//	workflow    loop ─▶ request? ─▶ activity "model": the agent's model with its middleware
//	(replayed)      └ calls? ─▶ activity "call" for each: the whole pipeline with policies,
//	                     │      middleware and tool
//	                     ├▶ a pending call waits here, for the update "decide"
//	                     └▶ an agent as a tool? ──▶ a child workflow: the same again
//
// A workflow is replayed, so that it executes no user code except tools that allow it (Tool.Inline,
// as plans do). Other composing tools run in an activity, and their calls return as updates. The
// agent (instructions, tools with their schemas, limits) is recorded when a run starts. The record
// applies until the run ends, even if later workers have another agent; from the workers' agents
// only the behavior of model and tools is used.
//
// An activity that may have written is never tried twice. If its worker is lost, the outcome is
// unknown, as over a journal (package durable), and the call is pending until the tool's Reconcile
// or a person settles it. The conversation is passed to the model by reference: large payloads and
// all messages that were sent before are in Blobs.
//
// docs/temporal.md has more, and the differences from package durable.
package temporal

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-go/pawl/store"
)

// Engine executes runs on a cluster: see Cluster.Dial. Client and Blobs are required, and the
// DataConverter of Client must be Converter(Blobs). All workers and clients of a task queue need
// the same. An Engine is safe for concurrent use, and must not be changed during use.
type Engine struct {
	Client    client.Client // of the cluster, with Converter(Blobs) as its DataConverter
	Blobs     Blobs         // holds large payloads and the conversations
	TaskQueue string        // the queue of the workers; empty means "pawl"
	Heartbeat time.Duration // silence after which a worker counts as lost; 0 means 30 s
	// Events is the length of a history after which the run continues in a new one, at its next
	// request. 0 means when the server suggests it, or 8,000.
	Events int
	Poll   time.Duration // the interval at which a Runner polls its run; 0 means 500 ms

	once    sync.Once
	updates chan struct{} // holds a value for each update in flight
}

var (
	// ErrNotAsked is in the tree of an error for an answer to a question that is not pending, or no
	// longer.
	ErrNotAsked = errors.New("the call does not wait for this answer")
	// ErrUnknownRun is in the tree of an error for a run that does not exist on the cluster, with
	// store.ErrNotFound.
	ErrUnknownRun = error(unknownRun{})
)

type unknownRun struct{}

func (unknownRun) Error() string { return "there is no such run" }

func (unknownRun) Unwrap() error { return store.ErrNotFound }

func (e *Engine) queue() string            { return cmp.Or(e.TaskQueue, "pawl") }
func (e *Engine) heartbeat() time.Duration { return cmp.Or(e.Heartbeat, 30*time.Second) }

// Names in histories. They must not change, because existing runs continue with them.
const (
	workflowName     = "pawl.run"
	branchName       = "pawl.branch"
	activityDescribe = "pawl.describe"
	activityModel    = "pawl.model"
	activityCall     = "pawl.call"
	updateDecide     = "decide"
	updateSteer      = "steer"
	updateCall       = "call"
	signalCancel     = "cancel"
	signalResult     = "result"
	signalReport     = "report"
	signalDecide     = "decide"
	queryState       = "state"
	queryExport      = "export"
	queryNews        = "news"
	answerRefused    = "pawl.answer"
	callsFull        = "pawl.full"
)

// stateVersion is the version of the workflow input. Older runs continue in their version: in
// version 1, nested agents shared the history of the run around them, and a Write was unknown
// whenever its activity was lost. Up to version 2, only Serial ordered the calls of a step. Up to
// version 3, a run with a composing activity did not wait. Up to version 4, what an activity
// returned was not checked, and an activity that returned no outcome was repeated without end. A
// worker rejects newer versions.
const stateVersion = 5
