package main

import (
	"context"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/tools/search"
)

// minKey is how long a key is at least that is hidden: what people set for servers that want none ("none", "ollama") is an ordinary word, and
// no provider's keys are so short.
const minKey = 8

// secrets hides the keys of all providers and search services, others (that of --key-env, what --tool-file puts into headers), and the arguments that tools mark as secret.
func secrets(env func(string) string, tools []*pawl.Tool, others ...string) *redact.Redactor {
	r := new(redact.Redactor)
	r.AddTools(tools...)
	keys := others
	for _, name := range append(provider.KeyVariables(), search.KeyVariables()...) {
		keys = append(keys, strings.TrimSpace(env(name)))
	}
	addKeys(r, keys)
	return r
}

// addKeys hides those that are long enough to be keys.
func addKeys(r *redact.Redactor, keys []string) {
	for _, key := range keys {
		if len(key) >= minKey {
			_ = r.Add(key) // it is long enough
		}
	}
}

// resumed goes on from a Result.
func (s *setup) resumed(from *pawl.Result) pawl.Runner {
	run := observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return s.agent.ResumeStream(ctx, from, msgs...)
	})
	if s.around == nil {
		return run
	}
	told := s.around(run)
	return observe.RunnerFunc(func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
		return told.Stream(linked(ctx, from), msgs...)
	})
}

// follow runs what there is to run with msgs and shows the events without secrets. told is how it ended without secrets, truth as it was: what
// a chat goes on from. Both are nil when nothing was begun.
func (s *setup) follow(ctx context.Context, run pawl.Runner, msgs []llm.Message, show func(pawl.Event)) (told, truth *pawl.Result, err error) {
	seen := observe.Sync(run, func(e pawl.Event) {
		if e.Kind == pawl.EventRunEnded && !strings.Contains(string(e.Run), "/") {
			truth = e.Result
		}
	})
	told, err = follow(redact.Runner(seen, s.secrets).Stream(ctx, msgs...), show)
	return told, truth, err
}

// handed returns the open calls as they are printed: whole for whoever is to carry them out, without secrets for whoever only decides.
func (s *setup) handed(truth *pawl.Result) []openCall {
	return s.shown(openCalls(truth))
}

// shown returns open calls as handed does.
func (s *setup) shown(open []openCall) []openCall {
	for i := range open {
		if o := &open[i]; o.waiting != nil && !o.waiting.Passive {
			o.Args = s.secrets.Call(llm.ToolCall{Name: o.Name, Args: o.Args}).Args
		}
	}
	return open
}
