package temporal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"
)

// Cluster is the address of a cluster and its credentials: the usual part of client.Options. The
// zero value is a dev server on this machine.
type Cluster struct {
	Address   string       // HOST:PORT; empty means 127.0.0.1:7233
	Namespace string       // empty means default
	TLS       *tls.Config  // with certificates for mutual TLS; nil means none, unless APIKey is set
	APIKey    string       // for Temporal Cloud; empty means none
	Log       *slog.Logger // the log of the SDK; nil means no log

	// Credential returns the credentials of callers in workers. nil means that tools which act in
	// the name of a caller have none, so that their calls are refused.
	Credential Credential
}

// Dial connects to the cluster. Close Engine.Client after use. It returns an error if the cluster
// does not answer or denies access.
func (c Cluster) Dial(ctx context.Context, blobs Blobs) (*Engine, error) {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := client.Options{
		HostPort:      cmp.Or(c.Address, "127.0.0.1:7233"),
		Namespace:     cmp.Or(c.Namespace, client.DefaultNamespace),
		DataConverter: Converter(blobs),
		Logger:        sdklog.NewStructuredLogger(log),

		ContextPropagators: []workflow.ContextPropagator{Callers(c.Credential)},
	}
	o.ConnectionOptions.TLS = c.TLS
	if c.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(c.APIKey)
	}

	s, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("temporal at %s: %w", o.HostPort, err)
	}
	// A cluster that answers may not have the namespace, or deny access to it.
	_, err = s.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("temporal at %s: namespace %s: %w", o.HostPort, o.Namespace, err)
	}
	return &Engine{Client: s, Blobs: blobs}, nil
}

// Attended reports whether a worker serves the engine's task queue, as far as the cluster knows. A
// worker that has ended counts for some minutes longer.
func (e *Engine) Attended(ctx context.Context) (bool, error) {
	d, err := e.Client.DescribeTaskQueue(ctx, e.queue(), enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return len(d.GetPollers()) > 0, err
}

// Listed is a run in the list of the cluster.
type Listed struct {
	// ID is the ID of the run, equal to the ID of its workflow.
	ID string `json:"id"`
	// Agent is the name of the agent in the workers. Empty means that another program started the
	// workflow.
	Agent string `json:"agent"`
	// State is open or over, or the way in which the cluster ended the run: failed, terminated,
	// canceled or timed_out.
	State string `json:"state"`
	// Began is the start of the run's last history.
	Began time.Time `json:"began"`
	// Ended is the end of the run. Zero means that the run is open.
	Ended time.Time `json:"ended,omitzero"`
}

// Runs lists at most the given number of runs of the namespace, the latest first. 0 means all.
// State returns the details of an open run.
func (e *Engine) Runs(ctx context.Context, most int) ([]Listed, error) {
	all := []Listed{}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		Query:    "WorkflowType = '" + workflowName + "'",
		PageSize: 200,
	}
	for {
		page, err := e.Client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Executions {
			if x.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				continue // the runs after it are in the list, too
			}
			one := Listed{
				ID:    x.Execution.WorkflowId,
				Agent: agentOf(x.GetMemo()),
				State: stateName(x.GetStatus()),
				Began: x.StartTime.AsTime(),
			}
			if x.CloseTime != nil {
				one.Ended = x.CloseTime.AsTime()
			}
			all = append(all, one)
			if len(all) == most {
				return all, nil
			}
		}

		req.NextPageToken = page.NextPageToken
		if len(req.NextPageToken) == 0 {
			return all, nil
		}
	}
}

// memoAgent is the memo key with the name of a run's agent.
const memoAgent = "agent"

func agentOf(m *commonpb.Memo) (name string) {
	if p := m.GetFields()[memoAgent]; p != nil {
		// A memo of another program has no name.
		_ = converter.GetDefaultDataConverter().FromPayload(p, &name)
	}
	return name
}

func stateName(s enumspb.WorkflowExecutionStatus) string {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return "open"
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return "over"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed_out"
	}
	return strings.ToLower(s.String())
}

// unreachable reports whether err only states that the server does not answer now, for example
// during a restart.
func unreachable(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &unavailable) || errors.As(err, &late)
}
