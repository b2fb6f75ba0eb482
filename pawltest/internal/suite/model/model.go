// Package model is the suite of package pawltest for implementations of llm.Model. Each part sends
// a request through the Model to a script behind it, and compares both ends.
package model

import (
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// Opener returns the Model to test, in front of behind.
type Opener[TT any] = func(t TT, behind llm.Model) llm.Model

// Parts returns the parts of the suite. api is the API between the Model and the script behind it,
// whose limits the parts allow for. An empty api can express everything.
func Parts[TT mutant.T[TT]](api string, open Opener[TT]) []suite.Part[TT] {
	return slices.Concat(
		replyParts(api, open), streamParts(open), requestParts(api, open), errorParts(open), opaqueParts(open))
}

// replyParts are the parts about replies: what comes back must equal what the script said.
func replyParts[TT mutant.T[TT]](api string, open Opener[TT]) []suite.Part[TT] {
	test := func(t TT, turn script.Turn) {
		m := open(t, script.New(turn))
		if unspeakable(api, turn) {
			testUnspeakable(t, api, m, turn)
		} else {
			testReply(t, m, turn)
		}
	}
	parts := suite.Each("reply/", cases.Replies(), test)
	return append(parts, suite.Part[TT]{Name: "reply/media", Test: func(t TT) { test(t, cases.Picture()) }})
}

// streamParts are the parts about conversations, cancellation and concurrency.
func streamParts[TT mutant.T[TT]](open Opener[TT]) []suite.Part[TT] {
	return []suite.Part[TT]{
		{Name: "conversation", Test: func(t TT) { Conversation(t, open) }},
		{Name: "cancel", Test: func(t TT) { testCancel(t, open) }},
		{Name: "break", Test: func(t TT) { testBreak(t, open) }},
		{Name: "concurrent", Test: func(t TT) { testConcurrent(t, open) }},
		{Name: "at once", Test: func(t TT) { testAtOnce(t, open) }},
	}
}
