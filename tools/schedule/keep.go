package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

// Keep synchronizes the schedules of scope whose IDs begin with prefix with want, whose IDs begin
// with prefix as well. It adds new schedules, updates changed schedules, and deletes schedules that
// are missing in want, with their occurrences. An unchanged schedule keeps its next time, and a
// schedule that was turned off stays off. Keep is meant for schedules that are written in a file;
// several processes may call it concurrently. now is the current time. A When that cannot be parsed
// gives the error of ParseWhen.
func Keep(ctx context.Context, db store.Schedules, scope store.Scope, prefix string, want []store.Schedule,
	now time.Time) error {
	for tries := 3; ; tries-- {
		err := keep(ctx, db, scope, prefix, want, now)
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) || tries == 1 {
			return err // another process does the same: its change is visible at the next attempt
		}
	}
}

func keep(ctx context.Context, db store.Schedules, scope store.Scope, prefix string, want []store.Schedule,
	now time.Time) error {
	there := map[string]store.Schedule{} // with the prefix, and not wanted so far
	stored, err := all(ctx, db, scope)
	if err != nil {
		return err
	}
	for _, v := range stored {
		if strings.HasPrefix(v.ID, prefix) {
			there[v.ID] = v
		}
	}

	for _, v := range want {
		when, err := ParseWhen(v.When, v.Zone)
		if err != nil {
			return err
		}
		was, ok := there[v.ID]
		delete(there, v.ID)
		if ok && same(was, v) {
			continue
		}

		v.Enabled = true
		v.Version = 0
		v.Next = when.Next(now)
		if ok {
			// A schedule that a user has switched off stays off.
			v.Enabled = was.Enabled
			v.Version = was.Version
			v.Created = was.Created
		}
		if _, err := db.PutSchedule(ctx, scope, v); err != nil {
			return err
		}
	}

	// What is left has the prefix of the file and is not in it any more.
	for _, id := range slices.Sorted(maps.Keys(there)) {
		if err := db.DeleteSchedule(ctx, scope, id); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether two schedules have the same content.
func same(a, b store.Schedule) bool {
	return a.Name == b.Name && a.Description == b.Description && a.When == b.When && a.Zone == b.Zone &&
		a.Misfire == b.Misfire && task(a) == task(b)
}

// task returns the calls and the prompt of a schedule in a canonical form.
func task(v store.Schedule) string {
	var t Task
	if json.Unmarshal(v.Task, &t) != nil {
		return string(v.Task)
	}
	b, _ := json.Marshal(t)
	return string(b)
}
