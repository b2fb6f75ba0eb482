package openai

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

// side reports whether a chat program asks for a title, tags or follow-up questions.
func (r *chatRequest) side() bool {
	var meta struct {
		Task string `json:"task"`
	}
	if json.Unmarshal(r.Metadata, &meta) == nil && meta.Task != "" {
		return true
	}
	return len(r.Messages) <= 2 && slices.ContainsFunc(r.Messages, func(m chatMessage) bool {
		parts, err := contentOf(m.Content)
		text := strings.TrimSpace(llm.Message{Parts: parts}.Text())
		return err == nil && m.Role != "assistant" && slices.ContainsFunc(sideMarks, func(marks []string) bool {
			return strings.HasPrefix(text, marks[0]) &&
				!slices.ContainsFunc(marks, func(mark string) bool { return !strings.Contains(text, mark) })
		})
	})
}

// thoughts is the reasoning of a turn as it arrives, with a line for each call if calls are shown.
type thoughts struct {
	all  strings.Builder
	step int
	say  func(text string) // nil means that nothing is sent
}

func (t *thoughts) word(step int, text string) {
	if step != t.step && t.all.Len() > 0 && !strings.HasSuffix(t.all.String(), "\n") {
		text = "\n" + text
	}
	t.step = step
	t.all.WriteString(text)
	if t.say != nil && text != "" {
		t.say(text)
	}
}

// hear adds the reasoning or the call of an event of the run.
func (t *thoughts) hear(o *Options, e *pawl.Event) {
	switch {
	case e.Kind == pawl.EventReasoning && !o.HideReasoning:
		t.word(e.Step, e.Text)
	case e.Kind == pawl.EventCallStarted && o.ShowCalls && e.Call != nil:
		line := []rune(e.Call.Name + " " + string(e.Call.Args))
		if len(line) > 300 {
			line = append(line[:300], '…')
		}
		if n := t.all.Len(); n > 0 && !strings.HasSuffix(t.all.String(), "\n") {
			t.word(e.Step, "\n")
		}
		t.word(e.Step, "→ "+string(line)+"\n")
	}
}
