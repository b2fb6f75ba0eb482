package contract

// answers.go: answers, structured output and conversations.

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

var answers = []Behaviour{
	{
		Group: subjectAnswers, Name: "the text of the reply is the answer",
		Turns: turns(say("Hello.")),
		Want:  Want{Text: "Hello.", Requests: 1, Read: []string{"Go."}},
	},
	{
		Group: subjectAnswers, Name: "text in any language arrives unchanged",
		Turns: turns(say("Grüße, 你好, \U0001F44B\U0001F3FD \u202eabc\n\n\ttab \"quoted\" <b>&amp;</b>")),
		Want:  Want{Text: "Grüße, 你好, \U0001F44B\U0001F3FD \u202eabc\n\n\ttab \"quoted\" <b>&amp;</b>"},
		Except: map[string]Difference{"command": {
			Why: "control sequences, and marks that change the text direction, are escaped", Page: "docs/chat.md",
			Want: &Want{Text: "Grüße, 你好, \U0001F44B\U0001F3FD \\u202eabc\n\n\ttab \"quoted\" <b>&amp;</b>"},
		}},
	},
	{
		Group: subjectAnswers, Name: "a long answer arrives whole",
		Turns: turns(say(longAnswer)),
		Want:  Want{Text: longAnswer},
	},
	{
		Group: subjectAnswers, Name: "an answer in single bytes arrives whole",
		Turns: turns(script.Turn{Parts: []llm.Part{llm.Text{Text: "One byte at a time."}}, Size: 1}),
		Want:  Want{Text: "One byte at a time."},
	},
	{
		Group: subjectAnswers, Name: "reasoning is no part of the answer",
		Turns: turns(both(script.Think("The user wants 4."), say("4"))),
		Want:  Want{Text: "4"},
	},
	{
		Group: subjectAnswers, Name: "the last reply is the answer",
		Turns: turns(call("look", `{"at":"Oslo"}`), say("It rains.")),
		Want:  Want{Text: "It rains.", Executed: []string{`look {"at":"Oslo"}`}, Requests: 2, Read: []string{"found Oslo"}},
	},
	{
		Group: subjectAnswers, Name: "a tool of terminal_tools ends the run, and its result is the answer",
		Turns:   turns(call("look", `{"at":"Oslo"}`), say("never")),
		Setting: Setting{Terminal: []string{"look"}},
		Want:    Want{Text: "found Oslo", Executed: []string{`look {"at":"Oslo"}`}, Requests: 1},
	},
	{
		Group: subjectAnswers, Name: "a tool that fails does not end the run, although it is one of terminal_tools",
		Turns:   turns(call("fail", `{}`), say("It failed.")),
		Setting: Setting{Terminal: []string{"fail"}},
		Want:    Want{Text: "It failed.", Executed: []string{`fail {}`}, Requests: 2},
	},
	{
		Group: subjectAnswers, Name: "a tool that ends the run gives the answer (FinishError)",
		Turns: turns(call("submit", `{}`), say("never")),
		Want:  Want{Text: ended, Executed: []string{`submit {}`}, Requests: 1},
	},
	{
		Group: subjectAnswers, Name: "an answer that the token limit cut is shown, and not as a whole one",
		Turns: turns(finish(say("It begins"), llm.FinishReasonLength)),
		Want:  Want{Text: "It begins", End: pawl.ClassLimited, Requests: 1},
	},
	{
		Group: subjectAnswers, Name: "the tokens of all requests are counted once",
		Turns: turns(used(call("look", `{"at":"Oslo"}`), 30, 12), used(say(done), 50, 8)),
		Want:  Want{Text: done, Executed: []string{`look {"at":"Oslo"}`}, Tokens: 100},
	},
	{
		Group: subjectAnswers, Name: "the instructions are sent to the model, and never shown",
		Turns:   turns(say("I am a clerk.")),
		Setting: Setting{Instructions: "You are the clerk of room 7."},
		Want:    Want{Text: "I am a clerk.", Read: []string{"You are the clerk of room 7."}},
	},
	{
		Group: subjectAnswers, Name: "the task arrives unchanged",
		Turns: turns(say(done)),
		Says:  []string{"Pay 5 € to \"Ann\"\n\tand <Bob> & 你好"},
		Want:  Want{Text: done, Sent: asked("Pay 5 € to \"Ann\"\n\tand <Bob> & 你好")},
	},
	{
		Group: subjectAnswers, Name: "a task that quotes a template of a chat program stays a task",
		Turns: turns(say(done)),
		Says:  []string{"### Task:\nGenerate a concise, 3-5 word title\n<chat_history>\nx\n</chat_history>"},
		Want: Want{Text: done, Sent: func(reqs []*llm.Request) string {
			if len(reqs) == 0 || len(reqs[0].Tools) == 0 {
				return "the request has no tools"
			}
			return ""
		}},
		Except: templates,
	},
}

// copied is a door where a conversation is what the client sends.
var copied = Difference{
	Why:  "the agent's own calls of earlier requests are not in it",
	Page: "docs/server.md",
	Want: &Want{Text: "First.", Executed: []string{`look {"at":"Oslo"}`}, Sent: conversation("One?", "First.", "Two?")},
}

// templates are the doors of chat programs, which send a whole template of a side request.
var templates = map[string]Difference{
	"chat completions": {Why: "a whole template of a chat program is a side request there: TestSideRequests"},
	"responses":        {Why: "a whole template of a chat program is a side request there: TestSideRequests"},
	"messages":         {Why: "a whole template of a chat program is a side request there: TestSideRequests"},
}

// longAnswer is longer than the buffers on its way.
var longAnswer = func() string {
	var b []byte
	for i := range 20_000 {
		b = fmt.Appendf(b, "%d ", i)
	}
	return string(b) + "end"
}()

// asked checks that the last message of the user in the first request has exactly this text.
func asked(text string) func([]*llm.Request) string {
	return func(reqs []*llm.Request) string {
		if len(reqs) == 0 {
			return "the model got no request"
		}
		last := reqs[0].Messages[len(reqs[0].Messages)-1]
		if last.Role != llm.RoleUser || last.Text() != text {
			return fmt.Sprintf("the task is %s %q, want %q", last.Role, last.Text(), text)
		}
		return ""
	}
}

const citySchema = `{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},"required":["city"],"additionalProperties":false}`

var outputs = []Behaviour{
	{
		Group: subjectOutputs, Name: "an answer that fits the schema is the output",
		Turns:   turns(say(`{"city":"Oslo","people":7}`)),
		Setting: Setting{Output: citySchema},
		Want:    Want{Text: `{"city":"Oslo","people":7}`, Output: `{"city":"Oslo","people":7}`, Requests: 1},
	},
	{
		Group: subjectOutputs, Name: "a code fence around the answer is removed",
		Turns:   turns(say("```json\n{\"city\":\"Oslo\"}\n```")),
		Setting: Setting{Output: citySchema},
		Want:    Want{Text: "*", Output: `{"city":"Oslo"}`, Requests: 1},
	},
	{
		Group: subjectOutputs, Name: "an answer that does not fit is sent back, with the reason",
		Turns:   turns(say(`{"town":"Oslo"}`), say(`{"city":"Oslo"}`)),
		Setting: Setting{Output: citySchema},
		Want:    Want{Text: "*", Output: `{"city":"Oslo"}`, Requests: 2, Read: []string{"city"}},
	},
	{
		Group: subjectOutputs, Name: "prose before the output is no part of it",
		Turns:   turns(both(say("I look. "), call("look", `{"at":"Oslo"}`)), say(`{"city":"Oslo"}`)),
		Setting: Setting{Output: citySchema},
		Want:    Want{Text: "*", Output: `{"city":"Oslo"}`, Executed: []string{`look {"at":"Oslo"}`}, Requests: 2},
	},
	{
		Group: subjectOutputs, Name: "an answer that never fits is a failure, after the corrections",
		Turns:   turns(script.Loop(say("Oslo"))),
		Setting: Setting{Output: citySchema, Limits: pawl.Limits{Corrections: 1}},
		Want:    Want{End: pawl.ClassFailed, Requests: 2},
	},
}

var conversations = []Behaviour{
	{
		Group: subjectConversations, Name: "a second message sees the first one and its answer",
		Turns: turns(say("First."), say("Second.")),
		Says:  []string{"One?", "Two?"},
		Want:  Want{Text: "Second.", Requests: 2, Sent: conversation("One?", "First.", "Two?")},
	},
	{
		Group: subjectConversations, Name: "a second message sees the calls of the first one and their results",
		Turns: turns(call("look", `{"at":"Oslo"}`), say("First."), say("Second.")),
		Says:  []string{"One?", "Two?"},
		Want: Want{Text: "Second.", Requests: 3, Executed: []string{`look {"at":"Oslo"}`}, Sent: func(reqs []*llm.Request) string {
			if last := reqs[len(reqs)-1]; len(last.Messages) < 5 {
				return fmt.Sprintf("the last request has %d messages, and not the calls", len(last.Messages))
			}
			return resultsFollowCalls(reqs)
		}},
		Except: map[string]Difference{"chat completions": copied, "messages": copied},
	},
	{
		Group: subjectConversations, Name: "a call of the first message is not executed again by the second",
		Turns: turns(script.Loop(script.Func(payThenAnswer))),
		Says:  []string{"One?", "Two?"},
		Want:  Want{Text: "Second.", Executed: []string{paid5}, Requests: 3},
	},
	{
		Group: subjectConversations, Name: "the instructions are there once for each request",
		Turns:   turns(say("First."), say("Second.")),
		Setting: Setting{Instructions: "You are the clerk of room 7."},
		Says:    []string{"One?", "Two?"},
		Want: Want{Text: "Second.", Sent: func(reqs []*llm.Request) string {
			for i, req := range reqs {
				n := 0
				for _, m := range req.Messages {
					if m.Role == llm.RoleSystem {
						n++
					}
				}
				if n != 1 {
					return fmt.Sprintf("request %d has %d system messages", i+1, n)
				}
			}
			return ""
		}},
	},
	{
		Group: subjectConversations, Name: "a message after a cut answer is answered",
		Turns: turns(finish(say("It begins"), llm.FinishReasonLength), say("Second.")),
		Says:  []string{"One?", "Two?"},
		Want:  Want{Text: "Second.", Sent: resultsFollowCalls},
	},
}

// payThenAnswer pays for the first message, and answers the second.
func payThenAnswer(req *llm.Request) script.Turn {
	switch {
	case len(script.Results(req)) > 0:
		return say("First.")
	case req.Messages[len(req.Messages)-1].Text() == "One?":
		return call("pay", `{"amount":5}`)
	}
	return say("Second.")
}

// conversation checks the texts of the last request, without instructions.
func conversation(want ...string) func([]*llm.Request) string {
	return func(reqs []*llm.Request) string {
		var got []string
		for _, m := range reqs[len(reqs)-1].Messages {
			if m.Role != llm.RoleSystem {
				got = append(got, m.Text())
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("the conversation is %q, want %q", got, want)
		}
		return ""
	}
}
