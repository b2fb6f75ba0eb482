package pawl

import (
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// toolSearch is the name of the tool that finds deferred tools: package tools/find makes it.
const toolSearch = "tool_search"

// found is what tool_search leaves for the run.
type found struct {
	Found []string `json:"found"`
}

// later is what a run knows of deferred tools: which the model has been told of, by what stands in the transcript and nothing else. So a run
// that goes on elsewhere offers the same.
type later struct {
	waiting map[string]*Tool
	offered []*Tool
	seen    int             // messages
	search  map[string]bool // calls of tool_search in the last reply
}

// newLater returns nil where nothing is deferred, or nothing could find it.
func newLater(tools []*Tool, choice llm.ToolChoice) *later {
	if !slices.ContainsFunc(tools, func(t *Tool) bool { return t.Deferred }) || find(tools, toolSearch) == nil {
		return nil
	}
	l := &later{waiting: map[string]*Tool{}, search: map[string]bool{}}
	for _, t := range tools {
		if t.Deferred && !slices.Contains(choice.Names, t.Name) {
			l.waiting[t.Name] = t
		} else {
			l.offered = append(l.offered, t)
		}
	}
	return l
}

// tools returns what a request offers over the transcript msgs. What was offered before comes first, in the same order.
func (l *later) tools(msgs []llm.Message) []*Tool {
	for ; l.seen < len(msgs); l.seen++ {
		for _, p := range msgs[l.seen].Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if p.Name == toolSearch {
					l.search[p.ID] = true
				}
				l.offer(p.Name)
			case llm.ToolResult:
				var f found
				if l.search[p.CallID] && !p.IsError && json.Unmarshal(p.Data, &f) == nil {
					for _, name := range f.Found {
						l.offer(name)
					}
				}
			}
		}
		if msgs[l.seen].Role == llm.RoleTool {
			clear(l.search)
		}
	}
	return l.offered
}

func (l *later) offer(name string) {
	if t := l.waiting[name]; t != nil {
		delete(l.waiting, name)
		l.offered = append(slices.Clip(l.offered), t) // a request that was sent keeps its own
	}
}
