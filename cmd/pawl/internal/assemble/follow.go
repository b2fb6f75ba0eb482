package assemble

import (
	"context"
	"io"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/telemetry"
)

// EventLines returns a function that writes events as JSON, one a line. After a write error it
// writes nothing more and stores the error in failed.
func EventLines(w io.Writer, failed *error) func(pawl.Event) {
	e := cli.JSONLines(w)
	return func(ev pawl.Event) {
		if *failed == nil {
			*failed = e.Encode(ev)
		}
	}
}

// Resumed returns a runner that resumes the agent from a result.
func (s *Setup) Resumed(from *pawl.Result) pawl.Runner {
	run := observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return s.Agent.ResumeStream(ctx, from, msgs...)
	})
	if s.Around == nil {
		return run
	}
	traced := s.Around(run)
	return observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		// the span of the run has a link to the runs that it resumes
		ctx = telemetry.LinkTo(ctx, telemetry.Resumed, telemetry.Traceparent(from))
		return traced.Stream(ctx, msgs...)
	})
}

// Follow executes run with msgs and shows its events without secrets. shown is the result without
// secrets, truth the result from which a chat resumes. Both are nil if the run did not start.
func (s *Setup) Follow(ctx context.Context, run pawl.Runner, msgs []llm.Message, show func(pawl.Event)) (shown,
	truth *pawl.Result, err error) {
	seen := observe.Sync(run, func(e pawl.Event) {
		if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
			truth = e.Result
		}
	})
	shown, err = pawl.Collect(redact.Runner(seen, s.Secrets).Stream(ctx, msgs...), show)
	return shown, truth, err
}

// Shown returns open calls for printing. A call that the caller executes is complete; a call that
// only needs a decision has its secrets hidden. Shown changes open.
func (s *Setup) Shown(open []OpenCall) []OpenCall {
	for i := range open {
		if o := &open[i]; o.waiting != nil && !o.waiting.Passive {
			o.Args = s.Secrets.Call(llm.ToolCall{Name: o.Name, Args: o.Args}).Args
		}
	}
	return open
}
