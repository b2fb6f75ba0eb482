// Package schedule provides tools with which a model manages schedules: tasks that run later, once
// or repeatedly. It also provides the runner that executes them.
//
//	db, err := sqlite.Open("pawl.db", nil)
//	schedules := schedule.New(db, &schedule.Options{Zone: "Europe/Oslo", Tools: tools})
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{schedules}}
//	…
//	work := &schedule.Work{Tools: tools, Agent: agent, Traces: db}
//	runner := &schedule.Runner{DB: db, Do: work.Do}
//	err = runner.Run(ctx)
//
// A Set is a pawl.Toolset of four tools. Each of them can also be offered alone:
//
//	schedule_create  EffectWrite  creates a schedule and shows its next five times
//	schedule_list    EffectRead   lists the schedules
//	schedule_update  EffectWrite  changes a schedule, or turns it off and on
//	schedule_delete  EffectWrite  deletes a schedule
//
// Times are wall clock times in an IANA zone: see ParseWhen. The calls of a schedule are validated
// when it is created: an unknown tool or invalid arguments are reported at once, not when the
// schedule runs.
//
// The runner executes each time of each schedule once. Several runners may share one store. A time
// whose process crashed during execution is not executed again; it is stored as unknown. See Runner
// for missed times.
package schedule

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

// Set holds the schedule tools over a store. It is safe for concurrent use.
type Set struct {
	Create *pawl.Tool // schedule_create
	List   *pawl.Tool // schedule_list
	Update *pawl.Tool // schedule_update
	Delete *pawl.Tool // schedule_delete

	db   store.Schedules
	opts Options
}

var _ pawl.Toolset = (*Set)(nil)

// Options are the options of New. Nil and the zero value take the scope from the context of each
// call, the zone UTC, and no tools.
type Options struct {
	Scope *store.Scope // owner of the schedules in every run; nil means store.ScopeFrom
	Zone  string       // the IANA zone of times without a zone; empty means UTC
	// Tools are the tools that a schedule may call. Nil means none, so that schedules have prompts
	// only.
	Tools pawl.Toolset
	Now   func() time.Time // nil means time.Now
}

// New returns the tools over db.
func New(db store.Schedules, opts *Options) *Set {
	s := &Set{db: db}
	s.opts = *cmp.Or(opts, new(Options))
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	s.Create = toolrun.Define(definitions, "create", &pawl.Tool{Name: "schedule_create", Effect: pawl.EffectWrite,
		Serial: serial, Run: scoped(s, s.create)})
	s.List = toolrun.Define(definitions, "list", &pawl.Tool{Name: "schedule_list", Effect: pawl.EffectRead,
		Run: scoped(s, s.list)})
	s.Update = toolrun.Define(definitions, "update", &pawl.Tool{Name: "schedule_update", Effect: pawl.EffectWrite,
		Serial: serial, Run: scoped(s, s.update)})
	s.Delete = toolrun.Define(definitions, "delete", &pawl.Tool{Name: "schedule_delete", Effect: pawl.EffectWrite,
		Serial: serial, Run: scoped(s, s.delete)})
	return s
}

// Tools returns the tools in the order schedule_create, schedule_list, schedule_update,
// schedule_delete.
func (s *Set) Tools(context.Context) ([]*pawl.Tool, error) {
	return []*pawl.Tool{s.Create, s.List, s.Update, s.Delete}, nil
}

// errNoScope ends a run: only its program can say whose schedules they are.
var errNoScope = pawl.AbortError(errors.New("nothing is scheduled here: the program did not say whose schedules they are; " +
	"set store.WithScope in the context of the run, or Options.Scope"))

// scoped returns a tool function that calls fn with the owner of the schedules.
func scoped[A any](s *Set, fn func(context.Context, store.Scope, A) (llm.ToolResult, error)) pawl.ToolFunc {
	return toolrun.Func(func(ctx context.Context, a A) (llm.ToolResult, error) {
		scope, ok := store.ActingScope(ctx, s.opts.Scope)
		if !ok {
			return llm.ToolResult{}, errNoScope
		}
		return fn(ctx, scope, a)
	})
}

// serial makes calls that change schedules run in call order.
func serial(json.RawMessage) string { return "schedules" }

// all returns the schedules of a scope.
func all(ctx context.Context, db store.Schedules, scope store.Scope) ([]store.Schedule, error) {
	var out []store.Schedule
	for page := (store.Page{Limit: 1000}); ; {
		list, err := db.Schedules(ctx, scope, page)
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

// one finds the schedule that a model refers to: by its ID, or by words that only its description
// contains.
func (s *Set) one(ctx context.Context, scope store.Scope, id, query string) (store.Schedule, error) {
	list, err := all(ctx, s.db, scope)
	if err != nil {
		return store.Schedule{}, err
	}
	query = strings.ToLower(strings.TrimSpace(query))
	if id == "" && query == "" {
		return store.Schedule{}, toolrun.Refuse("Say which one: give its id, as schedule_list shows it, " +
			"or description_query.")
	}

	found := slices.DeleteFunc(list, func(v store.Schedule) bool {
		return v.ID != id && (id != "" || !strings.Contains(strings.ToLower(v.Description), query))
	})
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && id != "":
		return store.Schedule{}, toolrun.Refuse("No schedule has the id %q. schedule_list shows what there is.", id)
	case len(found) == 0:
		return store.Schedule{}, toolrun.Refuse("No schedule's description has %q. schedule_list shows what "+
			"there is.", query)
	}

	// A guess would change or delete the wrong one.
	var names []string
	for _, v := range found[:min(len(found), 10)] {
		names = append(names, v.ID+" ("+v.Description+")")
	}
	return store.Schedule{}, toolrun.Refuse("%d schedules fit %q: %s. Say which one by its id.",
		len(found), query, strings.Join(names, ", "))
}

func (s *Set) list(ctx context.Context, scope store.Scope, _ struct{}) (llm.ToolResult, error) {
	list, err := all(ctx, s.db, scope)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if len(list) == 0 {
		return llm.TextResult("Nothing is scheduled."), nil
	}

	const minute = "Mon 2006-01-02 15:04 MST"
	var b strings.Builder
	for _, v := range list {
		when, err := ParseWhen(v.When, v.Zone)
		state := "off"
		switch {
		case err != nil:
			state = "off: " + err.Error()
		case v.Enabled && !v.Next.IsZero():
			state = "next " + v.Next.In(when.zone).Format(minute)
		}
		fmt.Fprintf(&b, "%s: %s\n  %s, %s\n", v.ID, v.Description, v.When, state)

		last, err := s.db.Occurrences(ctx, scope, v.ID, 1)
		if err != nil {
			return llm.ToolResult{}, err
		}
		if len(last) > 0 && when.zone != nil {
			fmt.Fprintf(&b, "  last %s: %s\n", last[0].Due.In(when.zone).Format(minute), last[0].State)
		}
	}
	return llm.TextResult(strings.TrimSuffix(b.String(), "\n")), nil
}

type deleteArgs struct {
	ID               string
	DescriptionQuery string `json:"description_query"`
}

func (s *Set) delete(ctx context.Context, scope store.Scope, a deleteArgs) (llm.ToolResult, error) {
	if strings.TrimSpace(a.DescriptionQuery) == "*" {
		return llm.ToolResult{}, toolrun.Refuse("All of them are not deleted at once. Delete one after another, by id.")
	}
	v, err := s.one(ctx, scope, a.ID, a.DescriptionQuery)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if err := s.db.DeleteSchedule(ctx, scope, v.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return llm.ToolResult{}, err
	}
	return llm.TextResult("Deleted " + v.ID + ": " + v.Description), nil
}
