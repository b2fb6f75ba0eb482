package assemble

import (
	"context"
	"errors"
	"fmt"
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
	// A chat that resumed from redacted messages would send the model other words than it had read.
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

// PrintEnd prints the result of a run: the answer, or the open calls as one JSON object a line.
// shown says that the answer was displayed as it arrived.
func PrintEnd(sys *cli.System, res *pawl.Result, open []OpenCall, shown bool) error {
	class := res.Stop.Class()
	handsBack := class == pawl.ClassWaiting || class == pawl.ClassLimited
	if len(open) == 0 || !handsBack {
		return PrintAnswer(sys, res, shown)
	}

	e := cli.JSONLines(sys.Out)
	for _, o := range open {
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// PrintAnswer prints the answer, unless it was displayed as it arrived.
func PrintAnswer(sys *cli.System, res *pawl.Result, shown bool) error {
	text := ""
	switch res.Stop.Class() {
	case pawl.ClassAnswered, pawl.ClassLimited:
		text = res.Text()
	}
	// The display shows the text of replies: no result of a tool, and output before its repair.
	byModel := res.Answer == nil || res.Answer.From == pawl.AnswerReply
	displayed := shown && res.Output == nil && byModel
	if text == "" || displayed {
		return nil
	}

	// The text of a model must not control a terminal, nor what a pipe ends in, unless the person
	// asks for it.
	if sys.OutTerm || !sys.Raw {
		text = cli.Harmless(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(sys.Out, text)
	return err
}

// Ended returns the failure for the stop reason of a run, with its exit status and a hint. nil
// means an answer. file is the agent's file, and saved the file that holds the result; "" means
// none.
func Ended(res *pawl.Result, err error, file, saved string) error {
	open := OpenCalls(res)
	switch res.Stop.Class() {
	case pawl.ClassAnswered:
		return nil

	case pawl.ClassWaiting:
		waiting := fmt.Errorf("%s for an answer: %s", Waits(len(open)), Keys(open))
		return cli.Fail(cli.StatusPending, waiting, resuming(file, saved)+Settling(open))

	case pawl.ClassLimited:
		// With no rounds left, the calls of the last reply are handed back to the caller.
		if len(open) > 0 {
			return cli.Fail(cli.StatusPending, fmt.Errorf("%s: %s", res.Cause, Keys(open)),
				resuming(file, saved)+", and --answer KEY=TEXT for each call, or --max-rounds N to run them")
		}
		return cli.Fail(cli.StatusLimit, fmt.Errorf("limit: %s", res.Cause), raised(res.Limit))

	case pawl.ClassCancelled:
		return cli.Fail(cli.StatusInterrupted, errors.New(res.Cause), resuming(file, saved))
	}

	if res.Stop == pawl.StopStalled {
		return cli.Fail(cli.StatusFailed, errors.New(res.Cause),
			"other instructions (--system) or another model may help: pawl models list")
	}
	if err == nil {
		err = errors.New(res.Cause)
	}
	return cli.Failed(err)
}

// resuming returns the hint with the command that resumes a run: see Ended.
func resuming(file, saved string) string {
	run := "pawl run "
	if file != "" {
		run += cli.QuotedWord(file) + " "
	}
	if saved == "" {
		return "with --save FILE the run can be resumed: " + run + "--messages FILE"
	}
	return "to resume: " + run + "--messages " + cli.QuotedWord(saved)
}

// Waits returns "1 call waits" or "2 calls wait".
func Waits(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return cli.Count(n, "call") + " wait"
}
