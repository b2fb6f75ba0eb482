package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/temporal"
)

// WorkerCmd is the command worker: it executes runs of a Temporal cluster.
type WorkerCmd struct {
	Files      []string      `arg:"" name:"FILE.yaml" help:"@worker_files"`
	Activities int           `default:"100" placeholder:"N" help:"@worker_activities"`
	Stop       time.Duration `default:"10s" placeholder:"TIME" help:"@worker_stop"`
	Heartbeat  time.Duration `default:"30s" placeholder:"TIME" help:"@worker_heartbeat"`
	BuildID    string        `name:"build-id" placeholder:"ID" help:"@worker_buildid"`
	DB         string        `name:"db" placeholder:"FILE" help:"@worker_db"`
	assemble.ClusterFlags
}

// Run executes runs until a signal ends the program.
func (c *WorkerCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	switch {
	case c.Activities < 1:
		return cli.Usage("", "--activities %d: want one or more", c.Activities)
	case c.Heartbeat < time.Second:
		return cli.Usage("a second and more, such as 30s", "--heartbeat %v is too short", c.Heartbeat)
	case c.Stop < 0:
		return cli.Usage("", "--stop %v is less than 0", c.Stop)
	}

	all, err := buildAll(ctx, sys, c.Files, c.DB, nil, false)
	if err != nil {
		return err
	}
	defer all.close()
	if err := all.withoutCaller(); err != nil {
		return err
	}

	at, err := c.Dial(ctx, sys)
	if err != nil {
		return err
	}
	defer at.Client.Close()
	workers, err := c.workers(ctx, at, all)
	if err != nil {
		return err
	}

	if err := work(ctx, sys, workers); err != nil {
		return cli.Fail(cli.StatusFailed, all.secrets.Error(err), "")
	}
	return nil
}

// withoutCaller returns an error for an agent that needs a caller: runs of a cluster have none.
func (s *served) withoutCaller() error {
	for i, built := range s.built {
		if len(built.ForCallers) > 0 {
			return assemble.NeedsCaller(s.agents[i].Name, built.ForCallers)
		}
	}
	return nil
}

// work runs all workers until ctx ends or one of them fails, which ends the others.
func work(ctx context.Context, sys *cli.System, workers map[string]*queueWorker) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, len(workers))
	for queue, w := range workers {
		sys.Notice(fmt.Sprintf("working for %s on task queue %s", strings.Join(w.names, ", "), cli.Visible(queue)))
		go func() { ended <- w.Run(ctx) }()
	}
	for range workers {
		if one := <-ended; one != nil {
			err = errors.Join(err, one)
			end()
		}
	}
	return err
}

// queueWorker executes the runs of one task queue.
type queueWorker struct {
	*temporal.Worker
	names []string
}

// workers returns a worker for each task queue of the agents.
func (c *WorkerCmd) workers(ctx context.Context, at *temporal.Engine, all *served) (map[string]*queueWorker, error) {
	workers := map[string]*queueWorker{}
	for _, a := range all.agents {
		queue := c.QueueOf(a.Name)
		// Agents of one queue share a worker, because a worker takes all tasks of its queue.
		w := workers[queue]
		if w == nil {
			w = c.worker(at, queue)
			workers[queue] = w
		}
		if err := w.Add(ctx, a.Name, a); err != nil {
			return nil, cli.Fail(cli.StatusUsage, err,
				"each agent has a name of its own; docs/temporal.md lists the features that Temporal does not support")
		}
		w.names = append(w.names, cli.Visible(a.Name))
	}
	if len(workers) == 0 {
		return nil, cli.Fail(cli.StatusUsage, errors.New("the files have no agent"), "")
	}
	return workers, nil
}

// worker returns a worker for a task queue, without agents.
func (c *WorkerCmd) worker(at *temporal.Engine, queue string) *queueWorker {
	e := &temporal.Engine{
		Client:    at.Client,
		Blobs:     at.Blobs,
		TaskQueue: queue,
		Heartbeat: c.Heartbeat,
		Events:    at.Events,
		Poll:      at.Poll,
	}
	o := &temporal.WorkerOptions{Activities: c.Activities, Stop: c.Stop, BuildID: c.BuildID}
	if o.Stop == 0 {
		o.Stop = time.Millisecond // 0 is the default there
	}
	return &queueWorker{Worker: e.Worker(o)}
}
