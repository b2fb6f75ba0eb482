package core_test

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/thread"
)

// A program that passes nil gets an error that says what would be right, at each way to start a
// run. No model is asked.
func TestNilArguments(t *testing.T) {
	var noContext context.Context
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m := script.New(script.Say("done"))
	agent := &pawl.Agent{Model: m}
	var noAgent *pawl.Agent
	ask := llm.User("go")
	events := func(s iter.Seq2[pawl.Event, error]) error {
		_, err := pawl.Collect(s, nil)
		return err
	}
	result := func(_ *pawl.Result, err error) error { return err }
	chat := func(ctx context.Context, r thread.Runner) error { return events(r.Stream(ctx, ask)) }

	for name, tt := range map[string]struct {
		got  error
		want string
	}{
		"Run, nil context":          {result(agent.Run(noContext, ask)), "the context is nil"},
		"Once, nil context":         {result(agent.Once(noContext, ask)), "the context is nil"},
		"Resume, nil context":       {result(agent.Resume(noContext, nil, ask)), "the context is nil"},
		"Stream, nil context":       {events(agent.Stream(noContext, ask)), "the context is nil"},
		"ResumeStream, nil context": {events(agent.ResumeStream(noContext, nil, ask)), "the context is nil"},
		"Check, nil context":        {agent.Check(noContext), "the context is nil"},
		"Run, nil agent":            {result(noAgent.Run(t.Context(), ask)), "the *pawl.Agent is nil"},
		"Once, nil agent":           {result(noAgent.Once(t.Context(), ask)), "the *pawl.Agent is nil"},
		"Resume, nil agent":         {result(noAgent.Resume(t.Context(), nil, ask)), "the *pawl.Agent is nil"},
		"Stream, nil agent":         {events(noAgent.Stream(t.Context(), ask)), "the *pawl.Agent is nil"},
		"Check, nil agent":          {noAgent.Check(t.Context()), "the *pawl.Agent is nil"},
		"Collect, nil stream":       {events(nil), "the stream is nil"},
		"thread, no agent":          {chat(t.Context(), thread.Runner{DB: db, ID: "t"}), "set Runner to an agent"},
		"thread, no store":          {chat(t.Context(), thread.Runner{Runner: agent, ID: "t"}), "needs a store (DB)"},
		"thread, nil context":       {chat(noContext, thread.Runner{Runner: agent, DB: db, ID: "t"}), "the context is nil"},
	} {
		if tt.got == nil || !strings.Contains(tt.got.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, tt.got, tt.want)
		}
	}
	if n := len(m.Requests()); n > 0 {
		t.Errorf("%d requests were sent, want none", n)
	}
}

// The events of a run are read once: a second range starts nothing.
func TestEventsAreReadOnce(t *testing.T) {
	m := script.New(script.Say("done"), script.Say("again"))
	stream := (&pawl.Agent{Model: m}).Stream(t.Context(), llm.User("go"))
	if res, err := pawl.Collect(stream, nil); err != nil || res.Text() != "done" {
		t.Fatalf("got %v, %v", res, err)
	}
	_, err := pawl.Collect(stream, nil)
	if err == nil || !strings.Contains(err.Error(), "were read before") || len(m.Requests()) != 1 {
		t.Errorf("got %v after %d requests, want an error after 1", err, len(m.Requests()))
	}
}
