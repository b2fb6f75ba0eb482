package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Read reads a catalogue in the form of Parse, or the list of https://models.dev/api.json. The
// records of that list get source and day, and have only some of the facts: Merge leaves the others
// as they were.
func Read(data []byte, source string, day time.Time) (*Catalog, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return Parse(data)
	}
	var listed map[string]struct {
		Models map[string]listedModel `json:"models"`
	}
	if err := json.Unmarshal(data, &listed); err != nil {
		return nil, fmt.Errorf("want a JSON list of models, or the providers of models.dev: %w", err)
	}
	var models []Model
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		for _, id := range slices.Sorted(maps.Keys(listed[name].Models)) {
			m := listed[name].Models[id].model()
			m.Provider = listedProvider(name)
			m.ID = id
			if strings.Contains(source, "://") { // a file is no page with facts
				m.Source = source
			}
			m.Date = day.Format(time.DateOnly)
			if m.check() == nil { // a record that another program made cannot spoil the others
				models = append(models, m)
			}
		}
	}
	if len(models) == 0 {
		return nil, errors.New("want a JSON list of models, or the providers of models.dev; there is no model in it")
	}
	return &Catalog{models: models, names: named(models), partial: true}, nil
}

// listedModel is a model in the list of models.dev.
type listedModel struct {
	Reasoning  *bool `json:"reasoning"`
	ToolCall   *bool `json:"tool_call"`
	Structured *bool `json:"structured_output"`
	Modalities struct {
		Input []string `json:"input"`
	} `json:"modalities"`
	Cost *struct {
		Input     float64  `json:"input"`
		Output    float64  `json:"output"`
		CacheRead *float64 `json:"cache_read"`
		// the price of what is written to the cache
		CacheWrite *float64 `json:"cache_write"`
	} `json:"cost"`
	Limit struct {
		Context int `json:"context"`
		Output  int `json:"output"`
	} `json:"limit"`
}

// listedProvider returns the provider of this module for one of models.dev.
func listedProvider(name string) string {
	if own, ok := makers[name]; ok {
		return own
	}
	return name
}

func (l listedModel) model() Model {
	m := Model{Calling: l.ToolCall, Reasoning: l.Reasoning, Schema: l.Structured, Window: l.Limit.Context}
	if l.Limit.Output <= l.Limit.Context {
		m.MaxOutput = l.Limit.Output
	}
	if len(l.Modalities.Input) > 0 {
		sees := slices.Contains(l.Modalities.Input, "image")
		m.Vision = &sees
	}
	if l.Cost != nil {
		m.Price = &Price{Input: l.Cost.Input, Output: l.Cost.Output, Cached: l.Cost.CacheRead, Write: l.Cost.CacheWrite}
	}
	return m
}

// Merge returns a catalogue with the models of c and of newer. Of two records for one model it has
// the later one, and the record of newer if both have the same day. A record that has only some of
// the facts leaves the others as they were. Neither catalogue is changed.
func (c *Catalog) Merge(newer *Catalog) *Catalog {
	models := slices.Clone(c.models)
	at := named(models)
	for _, m := range newer.models {
		i, known := at[m.Provider+":"+m.ID]
		switch {
		case known && models[i].ID != m.ID && newer.partial:
			// It is an alias here, and its model has the facts.
		case !known || models[i].ID != m.ID:
			at[m.Provider+":"+m.ID] = len(models)
			models = append(models, m)
		case m.Date < models[i].Date:
		case newer.partial:
			models[i] = models[i].with(m)
		default:
			models[i] = m
		}
	}
	for i := range models {
		models[i].Aliases = slices.DeleteFunc(slices.Clone(models[i].Aliases), func(alias string) bool {
			return at[models[i].Provider+":"+alias] != i && slices.ContainsFunc(models, func(m Model) bool {
				return m.Provider == models[i].Provider && m.ID == alias
			})
		})
	}
	return &Catalog{models: models, names: named(models)}
}

// with returns m with the facts that other has.
func (m Model) with(other Model) Model {
	// Listed prices have no step for long requests. A new price without it must not make such
	// requests look cheaper.
	if m.Price != nil && other.Price != nil && other.Price.Long == nil {
		price := *other.Price
		price.Long = m.Price.Long
		other.Price = &price
	}
	to := reflect.ValueOf(&m).Elem()
	from := reflect.ValueOf(other)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	// The two facts may now come from two sources that contradict each other. The window is the
	// fact that requests need.
	if m.Window > 0 && m.MaxOutput > m.Window {
		m.MaxOutput = 0
	}
	return m
}

// named returns the indexes of models by PROVIDER:ID and by alias.
func named(models []Model) map[string]int {
	names := map[string]int{}
	for i, m := range models {
		for _, id := range append([]string{m.ID}, m.Aliases...) {
			names[m.Provider+":"+id] = i
		}
	}
	return names
}

// Change is a difference of a model between two catalogues.
type Change struct {
	Model  string   // PROVIDER:ID
	New    bool     // the model was not there before
	Fields []string // the JSON names of the facts that differ; nil for a new model
}

// Changes returns what newer says otherwise than c, in the order of newer.
func (c *Catalog) Changes(newer *Catalog) (all []Change) {
	for _, m := range newer.models {
		old, known := c.Find(m.Provider, m.ID)
		if !known || old.ID != m.ID { // an alias is no model yet
			all = append(all, Change{Model: m.Name(), New: true})
			continue
		}
		if fields := old.differs(m); len(fields) > 0 {
			all = append(all, Change{Model: m.Name(), Fields: fields})
		}
	}
	return all
}

// differs returns the JSON names of the facts in which m and other differ.
func (m Model) differs(other Model) (names []string) {
	a, b := reflect.ValueOf(m), reflect.ValueOf(other)
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if name == "aliases" && len(m.Aliases)+len(other.Aliases) == 0 {
			continue
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	return names
}
