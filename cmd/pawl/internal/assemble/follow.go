package assemble

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact"
)

// EventLines returns a function that writes events as JSON, one a line. After a write error it
// writes nothing more and stores the error in failed.
func EventLines(w io.Writer, failed *error) func(pawl.Event) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return func(ev pawl.Event) {
		if *failed == nil {
			*failed = e.Encode(ev)
		}
	}
}

// Save writes res to the file at path. An empty path means no file.
func Save(path string, res *pawl.Result) error {
	if path == "" {
		return nil
	}
	return SaveTranscript(path, res)
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
		return traced.Stream(linked(ctx, from), msgs...)
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

// Handed returns the open calls for printing. A call that the caller executes is complete; a call
// that only needs a decision has its secrets hidden.
func (s *Setup) Handed(truth *pawl.Result) []OpenCall {
	return s.Shown(OpenCalls(truth))
}

// Shown hides secrets in open calls, as Handed does. It changes open and returns it.
func (s *Setup) Shown(open []OpenCall) []OpenCall {
	for i := range open {
		if o := &open[i]; o.waiting != nil && !o.waiting.Passive {
			o.Args = s.Secrets.Call(llm.ToolCall{Name: o.Name, Args: o.Args}).Args
		}
	}
	return open
}
