// Package schedule gives a model schedules: things to be done later, once or again and again, and the runner that does them.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	schedules := schedule.New(db, &schedule.Options{Zone: "Europe/Oslo", Tools: tools})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{schedules}}
//	…
//	work := &schedule.Work{Tools: tools, Agent: agent, Traces: db}
//	runner := &schedule.Runner{DB: db, Do: work.Do}
//	err = runner.Run(ctx)
//
// A Set is a pawl.Toolset of four tools, each of which can also be offered alone:
//
//	schedule_create  Write  keeps one, and shows its next five times
//	schedule_list    Read   what there is
//	schedule_update  Write  changes one, or turns it off and on
//	schedule_delete  Write  removes one
//
// Times are what a clock on the wall shows in an IANA zone: see ParseWhen. What a schedule calls is checked when it is made: a tool that is not there, or
// arguments that do not fit, are told at once and not at night.
//
// The runner does each time of each schedule once, whatever happens to it: several of them may work over one store. A time that was begun by a process that
// is gone is not begun again; it is kept as unknown. See Runner for times that were missed.
package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// Set is the schedule tools over a store. It may be used concurrently.
type Set struct {
	Create *pawl.Tool // schedule_create
	List   *pawl.Tool // schedule_list
	Update *pawl.Tool // schedule_update
	Delete *pawl.Tool // schedule_delete

	db   store.Schedules
	opts Options
}

var _ pawl.Toolset = (*Set)(nil)

// Options are what New can be told. Nil and the zero value take the scope from the context of each call, UTC, and no tools.
type Options struct {
	Scope *store.Scope     // whose schedules they are, in every run; nil: store.ScopeFrom
	Zone  string           // the IANA zone of times without one; "": UTC
	Tools pawl.Toolset     // what a schedule may call; nil: nothing, only prompts are kept
	Now   func() time.Time // nil: time.Now
}

// New returns the tools over db.
func New(db store.Schedules, opts *Options) *Set {
	s := &Set{db: db}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	s.Create, s.List, s.Update, s.Delete = s.createTool(), s.listTool(), s.updateTool(), s.deleteTool()
	return s
}

// Tools returns the tools in the order schedule_create, schedule_list, schedule_update, schedule_delete.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	return []*pawl.Tool{s.Create, s.List, s.Update, s.Delete}, nil
}

// whose returns the scope that a call acts for.
func (s *Set) whose(ctx context.Context) (store.Scope, error) {
	if sc, ok := store.ActingScope(ctx, s.opts.Scope); ok {
		return sc, nil
	}
	return store.Scope{}, errors.New("nothing is scheduled here: the program did not say whose schedules they are")
}

// serial lets calls that change schedules run in call order.
func serial(json.RawMessage) string { return "schedules" }

// all are the schedules of a scope.
func (s *Set) all(ctx context.Context, scope store.Scope) ([]store.Schedule, error) {
	var out []store.Schedule
	for page := (store.Page{Limit: 1000}); ; {
		list, err := s.db.Schedules(ctx, scope, page)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
		if len(list) < page.Size() {
			return out, nil
		}
		page.After = list[len(list)-1].ID
	}
}

// one finds the schedule that a model means: by its id, or by words of its description that no other has.
func (s *Set) one(ctx context.Context, scope store.Scope, id, query string) (store.Schedule, error) {
	list, err := s.all(ctx, scope)
	if err != nil {
		return store.Schedule{}, err
	}
	query = strings.ToLower(strings.TrimSpace(query))
	if id == "" && query == "" {
		return store.Schedule{}, toolrun.Refuse("Say which one: give its id, as schedule_list shows it, or description_query.")
	}
	var found []store.Schedule
	for _, v := range list {
		if v.ID == id || id == "" && strings.Contains(strings.ToLower(v.Description), query) {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && id != "":
		return store.Schedule{}, toolrun.Refuse("No schedule has the id %q. schedule_list shows what there is.", id)
	case len(found) == 0:
		return store.Schedule{}, toolrun.Refuse("No schedule's description has %q. schedule_list shows what there is.", query)
	}
	var names []string
	for _, v := range found[:min(len(found), 10)] {
		names = append(names, v.ID+" ("+v.Description+")")
	}
	return store.Schedule{}, toolrun.Refuse("%d schedules fit %q: %s. Say which one by its id.", len(found), query, strings.Join(names, ", "))
}
