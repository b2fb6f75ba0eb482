package record

// input.go: Input, what a run starts with.

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// Input is the start of a run, read from the journal. It is therefore the same for the process that
// starts the run and for the processes that resume it.
type Input struct {
	From     *pawl.Result // nil means that there was no Result before
	Messages []llm.Message
}

// Input decodes the start of a run.
func (b *Begin) Input() (in Input, err error) {
	err = json.Unmarshal(b.Messages, &in.Messages)
	if err == nil && b.From != nil {
		in.From = new(pawl.Result)
		err = json.Unmarshal(b.From, in.From)
	}
	if err != nil {
		err = fmt.Errorf("%w: its beginning: %v", store.ErrCorrupt, err)
	}

	// Earlier versions executed the open calls of the messages, as a resumed Result does.
	if in.From == nil && !b.Answered && HasOpenCalls(in.Messages) {
		in.From = &pawl.Result{Messages: in.Messages}
		in.Messages = nil
	}
	return in, err
}

// HasOpenCalls reports whether the last reply in msgs has open calls.
func HasOpenCalls(msgs []llm.Message) bool { return len((&pawl.Result{Messages: msgs}).Calls()) > 0 }

// All returns the messages that the run starts with.
func (in Input) All() []llm.Message {
	if in.From == nil {
		return in.Messages
	}
	return append(slices.Clip(in.From.Messages), in.Messages...)
}
