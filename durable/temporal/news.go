package temporal

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// since is the known part of a run. It is the argument of the query for news.
type since struct {
	Replies int `json:"replies"`
	Calls   int `json:"calls"`
}

// news is the events after the known part. Runs names the workflows of active nested runs, which
// have news of their own.
type news struct {
	Replies []journal.ExportedReply `json:"replies,omitzero"`
	Calls   []journal.ExportedCall  `json:"calls,omitzero"`
	Runs    []string                `json:"runs,omitzero"`
}

func (f *flow) news(s since) *news {
	all := f.all()
	n := &news{
		Replies: all.Replies[min(s.Replies, len(all.Replies)):],
		Calls:   all.Calls[min(s.Calls, len(all.Calls)):],
	}
	for _, b := range f.branches {
		n.Runs = append(n.Runs, b.ID)
	}
	return n
}

// watch is the events that an observer of a run has received.
type watch struct {
	engine  *Engine
	known   map[string]since // by workflow
	emitted map[llm.Key]bool
	steps   stepping
}

func (e *Engine) newWatch() *watch {
	return &watch{engine: e, known: map[string]since{}, emitted: map[llm.Key]bool{}}
}

// newEvents returns the events since the last call, in a possible order: replies, ends of calls and
// complete steps.
func (w *watch) newEvents(ctx context.Context, id string) ([]pawl.Event, error) {
	var all []pawl.Event
	if err := w.collect(ctx, id, &all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b pawl.Event) int {
		switch { // a call ends after its nested calls
		case strings.HasPrefix(string(a.Path), string(b.Path)+"/"):
			return -1
		case strings.HasPrefix(string(b.Path), string(a.Path)+"/"):
			return 1
		}
		return journal.CompareKeys(a.Path, b.Path)
	})

	var withSteps []pawl.Event
	for _, e := range all {
		withSteps = append(withSteps, w.steps.with(e)...)
	}
	return withSteps, nil
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
		_ = w.collect(ctx, run, all) // the run around it reports the rest later
	}
	s := w.known[id]
	w.known[id] = since{s.Replies + len(n.Replies), s.Calls + len(n.Calls)}

	for i := range n.Replies {
		r := &n.Replies[i]
		w.emit(all, pawl.Event{Kind: pawl.EventResponseReceived, Path: r.Key, Response: &r.Response})
	}
	for i := range n.Calls {
		c := &n.Calls[i]
		w.emit(all, pawl.Event{Kind: pawl.EventCallCompleted, Path: c.Key, Execution: &c.Execution})
	}
	return nil
}

// emit appends an event, unless a nested run has reported it before it ended.
func (w *watch) emit(all *[]pawl.Event, e pawl.Event) {
	if w.emitted[e.Path] {
		return
	}
	w.emitted[e.Path] = true
	e.Run, e.Step = placeOf(e.Path)
	*all = append(*all, e)
}

// placeOf returns the run and the step of the key of a request or a call.
func placeOf(key llm.Key) (run llm.Key, step int) {
	parts := strings.Split(string(key), "/")
	asks := parts[len(parts)-1] == "model"
	for len(parts) > 2 && strings.HasPrefix(parts[len(parts)-1], "s") { // a nested call
		parts = parts[:len(parts)-1]
	}
	if len(parts) < 3 {
		return key, 0
	}
	step, _ = strconv.Atoi(parts[len(parts)-2]) // the loop made the key: no error is possible
	if asks {
		step++
	}
	return llm.Key(strings.Join(parts[:len(parts)-2], "/")), step
}
