// Package demomodel has models that follow written rules, one for each template of pawl init. They
// are no language models. They let a newcomer try an agent without a key and without a network,
// over the loop, the tools, the checks and the approvals of any other model.
//
// A rule reads the last message of the user and the results since then, and returns the next reply.
// So a model has no state: a resumed run continues where it was, and a repeated request has the
// same reply. The first answer of a conversation says what the model is.
//
//	m, err := demomodel.Open("support")
package demomodel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Prefix is the provider name of these models, as in demo:support.
const Prefix = "demo:"

// A player returns the next reply of a conversation.
type player func(*talk) script.Turn

// Names returns the names of the models, in alphabetical order: the names of the templates.
func Names() []string {
	return []string{"coding", "extraction", "minimal", "research", "support"}
}

// Open returns a model by its name without the prefix.
func Open(name string) (*script.Model, error) {
	play := players(name)
	if play == nil {
		return nil, fmt.Errorf("there is no %s%s, only %s%s", Prefix, name, Prefix,
			strings.Join(Names(), ", "+Prefix))
	}
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		reply := play(newTalk(req))
		reply.Model = Prefix + name
		return reply
	}))), nil
}

// players returns the rules of a model. nil means that there is no such model.
func players(name string) player {
	switch name {
	case "coding":
		return playCoding
	case "extraction":
		return playExtraction
	case "minimal":
		return playMinimal
	case "research":
		return playResearch
	case "support":
		return playSupport
	}
	return nil
}

// expression returns a function that compiles an expression at its first call: a command without a
// demo model compiles none.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// introduction is what the first answer of a conversation ends with.
const introduction = "\n\n(This is a demo model: it follows rules and understands little. A real one is one line " +
	"of the agent's file, such as `model: openai:gpt-6.1-terra`, or `model: ollama:qwen3:4b` on this machine.)"

// talk is a conversation as the rules see it.
type talk struct {
	task    string     // the last message of the user
	before  []string   // the earlier messages of the user
	done    []exchange // the calls since the task, in order, with their results
	first   bool       // no answer has been given before
	offered []string   // the names of the tools
}

// exchange is a call with its result.
type exchange struct {
	call   llm.ToolCall
	result llm.ToolResult
}

// newTalk reads a request.
func newTalk(req *llm.Request) *talk {
	t := &talk{first: true}
	for _, spec := range req.Tools {
		t.offered = append(t.offered, spec.Name)
	}

	open := map[string]llm.ToolCall{}
	for _, m := range req.Messages {
		switch m.Role {
		case llm.RoleUser:
			t.ask(lastText(m))
		case llm.RoleAssistant:
			clear(open)
			for _, call := range m.Calls() {
				open[call.ID] = call
			}
			t.first = t.first && len(open) > 0
		}

		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				t.done = append(t.done, exchange{open[r.CallID], r})
			}
		}
	}
	return t
}

// ask begins a task. A message without text, such as a decision, continues the task before it.
func (t *talk) ask(text string) {
	if text == "" {
		return
	}
	if t.task != "" {
		t.before = append(t.before, t.task)
	}
	t.task = text
	t.done = nil
}

// lastText returns the last text of a message, since parts before it may be notes of the runtime.
func lastText(m llm.Message) string {
	for _, p := range slices.Backward(m.Parts) {
		if text, ok := p.(llm.Text); ok {
			return strings.TrimSpace(text.Text)
		}
	}
	return ""
}

// offers reports whether the request has a tool.
func (t *talk) offers(tool string) bool { return slices.Contains(t.offered, tool) }

// results returns the exchanges of a tool since the task.
func (t *talk) results(tool string) []exchange {
	var all []exchange
	for _, e := range t.done {
		if e.call.Name == tool {
			all = append(all, e)
		}
	}
	return all
}

// called reports whether a tool was called since the task.
func (t *talk) called(tool string) bool { return len(t.results(tool)) > 0 }

// say returns an answer.
func (t *talk) say(format string, args ...any) script.Turn {
	text := fmt.Sprintf(format, args...)
	if t.first {
		text += introduction
	}
	return script.Say(text)
}

// stopped returns the answer to a call that failed or was denied.
func (t *talk) stopped(e exchange) script.Turn {
	return t.say("%s did not work, so I stop here:\n\n> %s", e.call.Name, quote(e.result.Text(), 3))
}

// each returns one reply with a call for each argument.
func each[T any](list []T, call func(T) script.Turn) script.Turn {
	var calls []script.Turn
	for _, v := range list {
		calls = append(calls, call(v))
	}
	return script.Together(calls...)
}

// quote returns the first lines of a text, as they stand in a quotation of Markdown.
func quote(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > most {
		lines = append(lines[:most], "…")
	}
	return strings.Join(lines, "\n> ")
}
