package uistream

// frame.go: frames, the parts of a stream in the terms of no protocol.

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// form is the form of a protocol: aisdk, agui, or History, which collects a message.
type form interface {
	// encode returns the objects that a frame is in the protocol; nil means none.
	encode(f *frame) []object
}

// frame is a part of a stream, in the terms of no protocol.
type frame struct {
	kind      kind
	step      int
	id        string // of a text: step.index
	reasoning bool
	text      string
	name      string // of a report or of an output
	data      any
	call      *shownCall
	ask       *pawl.PendingCall
	exec      *pawl.Execution
	message   *llm.Message
	media     llm.Media
	event     *pawl.Event // run_ended
}

type kind int

const (
	started kind = iota
	stepStarted
	stepEnded
	textStarted
	textDelta
	textEnded
	callStarted
	callDelta
	callReady
	callOK
	callFailed
	callDenied
	question
	callReturned // the run ended without executing it: the client may
	file
	report    // progress and notices: not part of the message
	output    // the structured answer, or the list of tool todo
	steered   // a message of the user
	retracted // text that is taken back
	callGone  // a call that is taken back
	ended
	failed
)

type object = map[string]any
