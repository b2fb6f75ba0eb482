package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// When holds the times of a schedule in a zone. The zero When has none.
//
// A time is a wall clock time and occurs once. A time that is skipped when clocks go forward occurs
// at the moment of the change. A time that comes twice when clocks go back occurs the first time.
type When struct {
	once time.Time // zero means that the time recurs
	cron cron.Schedule
	last bool // cron matches every day from 28 on, and only the last day of a month is meant
	day  int  // clamped: this day of a month, or the last day of shorter months; 0 means none
	zone *time.Location
}

// ParseWhen parses times in one of these forms, in the IANA zone (empty means UTC):
//
//	0 8 * * MON-FRI             cron, five fields: minute, hour, day, month, day of the week
//	2026-03-01T08:00:00+01:00   once, RFC 3339; "2026-03-01 08:00" is once in the zone
//	daily 08:00
//	weekdays 08:00
//	weekly mon,thu 08:00
//	monthly 1,15 08:00          a month that is too short is left out
//	monthly 31 or last 08:00    the day, or the last one of shorter months
//	monthly last 08:00
//
// The error says what would be right.
func ParseWhen(text, zone string) (When, error) {
	w := When{zone: time.UTC}
	if zone != "" {
		var err error
		w.zone, err = time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return w, fmt.Errorf("unknown zone %q: want an IANA name such as Europe/Oslo or America/New_York", zone)
		}
	}

	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		w.once = t
		return w, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, text, w.zone); err == nil {
			w.once = t
			return w, nil
		}
	}

	spec, err := w.friendly(strings.Fields(strings.ToLower(text)))
	if err != nil {
		return w, err
	}
	spec = cmp.Or(spec, text)
	w.cron, err = parser.Parse(spec)
	// The parser knows more forms. A second zone in the text would contradict the first one.
	if err != nil || strings.HasPrefix(spec, "@") || strings.Contains(spec, "TZ=") {
		return w, fmt.Errorf(`%q is not a time: want "daily 08:00", "weekdays 08:00", "weekly mon,thu 08:00", `+
			`"monthly 1 08:00", "monthly last 08:00", cron such as "0 8 * * 1-5", or once, such as "2026-03-01 08:00"`, text)
	}
	// From a fixed day, so that the answer does not depend on today: "0 0 30 2 *" has no day.
	if w.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return w, fmt.Errorf("%q never comes", text)
	}
	return w, nil
}

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// friendly converts words to cron. It returns "" if they are in none of our forms.
func (w *When) friendly(words []string) (string, error) {
	if len(words) < 2 {
		return "", nil
	}
	kind := words[0]
	clock := words[len(words)-1]
	arg := strings.Join(words[1:len(words)-1], " ")
	switch kind {
	case "daily", "weekdays", "weekly", "monthly":
	default:
		return "", nil
	}

	at, err := time.Parse("15:4", clock)
	if err != nil {
		return "", fmt.Errorf("%q is not a time of day: want hours and minutes such as 08:00 or 17:30", clock)
	}
	head := fmt.Sprintf("%d %d ", at.Minute(), at.Hour())
	switch {
	case kind == "daily" && arg == "":
		return head + "* * *", nil
	case kind == "weekdays" && arg == "":
		return head + "* * 1-5", nil
	case kind == "weekly":
		list, err := weekdays(arg)
		return head + "* * " + list, err
	case kind == "monthly":
		return w.monthly(head, arg)
	}
	return "", fmt.Errorf("%q: there must be nothing between %s and the time", arg, kind)
}

// monthly converts days of a month to cron. The last day of a month, which cron does not know, is
// chosen by meant.
func (w *When) monthly(head, arg string) (string, error) {
	if arg == "last" {
		// Cron gets all days that can be the last one, and meant chooses among them.
		w.last = true
		return head + "28-31 * *", nil
	}
	if day, ok := strings.CutSuffix(arg, " or last"); ok {
		list, err := monthDays(day)
		if err != nil || len(list) != 1 {
			return "", errors.New(`want one day, such as "monthly 31 or last 08:00"`)
		}
		w.day = list[0]
		return head + "* * *", nil
	}

	list, err := monthDays(arg)
	if err != nil {
		return "", err
	}
	var text []string
	for _, d := range list {
		text = append(text, strconv.Itoa(d))
	}
	return head + strings.Join(text, ",") + " * *", nil
}

func weekdays(arg string) (string, error) {
	var list []string
	for _, name := range strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' }) {
		i := -1
		if len(name) >= 3 {
			i = slices.IndexFunc(days, func(d string) bool { return strings.HasPrefix(name, d) })
		}
		if i < 0 || !strings.HasPrefix(strings.ToLower(time.Weekday(i).String()), name) {
			return "", fmt.Errorf("%q is not a day of the week: want mon, tue, wed, thu, fri, sat or sun", name)
		}
		list = append(list, strconv.Itoa(i))
	}
	if len(list) == 0 {
		return "", errors.New(`want a day of the week, such as "weekly mon 08:00"`)
	}
	return strings.Join(list, ","), nil
}

func monthDays(arg string) ([]int, error) {
	var list []int
	for _, text := range strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 31 {
			return nil, fmt.Errorf("%q is not a day of a month: want 1 to 31, or last", text)
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		return nil, errors.New(`want a day of the month, such as "monthly 1 08:00"`)
	}
	return list, nil
}

// Once reports whether there is only one time.
func (w When) Once() bool { return !w.once.IsZero() }

// Next returns the first time after t. The zero time means that there is none.
func (w When) Next(t time.Time) time.Time {
	switch {
	case w.Once() && w.once.After(t):
		return w.once.UTC()
	case w.cron == nil || w.Once():
		return time.Time{}
	}

	wall := wallOf(t.In(w.zone))
	// back over a clock change: the wall clock may be ahead of the moment
	wall = wall.Add(-25 * time.Hour)
	for range 100_000 {
		wall = w.cron.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if !w.meant(wall) {
			continue
		}
		if at := moment(wall, w.zone); at.After(t) {
			return at.UTC()
		}
	}
	return time.Time{}
}

// meant reports whether a day that cron matches satisfies the conditions that cron cannot express.
func (w When) meant(wall time.Time) bool {
	lastDay := wall.AddDate(0, 0, 1).Month() != wall.Month()
	switch {
	case w.last:
		return lastDay
	case w.day > 0:
		return wall.Day() == w.day || lastDay && wall.Day() < w.day
	}
	return true
}

// wallOf returns the wall clock time of t as if it were UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// moment returns when the clocks of zone first show wall or, if they skip it, the moment of the
// change.
func moment(wall time.Time, zone *time.Location) time.Time {
	// Only the offsets around it are possible.
	var first time.Time
	for _, near := range []time.Time{wall.Add(-26 * time.Hour), wall.Add(26 * time.Hour)} {
		_, offset := near.In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if wallOf(at.In(zone)).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first
	}
	// The time is skipped: the moment of the change lies between a time before and a time after it.
	low := wall.Add(-26 * time.Hour)
	high := wall.Add(26 * time.Hour)
	for high.Sub(low) > time.Second {
		mid := low.Add(high.Sub(low) / 2).Truncate(time.Second)
		if wallOf(mid.In(zone)).After(wall) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
