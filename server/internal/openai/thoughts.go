package openai

// thoughts.go: what chat programs in front of the endpoints need: answers to their side requests,
// and the reasoning of a reply.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// sideMarks are texts by which a request of a chat program is known: the first begins the message,
// and the message has the others. Open WebUI's prompt for a question about documents has the same
// beginning as its side requests, but no history.
var sideMarks = [][]string{
	// Open WebUI, LibreChat with two prompts, and LobeChat
	{"### Task:", "<chat_history>"},
	{"Provide a concise, 5-word-or-less title for the conversation"},
	{"Analyze this conversation and provide:", "concise title in the detected"},
	{"You are a professional conversation summarizer. Generate a concise title", "ONLY"},
}

// isSide reports whether a chat program asks for a title, tags or follow-up questions.
func (r *chatRequest) isSide() bool {
	var meta struct {
		Task string `json:"task"`
	}
	if json.Unmarshal(r.Metadata, &meta) == nil && meta.Task != "" {
		return true
	}
	return len(r.Messages) <= 2 && slices.ContainsFunc(r.Messages, chatMessage.isSide)
}

// isSide reports whether the message is a known prompt of a side request.
func (m chatMessage) isSide() bool {
	parts, err := contentOf(m.Content)
	if err != nil || m.Role == "assistant" {
		return false
	}
	text := strings.TrimSpace(llm.Message{Parts: parts}.Text())
	absent := func(mark string) bool { return !strings.Contains(text, mark) }
	for _, marks := range sideMarks {
		if strings.HasPrefix(text, marks[0]) && !slices.ContainsFunc(marks, absent) {
			return true
		}
	}
	return false
}

// mostShown is the number of characters that are shown of a call.
const mostShown = 300

// thoughts is the reasoning of a turn as it arrives, with a line for each call if calls are shown.
type thoughts struct {
	all  strings.Builder
	step int
	say  func(text string) // nil means that nothing is sent
}

// add adds text of a step. Each step begins a line.
func (t *thoughts) add(step int, text string) {
	if step != t.step && !t.atLineStart() {
		text = "\n" + text
	}
	t.step = step
	t.all.WriteString(text)
	if t.say != nil && text != "" {
		t.say(text)
	}
}

func (t *thoughts) atLineStart() bool {
	return t.all.Len() == 0 || strings.HasSuffix(t.all.String(), "\n")
}

// addEvent adds the reasoning or the call of an event of the run.
func (t *thoughts) addEvent(o *Options, e *pawl.Event) {
	switch {
	case e.Kind == pawl.EventReasoning && !o.HideReasoning:
		t.add(e.Step, e.Text)

	case e.Kind == pawl.EventCallStarted && o.ShowCalls && e.Call != nil:
		line := []rune(e.Call.Name + " " + string(e.Call.Args))
		if len(line) > mostShown {
			line = append(line[:mostShown], '…')
		}
		if !t.atLineStart() {
			t.add(e.Step, "\n")
		}
		t.add(e.Step, "→ "+string(line)+"\n")
	}
}
