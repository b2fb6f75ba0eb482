package temporal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
)

// Cluster is where a cluster is, and how it is spoken with: what most users need of client.Options. The zero value is a dev server on this machine.
type Cluster struct {
	Address   string       // HOST:PORT; "": 127.0.0.1:7233
	Namespace string       // "": default
	TLS       *tls.Config  // with certificates, for mutual TLS; nil: none, unless there is an APIKey
	APIKey    string       // of Temporal Cloud; "": none
	Log       *slog.Logger // what the SDK has to say; nil: nothing
}

// Dial connects with the cluster. Close the Engine.Client when it is not needed any more. An error says that nobody answers, or that we are not let in.
func (c Cluster) Dial(ctx context.Context, blobs Blobs) (*Engine, error) {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := client.Options{HostPort: cmp.Or(c.Address, "127.0.0.1:7233"), Namespace: cmp.Or(c.Namespace, client.DefaultNamespace), DataConverter: Converter(blobs), Logger: sdklog.NewStructuredLogger(log)}
	o.ConnectionOptions.TLS = c.TLS
	if c.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(c.APIKey)
	}
	s, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("temporal at %s: %w", o.HostPort, err)
	}
	if _, err := s.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace}); err != nil {
		s.Close()
		return nil, fmt.Errorf("temporal at %s: namespace %s: %w", o.HostPort, o.Namespace, err)
	}
	return &Engine{Client: s, Blobs: blobs}, nil
}

// Attended reports whether somebody works on the engine's task queue, as far as the cluster knows: a worker that ended is known for some minutes more.
func (e *Engine) Attended(ctx context.Context) (bool, error) {
	d, err := e.Client.DescribeTaskQueue(ctx, e.queue(), enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return len(d.GetPollers()) > 0, err
}

// Listed is a run, as the cluster lists it.
type Listed struct {
	ID    string    `json:"id"`
	Agent string    `json:"agent"`
	State string    `json:"state"` // open, over, or how the cluster ended it: failed, terminated, canceled, timed_out
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
}

// Runs lists the runs of the namespace, the last one first, most of them if there are so many; 0: all. How an open one stands, State tells.
func (e *Engine) Runs(ctx context.Context, most int) ([]Listed, error) {
	all := []Listed{}
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = '" + workflowName + "'", PageSize: 200}
	for {
		page, err := e.Client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Executions {
			if x.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
				continue // what came after it is listed, too
			}
			one := Listed{ID: x.Execution.WorkflowId, Agent: agentOf(x.GetMemo()), State: stateName(x.GetStatus()), Began: x.StartTime.AsTime()}
			if x.CloseTime != nil {
				one.Ended = x.CloseTime.AsTime()
			}
			if all = append(all, one); len(all) == most {
				return all, nil
			}
		}
		if req.NextPageToken = page.NextPageToken; len(req.NextPageToken) == 0 {
			return all, nil
		}
	}
}

// memoAgent is the name under which a run says in the list whose it is.
const memoAgent = "agent"

func agentOf(m *commonpb.Memo) (name string) {
	if p := m.GetFields()[memoAgent]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &name) // somebody else's memo has no name
	}
	return name
}

func stateName(s enumspb.WorkflowExecutionStatus) string {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return "open"
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return "over"
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return "failed"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "terminated"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return "canceled"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed_out"
	}
	return s.String()
}

// away reports whether err says no more than that nobody answers just now: the server is being started again, say.
func away(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &unavailable) || errors.As(err, &late)
}
