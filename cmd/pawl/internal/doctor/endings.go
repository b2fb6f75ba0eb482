package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/provider/catalog"
)

// endings.go: the models that their providers have ended or will end, by the catalogue and, with
// --online, by the providers' own lists.

// listed is a model in a provider's list.
type listed struct {
	id    string
	ends  time.Time // zero means that no end is announced
	dated bool      // the list says whether an end is announced
}

// list returns the models of the list. ok is false if the body is not a list.
func (l *lister) list() (all []listed, ok bool) {
	var body struct {
		Data []struct {
			ID string `json:"id"`

			// OpenAI, 2006-01-02 or null. Other servers of Chat Completions have no such field.
			ShutdownDate json.RawMessage `json:"shutdown_date"`

			Lifecycle string    `json:"lifecycle"`  // Anthropic: active, deprecated, retired
			RetiresAt time.Time `json:"retires_at"` // Anthropic; null means that none is announced
		} `json:"data"`
		Models []struct{ Name string } `json:"models"` // Gemini
	}
	if json.Unmarshal(l.body, &body) != nil {
		return nil, false
	}

	for _, m := range body.Data {
		one := listed{id: m.ID, ends: m.RetiresAt, dated: m.ShutdownDate != nil || m.Lifecycle != ""}
		if day, err := time.Parse(`"`+time.DateOnly+`"`, string(m.ShutdownDate)); err == nil {
			one.ends = day
		}
		all = append(all, one)
	}
	for _, m := range body.Models {
		all = append(all, listed{id: strings.TrimPrefix(m.Name, "models/")})
	}
	return all, true
}

// now returns the time that ends are compared with.
func (x *examination) now() time.Time {
	if x.sys.Now == nil {
		return time.Now()
	}
	return x.sys.Now()
}

// announced keeps the list of a provider, and reports the ends in it that are near.
func (x *examination) announced(p string, l *lister) {
	x.lists[p] = l
	all, _ := l.list()
	all = slices.DeleteFunc(all, func(m listed) bool {
		return m.ends.IsZero() || m.ends.Sub(x.now()) >= catalog.EndNotice
	})
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b listed) int { return a.ends.Compare(b.ends) })
	var names []string
	for _, m := range all {
		names = append(names, m.id+" on "+m.ends.Format(time.DateOnly))
	}
	x.ok("%s announces the end of %s: %s", p, cli.Count(len(all), "model"), cli.Line(strings.Join(names, ", "), 200))
}

// endings reports the models of an agent that end. The provider's own list counts more than the
// catalogue, because an announced day can move.
func (x *examination) endings(a *agentfile.Agent, o *agentfile.Options) {
	online := map[string]bool{}
	for _, m := range a.Model {
		if m.BaseURL == "" { // another server may have the model for longer
			online[m.Name] = x.listedEnd(a.Name, m.Name)
		}
	}
	for _, f := range a.Endings(o) {
		name, _, _ := strings.Cut(f.Message, " ")
		if !online[name] {
			x.say(checkWarn, f.Hint, "agent %s uses a model that ends: %s", a.Name, f.Message)
		}
	}
}

// listedEnd reports the end of a model by the list of its provider. It returns whether the list
// says whether the model ends.
func (x *examination) listedEnd(agent, name string) bool {
	p, id, _ := strings.Cut(name, ":")
	if info, _ := provider.Find(p); info.Alias {
		p = info.Catalog // both names reach the same service
	}
	l := x.lists[p]
	if l == nil {
		return false
	}
	all, _ := l.list()
	i := slices.IndexFunc(all, func(m listed) bool { return m.id == id && m.dated })
	if i < 0 {
		return false
	}

	ends := all[i].ends
	if ends.IsZero() || ends.Sub(x.now()) >= catalog.EndNotice {
		return true
	}
	// The list has no successor, and the catalogue may know one.
	next := "pawl models list --provider " + p + " has others"
	if e, ok := catalog.Default().Ending(name, x.now()); ok {
		next = e.Hint()
	}
	days := int(ends.Sub(x.now()).Hours() / 24)
	text := fmt.Sprintf("ends on %s, in %s", ends.Format(time.DateOnly), cli.Count(days, "day"))
	if !x.now().Before(ends) {
		text = "ended on " + ends.Format(time.DateOnly)
	}
	x.say(checkWarn, next, "agent %s uses %s, which %s by the list of %s", agent, name, text, p)
	return true
}
