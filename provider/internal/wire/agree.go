package wire

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Streams state many things twice: the fragments of a call and its whole arguments, the number of
// each event, the id of a call. If two statements differ, a proxy has dropped or doubled an event,
// and no call of the reply may be executed. Adapters find the statements; the Emitter compares
// them with what was emitted.

// sum is the length and the checksum of the text or the arguments of a part.
type sum struct {
	n   int
	crc uint32
}

func (s *sum) add(b []byte) {
	s.n += len(b)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b)
}

// wireCall is a call with an id of the provider.
type wireCall struct {
	name string
	part int
}

// Agrees reports whether the fragments of part i form whole.
func (o *Emitter) Agrees(i int, whole []byte) bool {
	var w sum
	w.add(jsonscan.JoinHalves(whole))
	if i >= len(o.sums) {
		return false
	}
	have := o.sums[i]
	if h, held := o.halves[i]; held {
		have.add(jsonscan.JoinHalves(h.data))
	}
	return have == w
}

// Inconsistent returns the error of a reply whose statements differ. It is retryable: the next
// reply may arrive complete.
func (o *Emitter) Inconsistent(format string, args ...any) error {
	if o.Unchecked {
		return nil
	}
	return &llm.ProviderError{Provider: o.Provider, Code: llm.CodeStreamInconsistent,
		Message: "parts of the stream were lost or repeated: " + fmt.Sprintf(format, args...), Retryable: true}
}

// Has reports whether the reply has a call.
func (o *Emitter) Has() bool { return o.called }

// sum returns the sum of part i.
func (o *Emitter) sum(i int) *sum {
	if o.sums == nil {
		o.sums = make([]sum, 0, 8)
	}
	for len(o.sums) <= i {
		o.sums = append(o.sums, sum{})
	}
	return &o.sums[i]
}

// note records a delta of a part, for later comparisons.
func (o *Emitter) note(i int, p llm.Part) error {
	s := o.sum(i)
	switch p := p.(type) {
	case llm.Text:
		if !o.Whole {
			s.add(bytesOf(p.Text))
		}
	case llm.ToolCall:
		s.add(p.Args)
		return o.noteCall(i, p)
	}
	return nil
}

// noteCall records the id of a call. An id identifies one call of a reply. Some servers send the
// name of the tool, which is no id.
func (o *Emitter) noteCall(i int, c llm.ToolCall) error {
	o.called = true
	if c.ID == "" || c.ID == c.Name {
		return nil
	}
	if o.calls == nil {
		o.calls = make(map[string]wireCall, 4)
	}
	if first, ok := o.calls[c.ID]; !ok {
		o.calls[c.ID] = wireCall{c.Name, i}
	} else if first.part != i {
		return o.Inconsistent("two calls have the id %q", c.ID)
	}
	return nil
}

// repeats reports whether an earlier call has the id, the name and the arguments of c.
func (o *Emitter) repeats(c llm.ToolCall) bool {
	if c.ID == "" || c.ID == c.Name || o.Unchecked {
		return false
	}
	first, ok := o.calls[c.ID]
	return ok && first.name == c.Name && o.Agrees(first.part, c.Args)
}

// announced returns an error if the reply announces calls and has none. The usage counts if the
// request is not repeated.
func (o *Emitter) announced(f llm.FinishReason) error {
	if f != llm.FinishReasonToolCalls || o.called || o.Summary {
		return nil
	}
	if o.Usage != nil && !o.Yield(llm.Delta{Usage: o.Usage}, nil) {
		return ErrStopped
	}
	return &llm.ProviderError{Provider: o.Provider, Code: llm.CodeMalformedReply,
		Message: "the finish reason announces calls, and the reply has none", Retryable: true}
}

// BadCall is the cause of a ProviderError that reports a call that the model wrote wrong. It is no
// fault of the provider: the reply ends with FinishReasonError, and the model can correct it.
type BadCall struct{ Text string } // what the model wrote; empty means unknown

// Error returns a short text.
func (*BadCall) Error() string { return "the model wrote a call that cannot be read" }

// readBadCall ends the reply if err is about a call that the model wrote wrong. It returns other
// errors unchanged.
func (o *Emitter) readBadCall(err error) error {
	var e *llm.ProviderError
	var b *BadCall
	if !errors.As(err, &e) || !errors.As(err, &b) || o.Tools == nil { // Post reads no reply
		return err
	}
	if err := o.Send(llm.Delta{Notice: &llm.Notice{Code: "finish", Text: e.Message}}); err != nil {
		return err
	}
	if b.Text != "" {
		if err := o.Part(llm.Text{Text: b.Text}); err != nil {
			return err
		}
	}
	return o.Finish(llm.FinishReasonError)
}
