package mutant

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// errorFaults lose what an error of the provider says.
func errorFaults() []Mutant[llm.Model] {
	server := func(e *llm.ProviderError) { e.Code = llm.CodeServer }
	return []Mutant[llm.Model]{
		ofReply("returns errors without a code", "errors/server", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					err = errors.New(err.Error())
				}
				return next(d, err)
			}
		}),
		ofError("takes an invalid request for a server error", "errors/invalid request", server),
		ofError("takes a wrong key for a server error", "errors/authentication", server),
		ofError("takes a missing permission for a server error", "errors/permission", server),
		ofError("takes an unknown model for a server error", "errors/not found", server),
		ofError("takes a too long conversation for an invalid request", "errors/context length",
			func(e *llm.ProviderError) { e.Code = llm.CodeInvalidRequest }),
		ofError("takes filtered content for an invalid request", "errors/content filter", func(e *llm.ProviderError) { e.Code = llm.CodeInvalidRequest }),
		ofError("takes a used quota for a rate limit", "errors/quota", func(e *llm.ProviderError) { e.Code = llm.CodeRateLimit }),
		ofError("takes a rate limit for a server error", "errors/rate limit", server),
		ofError("takes an overload for a server error", "errors/overloaded", server),
		ofError("drops Retry-After", "errors/retry after", func(e *llm.ProviderError) { e.RetryAfter = 0 }),
		ofError("takes the seconds of Retry-After for minutes", "errors/retry after", func(e *llm.ProviderError) { e.RetryAfter *= 60 }),
		ofError("drops the status", "errors/invalid request", func(e *llm.ProviderError) { e.Status = 0 }),
		ofError("drops the provider's text", "errors/invalid request", func(e *llm.ProviderError) { e.Message = "the request failed" }),
		ofError("says that a refused request may be repeated", "errors/authentication", func(e *llm.ProviderError) { e.Retryable = true }),
		ofError("says that a rate limit is final", "errors/rate limit", func(e *llm.ProviderError) { e.Retryable = false }),
		ofReply("returns an error as the model's text", "errors/server", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err == nil {
					return next(d, nil)
				}
				return next(llm.Delta{Part: llm.Text{Text: err.Error()}, Done: true}, nil) &&
					next(llm.Delta{Finish: llm.FinishReasonStop}, nil)
			}
		}),
		{"repeats a refused request", "errors/once", func(m llm.Model) llm.Model { return model{m, repeated} }},
		ofReply("goes on after an error", "errors/broken", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				more := next(d, err)
				return more && (err == nil || next(llm.Delta{Finish: llm.FinishReasonStop}, nil))
			}
		}),
	}
}

// repeated sends a request again if it is refused.
func repeated(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for range 2 {
			var failed error
			for d, err := range m.Stream(ctx, req) {
				failed = err
				if err == nil && !yield(d, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
		}
		yield(llm.Delta{}, errors.New("refused twice"))
	}
}

// streamFaults break the contract of the stream: its end, its cancellation, its concurrency.
func streamFaults() []Mutant[llm.Model] {
	return []Mutant[llm.Model]{
		ofReply("takes a broken reply for a complete one", "errors/broken", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					return next(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
				return next(d, nil)
			}
		}),
		{"takes the end of the connection for the end of the reply", "errors/ended early", func(m llm.Model) llm.Model { return model{m, completed} }},
		ofReply("ends after the first part", "reply/text and calls", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil || !d.Done {
					return next(d, err)
				}
				_ = next(d, nil) && next(llm.Delta{Finish: llm.FinishReasonStop, Model: "m", ID: "r"}, nil)
				return false
			}
		}),
		{"does not end a broken reply", "errors/ended early", func(m llm.Model) llm.Model { return model{m, hanging} }},
		{"does not end concurrent replies", "concurrent", func(m llm.Model) llm.Model { return model{m, hanging} }},
		ofDelta("never finishes", "reply/text", func(d *llm.Delta) { d.Finish = "" }),
		ofReply("finishes twice", "reply/text", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool { return (d.Finish == "" || next(d, err)) && next(d, err) }
		}),
		ofReply("continues a part that is complete", "reply/text", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				return next(d, err) && (!d.Done || next(llm.Delta{Index: d.Index, Part: llm.Text{Text: "!"}}, nil))
			}
		}),
		{"changes the messages of the request", "request/messages", func(m llm.Model) llm.Model { return model{m, changing} }},
		{"changes the tools of the request", "request/tools", func(m llm.Model) llm.Model { return model{m, changingTools} }},
		{"ignores that the request is cancelled", "cancel", func(m llm.Model) llm.Model { return model{m, uncancelled} }},
		ofReply("takes a cancelled reply for a complete one", "cancel", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					return next(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				}
				return next(d, nil)
			}
		}),
		ofReply("hides that the request was cancelled", "cancel", func(_ *llm.Request, next yield) yield {
			return func(d llm.Delta, err error) bool {
				if err != nil {
					err = errors.New("connection closed")
				}
				return next(d, err)
			}
		}),
		{"reads on after the caller has left", "break", func(m llm.Model) llm.Model { return model{m, readsOn} }},
		{"mixes up concurrent replies", "concurrent", mixed},
		{"sends one request after the other", "at once", inTurn},
	}
}

// completed adds a finish to a reply that has none.
func completed(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		finished := false
		for d, err := range m.Stream(ctx, req) {
			var broken *llm.ProviderError
			if errors.As(err, &broken) && broken.Code == llm.CodeStream {
				break
			}
			finished = finished || d.Finish != "" || err != nil
			if !yield(d, err) {
				return
			}
		}
		if !finished {
			yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
		}
	}
}

func changing(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	req.Messages[len(req.Messages)-1] = llm.User("changed")
	return m.Stream(ctx, req)
}

func changingTools(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	for _, t := range req.Tools {
		t.Description += " Call it."
	}
	return m.Stream(ctx, req)
}

func uncancelled(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return m.Stream(context.WithoutCancel(ctx), req)
}

// hanging ends no reply before its context does.
func hanging(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range m.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
		}
		<-ctx.Done()
		runtime.Goexit() // the suite has given up
	}
}

func readsOn(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		more := true
		for d, err := range m.Stream(ctx, req) {
			more = more && yield(d, err)
		}
	}
}

// mixed returns a Model that sends the latest request in place of its own.
func mixed(m llm.Model) llm.Model {
	var mu sync.Mutex
	var latest *llm.Request
	return model{m, func(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
		mu.Lock()
		defer mu.Unlock()
		sent := latest
		latest = req
		if sent == nil {
			sent = req
		}
		return m.Stream(ctx, sent)
	}}
}

// inTurn returns a Model that begins a request when the one before it has ended.
func inTurn(m llm.Model) llm.Model {
	var mu sync.Mutex
	return model{m, func(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			mu.Lock()
			defer mu.Unlock()
			m.Stream(ctx, req)(yield)
		}
	}}
}
