package policy

// timeouts.go: Timeouts, which bound one attempt of a call.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// Timeouts bound one attempt of a call, by entries as in lists of tools, in place of Tool.Timeout.
// Of several entries that match a tool, its name counts, then the longest pattern, then the first
// in alphabetical order. Negative means no bound. The pipeline starts the clock with the tool,
// after approval and in its slot.
type Timeouts map[string]time.Duration

// Over returns the tools of sets with their timeouts. An entry that can match none of them is the
// error of Tools.
func (t Timeouts) Over(sets ...pawl.Toolset) pawl.Toolset {
	return &timed{limits: t, sets: sets, made: map[*pawl.Tool]*pawl.Tool{}}
}

type timed struct {
	limits Timeouts
	sets   pawl.Toolsets

	mu   sync.Mutex
	made map[*pawl.Tool]*pawl.Tool // so that a tool has the same compiled schema in all runs
}

// Tools returns the tools of the sets. A tool that an entry is about is a copy with its timeout.
func (s *timed) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	tools, err := s.sets.Tools(ctx)
	if err != nil {
		return nil, err
	}
	entries := s.limits.byPrecedence()
	if err := checkEntries("timeouts", entries, tools); err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	// Copies of tools that are gone are dropped.
	fresh := make(map[*pawl.Tool]*pawl.Tool, len(tools))
	out := make([]*pawl.Tool, len(tools))
	for i, t := range tools {
		out[i] = t
		e := slices.IndexFunc(entries, func(e string) bool { return matches(e, t) })
		if e < 0 {
			continue
		}

		c := s.made[t]
		if c == nil {
			c = t.Clone()
			c.Timeout = s.limits[entries[e]]
		}
		fresh[t] = c
		out[i] = c
	}
	s.made = fresh
	return out, nil
}

// byPrecedence returns the entries in the order in which they count.
func (t Timeouts) byPrecedence() []string {
	out := slices.Collect(maps.Keys(t))
	slices.SortFunc(out, func(a, b string) int {
		switch {
		case isName(a) && !isName(b):
			return -1
		case isName(b) && !isName(a):
			return 1
		}
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return out
}
