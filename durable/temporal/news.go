package temporal

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
)

// since is how much of a run somebody knows. It is what the query for news takes.
type since struct {
	Replies int `json:"replies"`
	Calls   int `json:"calls"`
}

// news is what happened after that. Runs names the workflows of runs inside of calls that are under way, who have news of their own.
type news struct {
	Replies []durable.ExportedReply `json:"replies,omitzero"`
	Calls   []durable.ExportedCall  `json:"calls,omitzero"`
	Runs    []string                `json:"runs,omitzero"`
}

func (f *flow) news(s since) *news {
	all := f.all()
	n := &news{Replies: all.Replies[min(s.Replies, len(all.Replies)):], Calls: all.Calls[min(s.Calls, len(all.Calls)):]}
	for _, b := range f.branches {
		n.Runs = append(n.Runs, b.ID)
	}
	return n
}

// watch is what somebody who watches a run was told.
type watch struct {
	engine *Engine
	known  map[string]since // by workflow
	told   map[llm.Key]bool
}

// look returns what happened since the last look, as events in the order in which it may have happened: replies, and how calls ended.
func (w *watch) look(ctx context.Context, id string) ([]pawl.Event, error) {
	var all []pawl.Event
	if err := w.collect(ctx, id, &all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b pawl.Event) int {
		switch { // a call ends after what was inside of it
		case strings.HasPrefix(string(a.Path), string(b.Path)+"/"):
			return -1
		case strings.HasPrefix(string(b.Path), string(a.Path)+"/"):
			return 1
		}
		return durable.CompareKeys(a.Path, b.Path)
	})
	return all, nil
}

func (w *watch) collect(ctx context.Context, id string, all *[]pawl.Event) error {
	v, err := w.engine.Client.QueryWorkflow(ctx, id, "", queryNews, w.known[id])
	if err != nil {
		return err
	}
	var n news
	if err := v.Get(&n); err != nil {
		return err
	}
	for _, run := range n.Runs {
		_ = w.collect(ctx, run, all) // what is not told now, the run around it tells
	}
	s := w.known[id]
	w.known[id] = since{s.Replies + len(n.Replies), s.Calls + len(n.Calls)}
	for i := range n.Replies {
		r := &n.Replies[i]
		w.tell(all, pawl.Event{Kind: pawl.EventResponseReceived, Path: r.Key, Response: &r.Response})
	}
	for i := range n.Calls {
		c := &n.Calls[i]
		w.tell(all, pawl.Event{Kind: pawl.EventCallCompleted, Path: c.Key, Execution: &c.Execution})
	}
	return nil
}

// tell adds an event, unless it was told before: by a run inside of a call, before that ended.
func (w *watch) tell(all *[]pawl.Event, e pawl.Event) {
	if w.told[e.Path] {
		return
	}
	w.told[e.Path] = true
	e.Run, e.Step = placeOf(e.Path)
	*all = append(*all, e)
}

// placeOf returns the run and the step that the key of a request or a call is of.
func placeOf(key llm.Key) (run llm.Key, step int) {
	parts := strings.Split(string(key), "/")
	asks := parts[len(parts)-1] == "model"
	for len(parts) > 2 && strings.HasPrefix(parts[len(parts)-1], "s") { // a call inside of a call
		parts = parts[:len(parts)-1]
	}
	if len(parts) < 3 {
		return key, 0
	}
	step, _ = strconv.Atoi(parts[len(parts)-2]) // of keys that the loop made
	if asks {
		step++
	}
	return llm.Key(strings.Join(parts[:len(parts)-2], "/")), step
}
