package relational

// journal_lists.go: lists of durable runs.

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/store"
)

// JournalRuns lists heads by ID.
func (db *DB) JournalRuns(ctx context.Context, s store.Scope, state string, p store.Page) ([]store.JournalRun, error) {
	if err := valid(s); err != nil {
		return nil, err
	}
	return List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+` from journals
		where tenant = ? and USER = ? and thread = ? and id > ? and (? = '' or state = ?) order by id limit ?`,
		s.Tenant, s.User, s.Thread, db.backend.Plain(p.After), state, state, p.Size())
}

// UnendedRuns yields the runs of all scopes that are not over.
func (db *DB) UnendedRuns(ctx context.Context) iter.Seq2[store.JournalRun, error] {
	return func(yield func(store.JournalRun, error) bool) {
		const page = 100
		last := int64(0)
		scan := func(r Row) (v store.JournalRun, err error) {
			err = scanHead(r, &v, &last)
			return v, err
		}
		for {
			// In pages: the caller may work long on one run, and no query stays open meanwhile.
			runs, err := List(ctx, db.backend.Read(), scan, "select "+journalColumns+
				", n from journals where n > ? and state <> 'over' order by n limit ?", last, page)
			if err != nil {
				yield(store.JournalRun{}, err)
				return
			}
			for _, r := range runs {
				if !yield(r, nil) {
					return
				}
			}
			if len(runs) < page {
				return
			}
		}
	}
}

// EndedRuns lists the runs of all scopes in a state that no process executes and that were last
// updated before a time, the oldest first. A tenant or a user that is not empty restricts the list.
func (db *DB) EndedRuns(ctx context.Context, state, tenant, user string,
	before, now time.Time) ([]store.JournalRun, error) {
	return List(ctx, db.backend.Read(), scanJournal, "select "+journalColumns+` from journals where state = ? and updated < ?
		and (owner = '' or until <= ?) and (? = '' or tenant = ?) and (? = '' or USER = ?) order by updated, n limit 1000`,
		state, stamp(before), stamp(now), tenant, tenant, user, user)
}

const (
	// dueFrom is JournalRun.DueFrom in a form that the index journals_due has, too.
	dueFrom = "(case when next > until then next else until end)"

	// selectDue begins with the pairs of agent and tenant that have open runs: it jumps in the
	// index from one to the next, so that their runs are not read. The first due runs of each
	// wanted pair are read from the index in order. WANTED is a condition for the agent of a pair.
	selectDue = `with recursive pairs (agent, tenant) as (
			select * from (select agent, tenant from journals where state = 'open' order by agent, tenant limit 1) first
			union all
			select (select j.agent from journals j where j.state = 'open' and (j.agent, j.tenant) > (p.agent, p.tenant)
					order by j.agent, j.tenant limit 1),
				(select j.tenant from journals j where j.state = 'open' and (j.agent, j.tenant) > (p.agent, p.tenant)
					order by j.agent, j.tenant limit 1)
			from pairs p where p.agent is not null
		)
		select ` + journalColumns + ` from (
			select j.*, ` + dueFrom + ` as due,
				row_number() over (partition by j.tenant order by ` + dueFrom + `, j.n) as turn
			from (select agent, tenant from pairs where agent is not null and WANTED) p EACHOF (
				select n from journals where state = 'open' and agent = p.agent and tenant = p.tenant
					and ` + dueFrom + ` <= ? order by ` + dueFrom + `, n limit ?
			) FIRSTROWS
		) ranked order by turn, due, n limit ?`
)

// DueRuns lists the runs that a process should execute now.
func (db *DB) DueRuns(ctx context.Context, d store.DueQuery) ([]store.JournalRun, error) {
	now, err := db.backend.Clock(ctx, db.backend.Read(), d.Now)
	if err != nil {
		return nil, err
	}
	wanted, args := wantedAgents(d.Agents)
	limit := store.Page{Limit: d.Limit}.Size()
	args = append(args, stamp(now), limit, limit)
	return List(ctx, db.backend.Read(), scanJournal, strings.Replace(selectDue, "WANTED", wanted, 1), args...)
}

// wantedAgents returns the condition of DueQuery.Wants, and its arguments.
func wantedAgents(names []string) (condition string, args []any) {
	switch {
	case names == nil:
		return "true", nil
	case len(names) == 0:
		return "false", nil
	}

	each := make([]string, len(names))
	for i, name := range names {
		// The name alone, or what follows it: @ and / separate it from a version and from a part.
		each[i] = "substr(agent, 1, ?) in (?, ?, ?)"
		args = append(args, utf8.RuneCountInString(name)+1, name, name+"@", name+"/")
	}
	return "(" + strings.Join(each, " or ") + ")", args
}
