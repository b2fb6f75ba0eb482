package remember

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// maxContent is the maximum length of a memory. A longer text belongs into a document.
const maxContent = 2000

type rememberArgs struct{ Content string }

func (s *Set) remember(ctx context.Context, p place, a rememberArgs) (llm.ToolResult, error) {
	from := store.Source{Kind: "program"}
	// A call outside of a run is made by the program, which is trusted as the user is.
	if v := pawl.InvocationFrom(ctx); v != nil && depth(v.Key) > 0 {
		run := pawl.RunOptionsFrom(ctx).RunID()
		from = store.Source{Kind: "model", By: v.Agent, Run: run, Key: v.Key, Outside: s.heard(ctx, v),
			Label: v.Label()}
		from.Unconfirmed = from.Outside && ctx.Value(agreed{}) == nil
	}
	m, err := s.add(ctx, p, store.Memory{Text: strings.TrimSpace(a.Content), Source: from})
	if err != nil {
		return llm.ToolResult{}, err
	}
	words := "Remembered as %s."
	if m.Source.Unconfirmed {
		words = "Kept as %s, unconfirmed: a result from outside stands in the conversation. " +
			"It is not used before the user confirms it."
	} else if !m.added {
		words = "That is known already, as %s."
	}
	words = fmt.Sprintf(words, m.ID)
	if old := m.forgotten; old != nil {
		words += fmt.Sprintf(" There are %d memories at most, so that %s was forgotten.", maxMemories, old.ID)
	}
	return toolrun.Result(words, map[string]any{"id": m.ID, "new": m.added})
}

type forgetArgs struct{ ID string }

func (s *Set) forget(ctx context.Context, p place, a forgetArgs) (llm.ToolResult, error) {
	m, err := p.Memory(ctx, p.scope, a.ID)
	if err == nil && !s.ours(m) {
		err = store.ErrNotFound
	}
	if err == nil {
		err = p.ForgetMemory(ctx, p.scope, a.ID)
	}
	if errors.Is(err, store.ErrNotFound) {
		return llm.ErrorResult(fmt.Sprintf("Nothing is remembered as %q. memory_list shows the ids.", a.ID)), nil
	}
	return llm.TextResult("Forgotten: " + m.Text), err
}

type listArgs struct {
	Query, After string
	Limit        float64
	IDs          []string
}

func (s *Set) list(ctx context.Context, p place, a listArgs) (res llm.ToolResult, err error) {
	limit := 20
	if a.Limit >= 1 {
		limit = int(min(a.Limit, 100))
	}
	list, more, err := s.listed(ctx, p, a, limit)
	if err != nil {
		return res, err
	}

	var b strings.Builder
	label := llm.Label{By: llm.Operator, Readers: []string{llm.Everybody}}
	for _, m := range list {
		if s.sees(m) {
			b.WriteString(line(m))
			label = label.Join(written(m))
		}
	}
	if more {
		fmt.Fprintf(&b, "[there is more; continue with after %q]\n", list[limit-1].ID)
	}
	switch {
	case b.Len() > 0:
		res = llm.TextResult(strings.TrimSuffix(b.String(), "\n"))
		res.Label = label.Shared()
		return res, nil
	case a.Query != "":
		return llm.TextResult(fmt.Sprintf("Nothing is remembered that has words of %q.", a.Query)), nil
	}
	return llm.TextResult("Nothing is remembered."), nil
}

// listed returns the memories that a call of memory_list asks for: by their IDs, by words, or a
// page of all. more means that there are further pages.
func (s *Set) listed(ctx context.Context, p place, a listArgs, limit int) (list []store.Memory, more bool, err error) {
	switch {
	case a.IDs != nil:
		for _, id := range a.IDs {
			m, err := p.Memory(ctx, p.scope, id)
			switch {
			case err == nil:
				list = append(list, m)
			// A memory may have been forgotten since the call that named it.
			case !errors.Is(err, store.ErrNotFound):
				return nil, false, err
			}
		}
		return list, false, nil

	case strings.TrimSpace(a.Query) != "":
		hits, err := s.ranked(ctx, p, a.Query)
		if err != nil {
			return nil, false, err
		}
		for _, h := range hits {
			if h.Score > 0 && len(list) < limit {
				list = append(list, h.Memory)
			}
		}
		return list, false, nil
	}

	list, err = p.Memories.Memories(ctx, p.scope, store.Page{After: a.After, Limit: limit + 1})
	if err != nil {
		return nil, false, err
	}
	more = len(list) > limit
	return list[:min(len(list), limit)], more, nil
}

// written returns the label of a memory in a result. Its sources are left out, because they are of
// another conversation.
func written(m store.Memory) llm.Label {
	l := m.Source.Label
	if l == nil {
		return llm.Label{}
	}
	return llm.Label{By: l.By, Readers: l.Readers}
}

// line returns the line of a memory for the model.
func line(m store.Memory) string {
	if of := m.Source.Thread; of != "" {
		m.Text = "[conversation " + of + "] " + m.Text
	}
	return fmt.Sprintf("%s  %s  %s\n", m.ID, m.Created.Format(time.DateOnly), strings.Join(strings.Fields(m.Text), " "))
}
