package openai

import (
	"bytes"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/web"
)

// reply is the outcome of a turn.
type reply struct {
	text      string
	reasoning string
	calls     []llm.ToolCall // calls for the client to execute, with IDs made by callID
	finish    string         // stop, length, content_filter or tool_calls
	usage     llm.Usage
}

// speech is the text of a turn, which is sent as it arrives.
type speech struct {
	say  func(text string)
	all  bytes.Buffer
	sent int  // offset in the text of the reply; -1 means that a blank line precedes its first word
	step int  // of the reply
	held bool // the rest of the reply is sent when it is complete
}

func (s *speech) tell(text string) {
	if text != "" {
		s.all.WriteString(text)
		s.say(text)
	}
}

// begin begins the reply of step n, unless it has begun.
func (s *speech) begin(n int) {
	if n != s.step {
		s.step = n
		s.sent = 0
		s.held = false
		if s.all.Len() > 0 {
			s.sent = -1
		}
	}
}

func (s *speech) word(text string) {
	if s.sent < 0 && text != "" {
		s.tell("\n\n")
		s.sent = 0
	}
	s.tell(text)
	s.sent += len(text)
}

// whole sends the rest of a complete reply.
func (s *speech) whole(n int, text string) {
	gap := s.held
	s.begin(n)
	s.held = gap
	if n := max(s.sent, 0); n <= len(text) && strings.HasSuffix(s.all.String(), text[:n]) {
		s.word(text[n:])
	}
	s.held = false
}

// follow sends text as it arrives and returns the outcome. An error is meant for the client. An
// agent with structured output says that output alone. w gets heartbeats; nil means none. think
// gets the reasoning; nil means that it is dropped.
func (c *call) follow(t *Turn, w *web.Sender, say func(text string), think *thoughts) (reply, error) {
	beat := time.NewTicker(c.S.O.Beat)
	defer beat.Stop()
	var out reply
	s := speech{say: say}
	for ev, err := range t.Live.Events(c.R.Context(), true, beat.C, w.Beat) {
		if err == runs.ErrElsewhere {
			break
		} else if err != nil {
			return out, err
		}
		if think != nil && ev.Run == "run" && ev.Step > t.skip {
			think.hear(&c.S.O, &ev)
			out.reasoning = think.all.String()
		}
		switch {
		case ev.Kind == pawl.EventGap:
			s.held = true
		case ev.Run != "run" || ev.Step <= t.skip && ev.Kind != pawl.EventRunEnded:
		case ev.Kind == pawl.EventText && !s.held && !t.Live.Structured:
			s.begin(ev.Step)
			s.word(ev.Text)
		case ev.Kind == pawl.EventResponseReceived && ev.Response != nil:
			if !t.Live.Structured {
				s.whole(ev.Step, ev.Response.Message.Text())
			}
			out.finish = finishOf(ev.Response.Finish)
		case ev.Kind == pawl.EventRunEnded && ev.Result != nil:
			if s.all.Len() == 0 && ev.Result.Stop != pawl.StopPending {
				s.tell(ev.Result.Text())
			}
			out.text = s.all.String()
			return out, c.stopped(t, ev, &out)
		}
	}
	return out, runs.Fault("busy", "the server is stopping", "the run "+t.Id+" is resumed by the next one")
}
