package main

import (
	"context"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/tools/search"
)

// minKey is how long a key is at least that is hidden: what people set for servers that want none ("none", "ollama") is an ordinary word, and
// no provider's keys are so short.
const minKey = 8

// secrets hides the keys of all providers and search services, others (that of --key-env, what --tool-file puts into headers), and the arguments that tools mark as secret.
func secrets(env func(string) string, tools []*pawl.Tool, others ...string) *pawl.Redactor {
	r := new(pawl.Redactor)
	r.AddTools(tools...)
	keys := others
	for _, name := range append(provider.KeyVariables(), search.KeyVariables()...) {
		keys = append(keys, strings.TrimSpace(env(name)))
	}
	for _, key := range keys {
		if len(key) >= minKey {
			_ = r.Add(key) // it is long enough
		}
	}
	return r
}

// follow goes on from a Result with msgs and shows the events without secrets. told is how the run ended without secrets, truth as it was: what
// a chat goes on from. Both are nil when nothing was begun.
func (s *setup) follow(ctx context.Context, from *pawl.Result, msgs []pawl.Message, show func(pawl.Event)) (told, truth *pawl.Result, err error) {
	run := pawl.RunnerFunc(func(ctx context.Context, msgs ...pawl.Message) iter.Seq2[pawl.Event, error] {
		return s.agent.ResumeStream(ctx, from, msgs...)
	})
	if s.around != nil {
		ctx, run = linked(ctx, from), s.around(run).Stream
	}
	seen := pawl.Tap(run, func(e pawl.Event) {
		if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
			truth = e.Result
		}
	})
	told, err = follow(pawl.Redact(seen, s.secrets).Stream(ctx, msgs...), show)
	return told, truth, err
}

// handed returns the open calls as they are printed: whole for whoever is to carry them out, without secrets for whoever only decides.
func (s *setup) handed(truth *pawl.Result) []openCall {
	open := openCalls(truth)
	for i := range open {
		if o := &open[i]; o.waiting != nil && !o.waiting.Passive {
			o.Args = s.secrets.Call(pawl.ToolCall{Name: o.Name, Args: o.Args}).Args
		}
	}
	return open
}
