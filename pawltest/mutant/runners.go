package mutant

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Runners returns the faults of a pawl.Runner that pawltest.TestRunner finds: faults of events, of
// results, of errors, and of what becomes of messages and contexts.
func Runners() []Mutant[pawl.Runner] {
	return slices.Concat(runEventFaults(), resultOfRunFaults(), runErrorFaults(), runInputFaults())
}

// stream is the method of a Runner.
type stream = func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error]

type runner stream

// Stream executes the run with the fault.
func (r runner) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return r(ctx, msgs...)
}

// yieldEvent takes the next event of a run.
type yieldEvent = func(pawl.Event, error) bool

// ofRun is a fault that changes what a run yields. change is called for each Stream, and may keep
// state in what it returns.
func ofRun(name, part string, change func(next yieldEvent) yieldEvent) Mutant[pawl.Runner] {
	return Mutant[pawl.Runner]{name, part, func(r pawl.Runner) pawl.Runner {
		return runner(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			return func(next func(pawl.Event, error) bool) { r.Stream(ctx, msgs...)(change(next)) }
		})
	}}
}

// dropped is a fault that drops the events of one kind.
func dropped(name, part string, kind pawl.EventKind) Mutant[pawl.Runner] {
	return ofRun(name, part, func(next yieldEvent) yieldEvent {
		return func(e pawl.Event, err error) bool { return err == nil && e.Kind == kind || next(e, err) }
	})
}

// ofResult is a fault that changes the Result of the outermost run. change owns its argument.
func ofResult(name, part string, change func(res *pawl.Result)) Mutant[pawl.Runner] {
	return ofRun(name, part, func(next yieldEvent) yieldEvent {
		return func(e pawl.Event, err error) bool {
			if isEnd(e, err) && e.Result != nil {
				changed := *e.Result
				change(&changed)
				e.Result = &changed
			}
			return next(e, err)
		}
	})
}

// ofInput is a fault that changes how a run starts.
func ofInput(name, part string, change func(r pawl.Runner) stream) Mutant[pawl.Runner] {
	return Mutant[pawl.Runner]{name, part, func(r pawl.Runner) pawl.Runner { return runner(change(r)) }}
}

// isEnd reports whether e is the end of the outermost run.
func isEnd(e pawl.Event, err error) bool {
	return err == nil && e.Kind == pawl.EventRunEnded && e.Run == "run"
}

func runEventFaults() []Mutant[pawl.Runner] {
	return []Mutant[pawl.Runner]{
		dropped("drops run_started", "run/text", pawl.EventRunStarted),
		dropped("drops run_ended", "run/text", pawl.EventRunEnded),
		dropped("drops the steps", "run/a call", pawl.EventStep),
		dropped("drops call_ready", "run/a call", pawl.EventCallReady),
		dropped("drops texts", "run/text", pawl.EventText),
		dropped("drops response_received", "run/text", pawl.EventResponseReceived),
		ofRun("loses the first text", "run/text", func(next yieldEvent) yieldEvent {
			lost := false
			return func(e pawl.Event, err error) bool {
				if err == nil && e.Kind == pawl.EventText && !lost {
					lost = true
					return true
				}
				return next(e, err)
			}
		}),
		ofRun("emits a text twice", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				return (err != nil || e.Kind != pawl.EventText || next(e, nil)) && next(e, err)
			}
		}),
		ofRun("completes calls twice", "run/a call", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				return (err != nil || e.Kind != pawl.EventCallCompleted || next(e, nil)) && next(e, err)
			}
		}),
		ofRun("starts twice", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				return (err != nil || e.Kind != pawl.EventRunStarted || next(e, nil)) && next(e, err)
			}
		}),
		ofRun("ends twice", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool { return (!isEnd(e, err) || next(e, nil)) && next(e, err) }
		}),
		ofRun("emits events after the end", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if !isEnd(e, err) {
					return next(e, err)
				}
				after := pawl.Event{Kind: pawl.EventNotice, Run: "run", Seq: e.Seq + 1}
				return next(e, nil) && next(after, nil)
			}
		}),
		ofRun("emits an event before the start", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if err == nil && e.Kind == pawl.EventRunStarted && e.Run == "run" {
					before := pawl.Event{Kind: pawl.EventNotice, Run: "run", Seq: e.Seq}
					e.Seq++
					return next(before, nil) && next(e, nil)
				}
				return next(e, err)
			}
		}),
		ofRun("drops the places of events", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				e.Seq = 0
				return next(e, err)
			}
		}),
		ofRun("repeats the places of events", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				e.Seq = min(e.Seq, 2)
				return next(e, err)
			}
		}),
		ofRun("takes the end of a nested run for its own", "run/an agent inside", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if err == nil && e.Kind == pawl.EventRunEnded {
					e.Run = "run"
				}
				return next(e, err)
			}
		}),
	}
}

func resultOfRunFaults() []Mutant[pawl.Runner] {
	return []Mutant[pawl.Runner]{
		ofRun("ends without a Result", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if isEnd(e, err) {
					e.Result = nil
				}
				return next(e, err)
			}
		}),
		ofResult("drops the answer", "run/text", func(res *pawl.Result) { res.Answer = nil }),
		ofResult("takes the result of a tool for a reply", "run/ended by a tool", func(res *pawl.Result) {
			if res.Answer != nil {
				changed := *res.Answer
				changed.From = pawl.AnswerReply
				res.Answer = &changed
			}
		}),
		ofResult("drops the last message", "run/text", func(res *pawl.Result) {
			res.Messages = res.Messages[:len(res.Messages)-1]
		}),
		ofResult("drops the results of calls", "run/a call", func(res *pawl.Result) {
			isResult := func(m llm.Message) bool { return m.Role == llm.RoleTool }
			res.Messages = slices.DeleteFunc(slices.Clone(res.Messages), isResult)
		}),
		ofResult("drops the number of requests", "run/text", func(res *pawl.Result) { res.Spent.Requests = 0 }),
		ofResult("drops the number of calls", "run/a call", func(res *pawl.Result) { res.Spent.Calls = 0 }),
		ofResult("drops the number of rounds", "run/a call", func(res *pawl.Result) { res.Spent.Rounds = 0 }),
		ofResult("drops the questions", "denied", func(res *pawl.Result) { res.Pending = nil }),
		ofResult("takes a passive call for a question", "passive", func(res *pawl.Result) {
			res.Pending = slices.Clone(res.Pending)
			for i := range res.Pending {
				res.Pending[i].Passive = false
			}
		}),
		ofResult("takes a limit for an answer", "run/no rounds left", func(res *pawl.Result) { res.Stop = pawl.StopAnswer }),
		ofResult("takes a failure for an answer", "failed", func(res *pawl.Result) { res.Stop = pawl.StopAnswer }),
		ofResult("takes a cancelled run for a failed one", "cancelled", func(res *pawl.Result) { res.Stop = pawl.StopFailed }),
		ofResult("drops the transcript of a failed run", "failed", func(res *pawl.Result) { res.Messages = res.Messages[:1] }),
	}
}

func runErrorFaults() []Mutant[pawl.Runner] {
	errorless := func(next yieldEvent) yieldEvent {
		return func(e pawl.Event, err error) bool { return err != nil || next(e, err) }
	}
	renamed := func(next yieldEvent) yieldEvent {
		return func(e pawl.Event, err error) bool {
			if err != nil {
				err = errors.New("it ended")
			}
			return next(e, err)
		}
	}
	return []Mutant[pawl.Runner]{
		ofRun("swallows errors", "failed", errorless),
		ofRun("hides that a limit was reached", "run/no rounds left", errorless),
		ofRun("hides that the run is pending", "denied", errorless),
		ofRun("returns a limit without its reason", "run/no rounds left", renamed),
		ofRun("hides why the caller left", "left", renamed),
		ofRun("returns an error with an answer", "run/text", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if !isEnd(e, err) {
					return next(e, err)
				}
				return next(e, nil) && next(pawl.Event{}, errors.New("late"))
			}
		}),
		ofRun("returns the error before the end", "failed", func(next yieldEvent) yieldEvent {
			return func(e pawl.Event, err error) bool {
				if isEnd(e, err) && e.Error != "" {
					return next(pawl.Event{}, errors.New(e.Error)) && next(e, nil)
				}
				return err != nil || next(e, nil)
			}
		}),
	}
}

func runInputFaults() []Mutant[pawl.Runner] {
	return []Mutant[pawl.Runner]{
		ofInput("drops the messages", "run/text", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] { return r.Stream(ctx) }
		}),
		ofInput("changes the messages", "run/text", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(ctx, append(slices.Clone(msgs), llm.User("Please."))...)
			}
		}),
		ofInput("takes a denial for an approval", "denied", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(ctx, decided(msgs, func(d *llm.Decision) { d.Approve = true })...)
			}
		}),
		ofInput("drops the reason of a denial", "denied", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(ctx, decided(msgs, func(d *llm.Decision) { d.Reason = "" })...)
			}
		}),
		ofInput("takes an approval for a denial", "run/a yes", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(ctx, decided(msgs, func(d *llm.Decision) { d.Approve = false })...)
			}
		}),
		ofInput("changes the result of a passive call", "passive", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(ctx, decided(msgs, func(d *llm.Decision) {
					other := llm.TextResult("red")
					d.Result = &other
				})...)
			}
		}),
		ofInput("ignores that the run is cancelled", "cancelled", func(r pawl.Runner) stream {
			return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
				return r.Stream(context.WithoutCancel(ctx), msgs...)
			}
		}),
		ofInput("mixes up concurrent runs", "together", mixedRuns()),
	}
}

// decided returns msgs with changed decisions.
func decided(msgs []llm.Message, change func(d *llm.Decision)) []llm.Message {
	out := make([]llm.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m.Clone()
		for j, p := range out[i].Parts {
			if d, ok := p.(llm.Decision); ok {
				change(&d)
				out[i].Parts[j] = d
			}
		}
	}
	return out
}

// mixedRuns sends the messages of the latest run in place of its own.
func mixedRuns() func(r pawl.Runner) stream {
	var mu sync.Mutex
	var latest []llm.Message
	return func(r pawl.Runner) stream {
		return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			mu.Lock()
			defer mu.Unlock()
			sent := latest
			latest = msgs
			if sent == nil {
				sent = msgs
			}
			return r.Stream(ctx, sent...)
		}
	}
}
