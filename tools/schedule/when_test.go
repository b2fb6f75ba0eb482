package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/schedule"
)

// rule is a schedule and a second, independent definition of the wall clock minutes that it means.
type rule struct {
	text  string
	means func(wall time.Time) bool
}

func at(h, m int) func(time.Time) bool {
	return func(t time.Time) bool { return t.Hour() == h && t.Minute() == m }
}

func lastOfMonth(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 }

var rules = []rule{
	{"daily 02:30", at(2, 30)},
	{"daily 00:00", at(0, 0)},
	{"30 1 * * *", at(1, 30)},
	{"weekdays 08:05", func(t time.Time) bool { return at(8, 5)(t) && t.Weekday() >= 1 && t.Weekday() <= 5 }},
	{"weekly sun,wednesday 02:15", func(t time.Time) bool { return at(2, 15)(t) && (t.Weekday() == 0 || t.Weekday() == 3) }},
	{"monthly 31 09:00", func(t time.Time) bool { return at(9, 0)(t) && t.Day() == 31 }},
	{"monthly 31 or last 09:00", func(t time.Time) bool { return at(9, 0)(t) && lastOfMonth(t) }},
	{"monthly 30 or last 09:00", func(t time.Time) bool {
		return at(9, 0)(t) && (t.Day() == 30 || t.Day() < 30 && lastOfMonth(t))
	}},
	{"monthly last 02:30", func(t time.Time) bool { return at(2, 30)(t) && lastOfMonth(t) }},
	{"monthly 1,15 23:59", func(t time.Time) bool { return at(23, 59)(t) && (t.Day() == 1 || t.Day() == 15) }},
	{"*/45 1-3 * * *", func(t time.Time) bool { return t.Hour() >= 1 && t.Hour() <= 3 && (t.Minute() == 0 || t.Minute() == 45) }},
	{"0 * * * *", func(t time.Time) bool { return t.Minute() == 0 }},
	{"0 12 29 2 *", func(t time.Time) bool { return at(12, 0)(t) && t.Month() == 2 && t.Day() == 29 }},
}

var zones = []string{"UTC", "Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "America/St_Johns"}

// clock is the wall clock of a zone. Its reading at each minute is computed once for all rules.
type clock struct {
	zone  *time.Location
	begin time.Time // begin of the cached readings
	known []int64   // seconds, by minute; 0 means not computed yet
}

// newClock returns a clock of the zone that can cache readings from some days before from until
// some days after to.
func newClock(zone *time.Location, from, to time.Time) *clock {
	const more = 5 * 24 * time.Hour
	begin := from.Add(-more)
	return &clock{zone, begin, make([]int64, to.Add(more).Sub(begin)/time.Minute)}
}

// shows returns the clock's reading at t, a whole minute, as a time in UTC.
func (c *clock) shows(t time.Time) time.Time {
	i := int(t.Sub(c.begin) / time.Minute)
	remembers := i >= 0 && i < len(c.known)
	if remembers && c.known[i] != 0 {
		return time.Unix(c.known[i], 0).UTC()
	}
	t = t.In(c.zone)
	t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	if remembers {
		c.known[i] = t.Unix()
	}
	return t
}

// walk finds a rule's times of a year by examining every minute. It walks through all minutes of
// the calendar. Each minute that the rule means occurs when a clock of the zone first shows it or a
// later time.
func walk(r rule, c *clock, from, to time.Time) []time.Time {
	var out []time.Time
	wall, minute := c.shows, from
	for w := wall(from).Add(-48 * time.Hour); ; w = w.Add(time.Minute) {
		if !r.means(w) {
			continue
		}
		// the clock was put back, or this is the beginning
		for wall(minute).After(w) && minute.After(from.Add(-72*time.Hour)) {
			minute = minute.Add(-time.Minute)
		}
		if far := w.Sub(wall(minute)); far > 28*time.Hour {
			minute = minute.Add(far - 27*time.Hour) // no clock change is larger
		}
		for wall(minute).Before(w) {
			minute = minute.Add(time.Minute)
		}
		// the clock was not changed recently
		steady := wall(minute.Add(-26 * time.Hour)).Add(26 * time.Hour).Equal(wall(minute))
		for earlier := minute.Add(-26 * time.Hour); !steady &&
			earlier.Before(minute); earlier = earlier.Add(time.Minute) {
			if !wall(earlier).Before(w) {
				minute = earlier
				break
			}
		}
		if minute.After(to) {
			return out
		}
		if minute.After(from) && (len(out) == 0 || !out[len(out)-1].Equal(minute)) {
			out = append(out, minute)
		}
	}
}

func TestAYear(t *testing.T) {
	soak.Sequential(t)
	n := 0
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		from, to := year()
		if name == "Pacific/Apia" { // a day was skipped there
			from, to = time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2012, 5, 1, 0, 0, 0, 0, time.UTC)
		}
		c := newClock(zone, from, to)
		for _, r := range rules {
			if strings.Contains(r.text, "* * * *") && name != "Australia/Lord_Howe" {
				continue // one zone is enough for every hour
			}
			w, err := schedule.ParseWhen(r.text, name)
			if err != nil {
				t.Fatal(err)
			}
			want := walk(r, c, from, to)
			var got []time.Time
			for next := w.Next(from); !next.IsZero() && !next.After(to); next = w.Next(next) {
				got = append(got, next)
			}
			n += len(got)
			if len(got) != len(want) {
				t.Errorf("%s in %s: %d times, want %d", r.text, name, len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if !got[i].Equal(want[i]) {
					t.Errorf("%s in %s: time %d is %s, want %s", r.text, name, i, got[i].In(zone), want[i].In(zone))
					break
				}
			}
		}
	}
	t.Logf("%d times of %d rules in %d zones", n, len(rules), len(zones))
}

func TestOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"2026-03-02T08:00:00+01:00": "2026-03-02T07:00:00Z", "2026-03-02 08:00": "2026-03-02T07:00:00Z", "2026-07-02T08:00": "2026-07-02T06:00:00Z", "2020-01-01 00:00": ""} {
		w, err := schedule.ParseWhen(text, "Europe/Oslo")
		if err != nil || !w.Once() {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := ""
		if next := w.Next(now); !next.IsZero() {
			got = next.Format(time.RFC3339)
			if !w.Next(next).IsZero() {
				t.Errorf("%s comes twice", text)
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestBadTimes(t *testing.T) {
	for text, want := range map[string]string{"": "is not a time", "daily": "is not a time", "daily 25:00": "not a time of day", "daily 8": "not a time of day", "weekly 08:00": "want a day of the week", "weekly funday 08:00": "not a day of the week",
		"monthly 32 08:00": "not a day of a month", "monthly 08:00": "want a day of the month", "daily x 08:00": "nothing between", "0 0 30 2 *": "never comes", "60 * * * *": "is not a time", "@every 1s": "is not a time",
		"* * * * * *": "is not a time", "CRON_TZ=UTC 0 0 * * *": "is not a time", "monthly 30,31 or last 08:00": "want one day", "weekly m 08:00": "not a day of the week"} {
		if _, err := schedule.ParseWhen(text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, zone := range []string{"Local", "Europe/Nowhere", "+02:00", "../etc/passwd"} {
		if _, err := schedule.ParseWhen("daily 08:00", zone); err == nil || !strings.Contains(err.Error(), "IANA") {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

func ExampleParseWhen() {
	w, err := schedule.ParseWhen("monthly 31 or last 08:00", "Europe/Oslo")
	if err != nil {
		fmt.Println(err)
		return
	}
	next := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	for range 3 {
		next = w.Next(next)
		fmt.Println(next)
	}
	// Output:
	// 2026-01-31 07:00:00 +0000 UTC
	// 2026-02-28 07:00:00 +0000 UTC
	// 2026-03-31 06:00:00 +0000 UTC
}
