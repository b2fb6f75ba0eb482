package model

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// watched reports when a reply of its model has ended, in any way.
type watched struct {
	llm.Model
	hold  chan struct{} // closed to let a held reply go on
	ended chan struct{}
}

// Unwrap returns the wrapped model.
func (w watched) Unwrap() llm.Model { return w.Model }

func (w watched) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		defer close(w.ended)
		w.Model.Stream(ctx, req)(yield)
	}
}

// held is a model whose reply stops after its first fragment until the request is cancelled.
func held() watched {
	turn := script.Say("A long answer that does not come to its end for now.")
	hold := make(chan struct{})
	turn.Hold = hold
	return watched{script.New(turn), hold, make(chan struct{})}
}

// inTime calls f. If f does not return in time, that is an error, and the held reply goes on.
func (w watched) inTime(t any, errorf func(format string, args ...any), f func()) {
	late := time.AfterFunc(suite.Patience(t), func() {
		errorf("the Model does not end a request whose caller has left")
		close(w.hold)
	})
	defer late.Stop()
	f()
}

func testCancel[TT mutant.T[TT]](t TT, open Opener[TT]) {
	behind := held()
	m := open(t, behind)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	fragments := 0
	behind.inTime(t, t.Errorf, func() {
		for d, err := range m.Stream(ctx, Question()) {
			last = err
			if err == nil && d.Part != nil {
				fragments++
				cancel()
			}
		}
	})
	switch {
	case fragments == 0:
		t.Errorf("no fragment came before the end: %v", last)
	case last == nil:
		t.Errorf("a cancelled reply ended without an error")
	case !errors.Is(last, context.Canceled):
		t.Errorf("got error %v, want context.Canceled", last)
	}
	expectEnded(t, behind)

	dead, kill := context.WithCancel(t.Context())
	kill()
	for d, err := range open(t, script.New(script.Say("x"))).Stream(dead, Question()) {
		if err == nil {
			t.Errorf("a request with a cancelled context was answered: %+v", d)
		}
	}
}

func testBreak[TT mutant.T[TT]](t TT, open Opener[TT]) {
	behind := held()
	m := open(t, behind)
	behind.inTime(t, t.Errorf, func() {
		for _, err := range m.Stream(t.Context(), Question()) {
			if err != nil {
				t.Fatalf("%v", err)
			}
			break
		}
	})
	expectEnded(t, behind)
}

func expectEnded[TT mutant.T[TT]](t TT, w watched) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(suite.Patience(t)):
		t.Errorf("the provider still answers, though the client has left")
	}
}
