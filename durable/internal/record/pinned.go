package record

// pinned.go: the tools that a run began with.

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// NameOf returns the name of a model as "provider:name", or "" if it is unknown.
func NameOf(m llm.Model) string {
	if named, ok := llm.As[llm.Namer](m); ok {
		return named.Name()
	}
	return ""
}

// PinnedModel returns the name of the model that the run began with, for the requests of m. Empty
// means the name of m itself: it is the same, or m is of another provider.
func (b *Agent) PinnedModel(m llm.Model) string {
	provider, name, _ := strings.Cut(b.Model, ":")
	if now, own, _ := strings.Cut(NameOf(m), ":"); now == provider && own != name {
		return name
	}
	return ""
}

// Pinned is the toolset of a run that continues: the tools that it began with, in their order.
type Pinned struct {
	pawl.Toolset
	// Was is the program that the run began with.
	Was Program
	// Changed names tools that may have changed. Nil means none.
	Changed []string
	// Added means that tools that the run began without are offered too.
	Added bool
}

// Tools returns the recorded tools, and tools that a request may add later. A tool that is not
// compatible is returned unchanged: the first request rejects it.
func (p *Pinned) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	all, err := p.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}

	recorded := ToolsByName(p.Was.Offered)
	out := []*pawl.Tool{}
	for _, t := range all {
		was := recorded[t.Name]
		switch {
		case slices.Contains(p.Changed, t.Name): // the present tool
		case was == nil && !t.Deferred && !p.Added:
			continue // the run began without it
		case was != nil && was.Compatible(Offer(t)):
			t = was.ApplyTo(t)
		}
		out = append(out, t)
	}

	// The recorded tools come first, in their order: the place of a new tool, -1, is the largest
	// unsigned number.
	place := func(t *pawl.Tool) uint {
		named := func(o OfferedTool) bool { return o.Name == t.Name }
		return uint(slices.IndexFunc(p.Was.Offered, named))
	}
	slices.SortStableFunc(out, func(a, b *pawl.Tool) int { return cmp.Compare(place(a), place(b)) })
	return out, nil
}
