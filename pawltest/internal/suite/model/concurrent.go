package model

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

func testConcurrent[TT mutant.T[TT]](t TT, open Opener[TT]) {
	m := open(t, &script.Model{Quiet: true, Turns: []script.Turn{script.Func(func(req *llm.Request) script.Turn {
		said := req.Messages[len(req.Messages)-1].Parts // an adapter may join messages
		return script.Call("look", `{"at":"`+said[len(said)-1].(llm.Text).Text+`"}`)
	})}})
	var wg sync.WaitGroup
	failures := make(chan string, 64)
	for i := range 32 {
		wg.Go(func() {
			req := Question()
			req.Whole = i%2 == 0
			text := fmt.Sprintf("number %d", i)
			req.Messages = append(req.Messages, llm.User(text))
			resp := new(llm.Response)
			for d, err := range m.Stream(t.Context(), req) {
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					failures <- fmt.Sprintf("request %d: %v", i, err)
					return
				}
			}
			calls := resp.Message.Calls()
			if want := `{"at":"` + text + `"}`; len(calls) != 1 || string(calls[0].Args) != want {
				failures <- fmt.Sprintf("request %d: got %s, want a call with %s", i, Form(resp), want)
			}
		})
	}
	wg.Wait()
	close(failures)
	for f := range failures {
		t.Errorf("%s", f)
	}
}

// testAtOnce sends two requests that are answered only when both have arrived.
func testAtOnce[TT mutant.T[TT]](t TT, open Opener[TT]) {
	m := open(t, &meeting{Model: script.New(script.Say("Met.")), both: make(chan struct{})})
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience(t))
	defer cancel()
	var wg sync.WaitGroup
	failures := make(chan error, 2)
	for range 2 {
		wg.Go(func() {
			_, err := llm.Complete(ctx, m, Question())
			failures <- err
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Errorf("of two requests at the same time, one waits for the other: %v", err)
		}
	}
}

// meeting is a model that answers when two requests have arrived.
type meeting struct {
	llm.Model
	mu      sync.Mutex
	arrived int
	both    chan struct{}
}

// Unwrap returns the wrapped model.
func (m *meeting) Unwrap() llm.Model { return m.Model }

func (m *meeting) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.mu.Lock()
		m.arrived++
		if m.arrived == 2 {
			close(m.both)
		}
		m.mu.Unlock()

		select {
		case <-m.both:
			m.Model.Stream(ctx, req)(yield)
		case <-ctx.Done():
			yield(llm.Delta{}, context.Cause(ctx))
		}
	}
}
