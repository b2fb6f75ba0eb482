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
				w.l = w.l.With("trace_id", at.TraceID().String(), "span_id", at.SpanID().String())
			}
			return func(yield func(pawl.Event, error) bool) {
				plain := false // an error after the end adds nothing
				for e, err := range r.Stream(ctx, msgs...) {
					if err == nil {
						w.event(ctx, e)
						plain = e.Kind == pawl.EventRunEnded && e.Error == ""
					} else if !plain {
						w.write(ctx, slog.LevelError, "run failed", append(w.words("error", err.Error()), slog.String("error.type", faultOf(err))))
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
	t *Telemetry
	l *slog.Logger
}

func (w writer) write(ctx context.Context, level slog.Level, msg string, set []slog.Attr) {
	w.l.LogAttrs(ctx, level, msg, set...)
}

// words returns an attribute that is content.
func (w writer) words(name, text string) []slog.Attr {
	if !w.t.o.Content || text == "" {
		return nil
	}
	return []slog.Attr{slog.String(name, w.t.o.Redactor.String(text))}
}

func (w writer) event(ctx context.Context, e pawl.Event) {
	level := slog.LevelInfo
	msg := ""
	set := []slog.Attr{slog.String("run", string(e.Run)), slog.Int("step", e.Step)}
	if e.Path != "" {
		set = append(set, slog.String("key", string(e.Path)))
	}
	switch e.Kind {
	case pawl.EventRunStarted:
		w.t.o.Redactor.AddTools(e.Offered...)
		msg, set = "run started", append(set, slog.String("agent", e.Agent), slog.Int("tools", len(e.Offered)))
	case pawl.EventResponseReceived:
		u := &e.Response.Usage
		msg, set = "reply", append(set, slog.String("model", e.Response.Model),
			slog.String("finish", string(e.Response.Finish)), slog.Int("calls", len(e.Response.Message.Calls())),
			slog.Int("input_tokens", u.Input), slog.Int("output_tokens", u.Output))
	case pawl.EventCallCompleted:
		x := e.Execution
		msg, set = "call", append(set, slog.String("tool", nameOf(x)), slog.String("outcome", string(x.Outcome)), slog.Int("attempts", x.Attempts),
			slog.Duration("took", x.Ended.Sub(x.Started)))
		if x.Outcome.Failed() || x.Outcome == pawl.OutcomeUnknown {
			level = slog.LevelWarn
		}
		if w.t.o.Content {
			for _, kv := range w.t.callContent(x.Call, x.Result) {
				set = append(set, slog.String(string(kv.Key), kv.Value.AsString()))
			}
			set = append(set, w.words("error", x.Error)...)
		}
	case pawl.EventNotice:
		level = slog.LevelWarn
		msg = "notice"
		set = append(append(set, slog.String("code", e.Code)), w.words("text", e.Text)...)
	case pawl.EventRunEnded:
		msg = "run ended"
		if r := e.Result; r != nil {
			set = append(set, slog.String("stop", string(r.Stop)), slog.Int("requests", r.Spent.Requests), slog.Int("calls", r.Spent.Calls),
				slog.Int("input_tokens", r.Spent.Usage.Input), slog.Int("output_tokens", r.Spent.Usage.Output))
			if r.Stop == pawl.StopFailed {
				level = slog.LevelError
			}
			set = append(set, w.words("cause", r.Cause)...)
		}
	default:
		return
	}
	w.write(ctx, level, msg, set)
}

// nameOf returns the name of the called tool. A name that the model invented is content.
func nameOf(x *pawl.Execution) string {
	if x.Outcome == pawl.OutcomeUnknownTool {
		return other
	}
	return x.Call.Name
}
