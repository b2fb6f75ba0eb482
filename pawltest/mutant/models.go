package mutant

import (
	"context"
	"iter"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Models returns the faults of an llm.Model that pawltest.TestModel finds: faults of requests, of
// replies, of data that only the provider reads, of errors, and of the stream.
func Models() []Mutant[llm.Model] {
	return slices.Concat(
		messageFaults(), mediaFaults(), resultFaults(), toolFaults(), settingFaults(),
		replyFaults(), callFaults(), endFaults(),
		opaqueFaults(), errorFaults(), streamFaults())
}

// model is a Model with a fault.
type model struct {
	llm.Model
	stream func(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error]
}

// Unwrap returns the Model without the fault.
func (m model) Unwrap() llm.Model { return m.Model }

// Stream sends req with the fault.
func (m model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return m.stream(ctx, m.Model, req)
}

// yield takes the next fragment of a reply.
type yield = func(llm.Delta, error) bool

// ofRequest is a fault that changes the request on its way. change owns its argument.
func ofRequest(name, part string, change func(req *llm.Request)) Mutant[llm.Model] {
	stream := func(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
		changed := copyRequest(req)
		change(changed)
		return m.Stream(ctx, changed)
	}
	return Mutant[llm.Model]{name, part, func(m llm.Model) llm.Model { return model{m, stream} }}
}

// ofReply is a fault that changes what a reply yields. change is called for each request, and may
// keep state in what it returns.
func ofReply(name, part string, change func(req *llm.Request, next yield) yield) Mutant[llm.Model] {
	stream := func(ctx context.Context, m llm.Model, req *llm.Request) iter.Seq2[llm.Delta, error] {
		return func(next func(llm.Delta, error) bool) { m.Stream(ctx, req)(change(req, next)) }
	}
	return Mutant[llm.Model]{name, part, func(m llm.Model) llm.Model { return model{m, stream} }}
}

// ofDelta is a fault that changes each fragment of a reply.
func ofDelta(name, part string, change func(d *llm.Delta)) Mutant[llm.Model] {
	return ofReply(name, part, func(_ *llm.Request, next yield) yield {
		return func(d llm.Delta, err error) bool {
			if err == nil {
				change(&d)
			}
			return next(d, err)
		}
	})
}

// ofError is a fault that changes the errors of a provider. change owns its argument.
func ofError(name, part string, change func(e *llm.ProviderError)) Mutant[llm.Model] {
	return ofReply(name, part, func(_ *llm.Request, next yield) yield {
		return func(d llm.Delta, err error) bool {
			if e, ok := err.(*llm.ProviderError); ok {
				changed := *e
				change(&changed)
				err = &changed
			}
			return next(d, err)
		}
	})
}

// copyRequest returns a copy of req that shares no memory with it, except for schemas.
func copyRequest(req *llm.Request) *llm.Request {
	c := *req
	c.Messages = nil
	for _, m := range req.Messages {
		c.Messages = append(c.Messages, m.Clone())
	}
	c.Tools = nil
	for _, t := range req.Tools {
		c.Tools = append(c.Tools, &llm.ToolSpec{
			Name:        t.Name,
			Description: t.Description,
			Input:       t.Input,
			Output:      t.Output,
			Deferred:    t.Deferred,
			NoRepair:    t.NoRepair,
		})
	}
	c.Settings.StopSequences = slices.Clone(req.Settings.StopSequences)
	c.Choice.Names = slices.Clone(req.Choice.Names)
	return &c
}

// eachPart replaces the parts of all messages and of their results. change returns nil to drop a
// part.
func eachPart(req *llm.Request, change func(p llm.Part) llm.Part) {
	var changed func(parts []llm.Part) []llm.Part
	changed = func(parts []llm.Part) []llm.Part {
		var out []llm.Part
		for _, p := range parts {
			if r, ok := p.(llm.ToolResult); ok {
				r.Parts = changed(r.Parts)
				p = r
			}
			p = change(p)
			if p != nil {
				out = append(out, p)
			}
		}
		return out
	}
	for i := range req.Messages {
		req.Messages[i].Parts = changed(req.Messages[i].Parts)
	}
}

// eachOf is eachPart for the parts of one type.
func eachOf[P llm.Part](change func(p P) llm.Part) func(req *llm.Request) {
	return func(req *llm.Request) {
		eachPart(req, func(p llm.Part) llm.Part {
			if own, ok := p.(P); ok {
				return change(own)
			}
			return p
		})
	}
}
