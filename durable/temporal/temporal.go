// Package temporal makes runs on a Temporal cluster, for whoever needs more than one machine. The same loop that runs in memory is the workflow here; each model
// request and each call is an activity, which any worker can carry out.
//
//	eng, err := temporal.Cluster{Address: "…"}.Dial(ctx, blobs)
//
//	w := eng.Worker(nil)                     // in the processes that do the work
//	err = w.Add(ctx, "billing", agent)
//	err = w.Run(ctx)
//
//	res, err := eng.Runner("invoice-7", "billing").Run(ctx, llm.User("Pay invoice 7."))   // anywhere
//
// What happens where:
//
//	workflow   loop ─▶ request? ──▶ activity "model": the agent's model, its middleware around it
//	           (replayed)   └ calls? ─▶ activity "call", one each: the whole pipeline, approval policies, middleware and tool
//	                               ├▶ a call that must wait, waits here, for the update "decide"
//	                               └▶ an agent as a tool? ──▶ a child workflow: the same again
//
// A workflow is replayed, so nothing of the user's runs in it but tools that say that they may (Tool.Inline: plans). Other tools that compose run in an
// activity, and their calls come back as updates. What an agent is (instructions, tools with their schemas, limits) is recorded when a run begins and holds until it ends, whatever
// later workers are made of; of those only what model and tools do is used.
//
// No activity that may have written is tried twice: when its worker is lost, the outcome is unknown, as over a journal (package durable), and it waits for the tool's
// Reconcile or for somebody who knows. The conversation goes to the model by reference: what is large, and every message that was sent before, lies in Blobs.
//
// docs/temporal.md says more, with what is not there.
package temporal

import (
	"cmp"
	"errors"
	"time"

	"go.temporal.io/sdk/client"
)

// Engine makes runs on a cluster: see Cluster.Dial. Client and Blobs are required, and Client's DataConverter must be Converter(Blobs); all workers and clients of a task queue
// need the same. An Engine may be used concurrently and must not be changed meanwhile.
type Engine struct {
	Client    client.Client
	Blobs     Blobs
	TaskQueue string        // where workers look for work; "": "pawl"
	Heartbeat time.Duration // how long a worker may be silent before it counts as lost; 0: 30 s
	Events    int           // of a history, after which the run goes on in a new one, at the next request; 0: when the server suggests it, or 8,000
	Poll      time.Duration // how often a Runner looks how its run is getting on; 0: 500 ms
}

var (
	// ErrNotAsked is in the tree of an error for an answer to a question that is not asked (any more), or to another one.
	ErrNotAsked = errors.New("the call does not wait for this answer")
	// ErrUnknownRun is in the tree of an error for a run that the cluster does not know.
	ErrUnknownRun = errors.New("there is no such run")
)

func (e *Engine) queue() string            { return cmp.Or(e.TaskQueue, "pawl") }
func (e *Engine) heartbeat() time.Duration { return cmp.Or(e.Heartbeat, 30*time.Second) }

// Names of what stands in histories. They must not change: runs that began with them go on with them.
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
)

// stateVersion is the form of what workflows are given. Runs of an older one go on as they began: in 1 agents inside of agents shared the history of the run around them, and
// a Write was unknown whenever its activity was lost. A worker refuses newer ones.
const stateVersion = 2
