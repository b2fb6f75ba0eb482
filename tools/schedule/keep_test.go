package schedule_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/schedule"
)

func TestKeep(t *testing.T) {
	db := open(t, t.TempDir()+"/pawl.db")
	ctx, scope := t.Context(), store.Scope{Tenant: "t", User: "u"}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	prompt := func(text string) json.RawMessage { return json.RawMessage(`{"prompt": "` + text + `"}`) }
	put := func(v store.Schedule) {
		t.Helper()
		if _, err := db.PutSchedule(ctx, scope, v); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(want ...store.Schedule) {
		t.Helper()
		if err := schedule.Keep(ctx, db, scope, "a/", want, now); err != nil {
			t.Fatal(err)
		}
	}
	get := func(id string) store.Schedule {
		t.Helper()
		v, err := db.Schedule(ctx, scope, id)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		return v
	}
	own := store.Schedule{ID: "mine", When: "daily 09:00", Task: prompt("x"), Enabled: true, Next: now}
	put(own)
	one := store.Schedule{ID: "a/one", When: "daily 08:00", Zone: "Europe/Oslo", Task: prompt("one")}
	two := store.Schedule{ID: "a/two", When: "weekly mon 08:00", Task: prompt("two")}
	keep(one, two)
	first := get("a/one")
	if want := time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC); !first.Next.Equal(want) || !first.Enabled {
		t.Errorf("a new one: %+v, want it next at %v", first, want)
	}

	now = now.Add(48 * time.Hour)
	keep(one, two)
	if got := get("a/one"); got.Version != first.Version || !got.Next.Equal(first.Next) {
		t.Errorf("an unchanged schedule: %+v, was %+v", got, first)
	}

	off := get("a/two")
	off.Enabled = false
	put(off)
	two.When = "daily 10:00"
	keep(two)
	if got := get("a/two"); got.When != two.When || got.Enabled ||
		!got.Next.Equal(time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("a changed schedule that was turned off: %+v", got)
	}
	if _, err := db.Schedule(ctx, scope, "a/one"); err == nil {
		t.Error("a removed schedule still exists")
	}
	if got := get("mine"); got.When != own.When {
		t.Errorf("a schedule of the user: %+v", got)
	}
	if err := schedule.Keep(ctx, db, scope, "a/", []store.Schedule{{ID: "a/x", When: "sometimes"}}, now); err == nil {
		t.Error("a time that cannot be read: no error")
	}
}
