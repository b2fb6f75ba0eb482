package turns

// speech.go: the text of a turn as it arrives, and its outcome.

import (
	"bytes"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Reply is the outcome of a turn.
type Reply struct {
	Text      string
	Reasoning string
	Calls     []ClientCall // calls for the client to execute, with IDs made by CallID
	Finish    string       // stop, length, content_filter or tool_calls
	Usage     llm.Usage
}

// speech is the text of a turn, which is sent as it arrives.
type speech struct {
	say  func(text string)
	all  bytes.Buffer
	sent int  // offset in the text of the reply; -1 means that a blank line precedes its first word
	step int  // of the reply
	held bool // the rest of the reply is sent when it is complete

	from int // offset in all where the text of the reply begins
	// withdraw is called when the text of a reply that was sent is void, before the reply begins
	// again.
	withdraw func()
}

func (s *speech) write(text string) {
	if text != "" {
		s.all.WriteString(text)
		s.say(text)
	}
}

// begin begins the reply of step n, unless it has begun.
func (s *speech) begin(n int) {
	if n == s.step {
		return
	}
	s.step = n
	s.sent = 0
	s.held = false
	s.from = s.all.Len()
	if s.from > 0 {
		s.sent = -1
	}
}

// restart begins the reply of the current step again. What was sent of it is void.
func (s *speech) restart(n int) {
	if n != s.step || s.all.Len() == s.from {
		return
	}
	s.all.Truncate(s.from)
	s.withdraw()
	s.step = 0
	s.begin(n)
}

// word sends a piece of the reply.
func (s *speech) word(text string) {
	if s.sent < 0 && text != "" {
		s.write("\n\n")
		s.sent = 0
	}
	s.write(text)
	s.sent += len(text)
}

// complete sends the rest of a reply, of which text is the whole.
func (s *speech) complete(n int, text string) {
	gap := s.held
	s.begin(n)
	s.held = gap

	sent := max(s.sent, 0)
	if sent <= len(text) && strings.HasSuffix(s.all.String(), text[:sent]) {
		s.word(text[sent:])
	}
	s.held = false
}

// add sends what an event has of a reply.
func (s *speech) add(ev *pawl.Event) {
	switch {
	case ev.Kind == pawl.EventStepStarted: // again, if the reply broke off
		s.restart(ev.Step)
	case ev.Kind == pawl.EventText && !s.held:
		s.begin(ev.Step)
		s.word(ev.Text)
	case ev.Kind == pawl.EventResponseReceived && ev.Response != nil:
		s.complete(ev.Step, ev.Response.Message.Text())
	}
}

// finish sends the answer of a run that has said nothing, or the result of the tool that ended it.
func (s *speech) finish(r *pawl.Result) {
	byTool := r.Answer != nil && r.Answer.From == pawl.AnswerTool
	switch {
	case s.all.Len() == 0 && r.Stop.Class() != pawl.ClassWaiting:
		s.write(r.Text())
	case byTool && r.Answer.Text != "":
		s.write("\n\n" + r.Answer.Text) // after the words of its reply
	}
}

// Voice sends the text of a turn to the client.
type Voice struct {
	Say      func(text string) // sends a piece of the text
	Withdraw func()            // says that the text of the reply so far is void
	Think    func(text string) // sends a piece of the reasoning; nil means that none is sent
}

// Mute sends nothing.
var Mute = Voice{Say: func(string) {}, Withdraw: func() {}}

// Withdrawn is the text between the beginning of a reply that broke off and the whole reply, in a
// protocol that cannot take text back. Its readers are people.
const Withdrawn = "\n\n[The reply broke off. What it said is void; it begins again.]\n\n"
