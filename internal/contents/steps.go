package contents

// steps.go: Steps, the messages of a transcript by replies, and Texts, what can be read of them.

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// ReadTool is the tool by which a model reads what has an id.
const ReadTool = "result_read"

// Index is the id of the list of all texts.
const Index = "index"

// Step is a reply, and what stands between it and the reply before.
type Step struct {
	Before  int            // the number of the reply before; 0 means none
	Number  int            // of the reply
	Said    []*llm.Message // what the user said since the reply before
	Reply   *llm.Message   // nil means that there is none yet
	Results *llm.Message   // of the reply; nil means none
}

// Steps returns the steps of a transcript. Instructions belong to none.
func Steps(msgs []llm.Message) []Step {
	var steps []Step
	now := Step{}
	for i := range msgs {
		m := &msgs[i]
		switch m.Role {
		case llm.RoleUser:
			now.Said = append(now.Said, m)
		case llm.RoleAssistant:
			now.Reply = m
			if i+1 < len(msgs) && msgs[i+1].Role == llm.RoleTool {
				now.Results = &msgs[i+1]
			}
			now.Number = number(now.Results, now.Before)
			steps = append(steps, now)
			now = Step{Before: now.Number}
		}
	}
	if len(now.Said) > 0 {
		steps = append(steps, now)
	}
	return steps
}

// number returns the number of a reply with results after the reply before. Keys may come from a
// client, so that a number that does not grow is none.
func number(results *llm.Message, before int) int {
	if results == nil || len(results.Parts) == 0 {
		return before + 1
	}
	result, _ := results.Parts[0].(llm.ToolResult)
	reply, _ := path.Split(string(result.Key))
	n, err := strconv.Atoi(path.Base(reply))
	if err != nil || n <= before {
		return before + 1
	}
	return n
}

// SaidID returns the id of what the user said before the reply.
func (s *Step) SaidID() string { return "user/" + strconv.Itoa(s.Before) }

// ReplyID returns the id of the reply.
func (s *Step) ReplyID() string { return "reply/" + strconv.Itoa(s.Number) }

// ResultID returns the id of a result, which has a place among the results of the reply.
func (s *Step) ResultID(result *llm.ToolResult, place int) string {
	return cmp.Or(string(result.Key), fmt.Sprintf("%d/%d", s.Number, place))
}

// SaidText returns what the user said before the reply.
func (s *Step) SaidText() string {
	var texts []string
	for _, m := range s.Said {
		texts = append(texts, m.Text())
	}
	return strings.Join(texts, "\n\n")
}

// ReplyText returns the text of the reply and its calls, each on a line of its own. The calls of
// ReadTool stand last, from the byte reads on.
func (s *Step) ReplyText() (content string, reads int) {
	lines := []string{s.Reply.Text()}
	var last []string
	for _, c := range s.Reply.Calls() {
		form := fmt.Sprintf("[call] %s %s", c.Name, c.Args)
		if c.Name == ReadTool {
			last = append(last, form)
			continue
		}
		lines = append(lines, form)
	}

	content = strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
	reads = len(content)
	for _, form := range last {
		content += "\n" + form
	}
	return content, reads
}

// Result returns the result of the call at a place of the reply. ok is false if there is none.
func (s *Step) Result(place int) (result llm.ToolResult, ok bool) {
	if s.Results == nil || place >= len(s.Results.Parts) {
		return llm.ToolResult{}, false
	}
	result, ok = s.Results.Parts[place].(llm.ToolResult)
	return result, ok
}

// Text is a text with an id.
type Text struct {
	ID   string // see the package
	Text string // the whole
	// Result is the result whose text this is. Nil means that it is no result.
	Result *llm.ToolResult
	// Own is the beginning of Text that repeats nothing. The rest is of calls of ReadTool, where a
	// search would find itself.
	Own string
}

// Texts returns all texts of a transcript, in its order.
func Texts(msgs []llm.Message) []Text {
	var all []Text
	steps := Steps(msgs)
	for i := range steps {
		all = append(all, steps[i].texts()...)
	}
	return all
}

// texts returns the texts of s.
func (s *Step) texts() (all []Text) {
	if len(s.Said) > 0 {
		said := s.SaidText()
		all = append(all, Text{ID: s.SaidID(), Text: said, Own: said})
	}
	if s.Reply == nil {
		return all
	}
	content, reads := s.ReplyText()
	all = append(all, Text{ID: s.ReplyID(), Text: content, Own: content[:reads]})

	calls := s.Reply.Calls()
	for place := range calls {
		result, ok := s.Result(place)
		if !ok {
			continue
		}
		found := Text{ID: s.ResultID(&result, place), Text: result.Text(), Result: &result}
		isOf := func(c llm.ToolCall) bool { return c.ID == result.CallID && c.Name == ReadTool }
		if !slices.ContainsFunc(calls, isOf) {
			found.Own = found.Text
		}
		all = append(all, found)
	}
	return all
}
