// Package script is a model that plays written turns: for tests, demos and rehearsals, without a
// key and without a network.
//
//	m := script.New(
//		script.Call("weather", `{"city":"Oslo"}`),
//		script.Func(func(req *llm.Request) script.Turn {
//			return script.Say("In Oslo: " + script.Results(req)[0].Text())
//		}),
//	)
//	agent := &pawl.Agent{Model: m, Tools: []pawl.Toolset{weather}}
//
// Turns can have expectations of their request, and replies can be chosen by them. A request that
// does not meet them fails the run with the difference:
//
//	script.Expect(script.Say("rain"), script.Asked("Oslo"), script.Offered("weather"))
//	script.First(script.Expect(script.Say("rain"), script.Asked("Oslo")), script.Say("sun"))
//
// Record turns a live run into a script, and JSON stores a script.
//
// A turn is one reply. Say, Think, Call and Fail write simple turns. Together joins several into
// one reply, for parallel calls or text with a call. Func decides when its turn comes, from all
// results. Loop repeats without end. Flaky fails before it works. The fields of a Turn set the
// rest: the finish reason, the usage, the duration, the cuts, and exact fragments.
//
// The request alone decides which turn is played: the first for a conversation without replies, the
// second with one reply, and so on. So one Model serves many runs at once, a run that is resumed
// from its transcript continues in the right place, and a repeated request gets the same reply.
// Skip is the number of replies of other models at the beginning. A scripted model obeys nothing
// but its script: with tool choice none it still makes the calls of its turn, as real models
// sometimes do.
//
// A reply comes in fragments, cut at fixed places, or whole if the request asks for that
// (Request.Whole). After its last turn, the Model returns *ExhaustedError.
package script

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/llm"
)

// Model plays Turns. The zero value is exhausted from the start. Set the fields before the first
// use; after that a Model may be used concurrently.
type Model struct {
	// Turns are the replies, in order.
	Turns []Turn
	// Skip is the number of replies of other models at the head of the conversation.
	Skip int
	// Quiet means that requests are not recorded, for long loads.
	Quiet bool

	// report that outputs are held to their schema together with tools (llm.OutputHolder)
	Holds bool

	mu       sync.Mutex
	requests []*llm.Request
}

var (
	_ llm.Model        = (*Model)(nil)
	_ llm.OutputHolder = (*Model)(nil)
)

// HoldsOutput returns m.Holds.
func (m *Model) HoldsOutput(*llm.Request) bool { return m.Holds }

// New returns a Model that plays turns in order.
func New(turns ...Turn) *Model { return &Model{Turns: turns} }

// ExhaustedError says that the script was asked for a turn that is not written.
type ExhaustedError struct {
	Turn  int // the turn that was asked for, from 1
	Turns int // how many are written
}

// Error names the turn.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("script: turn %d was asked for, %d are written", e.Turn, e.Turns)
}

// Stream plays the turn after the replies in req. It fails with *ExhaustedError if there is none,
// with the turn's own Err, or with the cause of ctx when that ends.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.keep(req)
		n := replies(req) - m.Skip
		turn, ok := at(m.Turns, max(n, 0), false)
		if !ok {
			yield(llm.Delta{}, &ExhaustedError{max(n, 0) + 1, len(m.Turns)})
			return
		}
		turn = turn.settled(req, max(n, 0)+1)
		play(ctx, turn, req, strconv.Itoa(max(n, 0)+1), yield)
	}
}

// replies returns the number of replies before req. In a run its key has it, also if the request
// has no longer all of them.
func replies(req *llm.Request) int {
	if at, ok := strings.CutSuffix(string(req.Key), "/model"); ok {
		if n, err := strconv.Atoi(at[strings.LastIndexByte(at, '/')+1:]); err == nil {
			return n
		}
	}
	n := 0
	for i := range req.Messages {
		if req.Messages[i].Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// settled returns the plain reply that t is to req.
func (t Turn) settled(req *llm.Request, number int) Turn {
	for {
		if faults := t.unmet(req); faults != nil {
			return Fail(&UnexpectedError{number, faults})
		}
		switch {
		case t.next != nil:
			t = t.next(req)
		case t.loop != nil:
			t, _ = at(t.loop, 0, true)
		default:
			return t
		}
	}
}

// Requests returns copies of the requests so far, in order. With Quiet there are none.
func (m *Model) Requests() []*llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// keep records a copy, because a request belongs to its sender.
func (m *Model) keep(req *llm.Request) {
	if m.Quiet {
		return
	}
	c := *req
	c.Messages = slices.Clone(req.Messages)
	for i := range c.Messages {
		c.Messages[i].Parts = slices.Clone(c.Messages[i].Parts)
	}
	c.Tools = slices.Clone(req.Tools)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, &c)
}

// at returns turn n of turns, from 0. What stands after a Loop is never reached.
func at(turns []Turn, n int, again bool) (Turn, bool) {
	for i, t := range turns {
		switch {
		case t.loop != nil:
			return at(t.loop, n-i, true)
		case i == n:
			return t, true
		}
	}
	if again {
		return at(turns, n%len(turns), false)
	}
	return Turn{}, false
}
