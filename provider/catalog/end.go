package catalog

import (
	"fmt"
	"strings"
	"time"
)

// EndNotice is how long before the end of a model its users are warned.
const EndNotice = 90 * 24 * time.Hour

// Ending is the end of a model that its provider has announced.
type Ending struct {
	Model string // PROVIDER:MODEL, as it was asked for

	// Day is the day, in UTC, from which on the provider no longer answers requests for the model.
	// Some providers answer them with the successor.
	Day time.Time

	// Successor is the model that the provider recommends, PROVIDER:MODEL. Empty means unknown.
	Successor string

	// Over means that Day has come at the time that Catalog.Ending got.
	Over bool

	in int // days from that time to Day
}

// Ending returns the announced end of a model if it is over at now, or less than EndNotice away.
// The successor of a successor that ends as well is returned in its place. A snapshot ends with its
// model. A nil Catalog means Default.
func (c *Catalog) Ending(name string, now time.Time) (e Ending, ok bool) {
	provider, id, _ := strings.Cut(name, ":")
	m, _, _ := c.like(provider, id)
	day, ends := m.lastDay()
	if !ends || day.Sub(now) >= EndNotice {
		return Ending{}, false
	}

	// The number of days counts midnights, so that an end tomorrow is a day away at every hour.
	days := int(day.Sub(now.UTC().Truncate(24*time.Hour)) / (24 * time.Hour))
	e = Ending{Model: name, Day: day, Over: !now.Before(day), in: days}
	if next := c.successor(&m, now); next != "" && m.Provider == owner(provider) {
		e.Successor = provider + ":" + next
	}
	return e, true
}

// Text says in a clause which model ends and when, such as "openai:a ends on 2026-12-11, in 12
// days".
func (e Ending) Text() string {
	day := e.Day.Format(time.DateOnly)
	switch {
	case e.Over:
		return fmt.Sprintf("%s ended on %s: its provider does not serve it any more", e.Model, day)
	case e.in == 1:
		return fmt.Sprintf("%s ends on %s, tomorrow", e.Model, day)
	}
	return fmt.Sprintf("%s ends on %s, in %d days", e.Model, day, e.in)
}

// Hint names the successor, or where to look for one.
func (e Ending) Hint() string {
	if e.Successor != "" {
		return "its provider recommends " + e.Successor
	}
	provider, _, _ := strings.Cut(e.Model, ":")
	return "pawl models list --provider " + provider + " has others"
}

// lastDay returns the announced end of the model. ok is false if there is none.
func (m *Model) lastDay() (day time.Time, ok bool) {
	day, err := time.Parse(time.DateOnly, m.Ends)
	return day, err == nil
}

// successor returns the first successor of m that does not end within EndNotice, or the last known
// one.
func (c *Catalog) successor(m *Model, now time.Time) string {
	name := m.Successor
	for range len(c.list()) { // a cycle in a catalogue of the user's own ends here
		next, ok := c.Find(m.Provider, name)
		if !ok || next.Successor == "" {
			return name
		}
		if day, ends := next.lastDay(); !ends || day.Sub(now) >= EndNotice {
			return name
		}
		name = next.Successor
	}
	return name
}

// list returns the models of c, or of Default if c is nil.
func (c *Catalog) list() []Model {
	if c == nil {
		c = Default()
	}
	return c.models
}
