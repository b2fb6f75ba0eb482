package durable

// begin.go: how the messages of a run that begins are compared and listed.

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// equalMessages reports whether two lists of messages say the same. Their labels do not count: they
// belong to the door that a request came by, and messages of earlier versions have none.
func equalMessages(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, errOne := withoutLabels(a)
	other, errOther := withoutLabels(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

func withoutLabels(list json.RawMessage) ([]byte, error) {
	var msgs []llm.Message
	if err := json.Unmarshal(list, &msgs); err != nil {
		return nil, err
	}
	return json.Marshal(llm.WithoutLabels(msgs))
}

// mostTask is the number of bytes of JournalRun.Task.
const mostTask = 120

// taskOf returns the start of the user's last text in one line, for lists.
func taskOf(msgs []llm.Message) string {
	for _, m := range slices.Backward(msgs) {
		if m.Role != llm.RoleUser {
			continue
		}
		said := strings.Join(strings.Fields(m.Text()), " ")
		said = strings.ToValidUTF8(said, "")
		if len(said) > mostTask {
			said = text.Clip(said, mostTask-len("…"))
		}
		return said
	}
	return ""
}

// listed returns a copy of a with its present tools, so that the check and the run ask each toolset
// once. A toolset with an error stays in its place, and the check reports it.
func listed(ctx context.Context, a *pawl.Agent) *pawl.Agent {
	c := *a
	c.Tools = slices.Clone(a.Tools)
	for i, set := range c.Tools {
		tools, err := pawl.Toolsets{set}.Tools(ctx)
		if err != nil {
			continue
		}
		all := make(pawl.Toolsets, len(tools))
		for n, t := range tools {
			all[n] = t
		}
		c.Tools[i] = all
	}
	return &c
}
