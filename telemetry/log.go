package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
)

// Log returns a Runner that calls r and writes log lines for its runs, including nested ones: start
// and end of runs, replies, completed calls, and notices. Each line contains the run's ID (run_id:
// WithRunID, or a generated one), its name (run), the key of the call (key), and within a span the
// trace_id and span_id. Therefore wrap it with Runner: tel.Runner(tel.Log(agent, logger)). Content
// and error texts are written only with Options.Content, without secrets.
//
// Failed calls and notices are warnings. Failed runs are errors. If r is an OutputRunner, so is the
// result.
func (t *Telemetry) Log(r pawl.Runner, l *slog.Logger) pawl.Runner {
	return observe.Wrap(r, func(r pawl.Runner) observe.RunnerFunc {
		return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			id := cmp.Or(RunID(ctx), rand.Text())
			w := writer{t, l.With("run_id", id)}
			if at := trace.SpanContextFromContext(ctx); at.IsValid() {
				w.logger = w.logger.With("trace_id", at.TraceID().String(), "span_id", at.SpanID().String())
			}
			return func(yield func(pawl.Event, error) bool) {
				// A run that a limit stopped yields an error after its end, whose line has the
				// reason.
				plain := false
				for e, err := range r.Stream(ctx, msgs...) {
					if err == nil {
						w.event(ctx, e)
						plain = e.Kind == pawl.EventRunEnded && e.Error == ""
					} else if !plain {
						set := append(w.words("error", err.Error()), slog.String("error.type", faultOf(err)))
						w.write(ctx, slog.LevelError, "run failed", set)
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}
	})
}

// writer writes the lines of a run.
type writer struct {
	telemetry *Telemetry
	logger    *slog.Logger
}

func (w writer) write(ctx context.Context, level slog.Level, msg string, set []slog.Attr) {
	w.logger.LogAttrs(ctx, level, msg, set...)
}

// words returns an attribute that is content.
func (w writer) words(name, text string) []slog.Attr {
	if !w.telemetry.options.Content || text == "" {
		return nil
	}
	return []slog.Attr{slog.String(name, w.telemetry.options.Redactor.String(text))}
}

// event writes the line of an event. Most events have none.
func (w writer) event(ctx context.Context, e pawl.Event) {
	set := []slog.Attr{slog.String("run", string(e.Run)), slog.Int("step", e.Step)}
	if e.Path != "" {
		set = append(set, slog.String("key", string(e.Path)))
	}

	switch e.Kind {
	case pawl.EventRunStarted:
		// The marks of the offered tools are needed before the first arguments are written.
		w.telemetry.options.Redactor.AddTools(e.Offered...)
		set = append(set, slog.String("agent", e.Agent), slog.Int("tools", len(e.Offered)))
		w.write(ctx, slog.LevelInfo, "run started", set)
	case pawl.EventResponseReceived:
		w.write(ctx, slog.LevelInfo, "reply", append(set, replyAttrs(e.Response)...))
	case pawl.EventCallCompleted:
		level := slog.LevelInfo
		if e.Execution.Outcome.Failed() || e.Execution.Outcome == pawl.OutcomeUnknown {
			level = slog.LevelWarn
		}
		w.write(ctx, level, "call", append(set, w.callAttrs(e.Execution)...))
	case pawl.EventNotice:
		set = append(set, slog.String("code", e.Code))
		w.write(ctx, slog.LevelWarn, "notice", append(set, w.words("text", e.Text)...))
	case pawl.EventRunEnded:
		level := slog.LevelInfo
		if e.Result != nil && e.Result.Stop.Class() == pawl.ClassFailed {
			level = slog.LevelError
		}
		w.write(ctx, level, "run ended", append(set, w.endAttrs(e.Result)...))
	}
}

func replyAttrs(r *llm.Response) []slog.Attr {
	return []slog.Attr{
		slog.String("model", r.Model),
		slog.String("finish", string(r.Finish)),
		slog.Int("calls", len(r.Message.Calls())),
		slog.Int("input_tokens", r.Usage.Input),
		slog.Int("output_tokens", r.Usage.Output),
	}
}

func (w writer) callAttrs(x *pawl.Execution) []slog.Attr {
	set := []slog.Attr{
		slog.String("tool", nameOf(x)),
		slog.String("outcome", string(x.Outcome)),
		slog.Int("attempts", x.Attempts),
		slog.Duration("took", x.Ended.Sub(x.Started)),
	}
	if !w.telemetry.options.Content {
		return set
	}
	for _, kv := range w.telemetry.callContent(x.Call, x.Result) {
		set = append(set, slog.String(string(kv.Key), kv.Value.AsString()))
	}
	return append(set, w.words("error", x.Error)...)
}

// endAttrs returns the attributes of the end of a run. r is nil if it has no result.
func (w writer) endAttrs(r *pawl.Result) []slog.Attr {
	if r == nil {
		return nil
	}
	set := []slog.Attr{
		slog.String("stop", string(r.Stop)),
		slog.Int("requests", r.Spent.Requests),
		slog.Int("calls", r.Spent.Calls),
		slog.Int("input_tokens", r.Spent.Usage.Input),
		slog.Int("output_tokens", r.Spent.Usage.Output),
	}
	return append(set, w.words("cause", r.Cause)...)
}

// nameOf returns the name of the called tool. A name that the model invented is content.
func nameOf(x *pawl.Execution) string {
	if x.Outcome == pawl.OutcomeUnknownTool {
		return other
	}
	return x.Call.Name
}
