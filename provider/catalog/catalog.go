// Package catalog has facts about models: whether they call tools and see images, their limits, and
// their prices.
//
//	c := catalog.Default()
//	m, assumed := c.Lookup("openai:gpt-5-mini")
//
// The facts are data in models.json. Each record names the page it was read on and the date. Facts
// that no page states are absent, which does not mean no: see Model. Parse reads a replacement in
// the same form.
//
// The catalog rejects nothing: an unknown model works, with the assumptions that Lookup returns.
package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed models.json
var embedded []byte

// Model is the known facts about one model of one provider. A nil or zero field means unknown.
type Model struct {
	// Provider is the part before the colon of a model's name. openai-chat counts as openai,
	// because it reaches the same models.
	Provider  string   `json:"provider"`
	ID        string   `json:"id"`                  // the provider's name of the model
	Aliases   []string `json:"aliases,omitempty"`   // the provider's other names of the model
	Calling   *bool    `json:"calling,omitempty"`   // supports tool calls natively
	Parallel  *bool    `json:"parallel,omitempty"`  // can make several calls in one reply
	Vision    *bool    `json:"vision,omitempty"`    // reads pictures
	Reasoning *bool    `json:"reasoning,omitempty"` // reasons before it answers
	Thinking  Thinking `json:"thinking,omitempty"`  // the way to set the amount of reasoning
	Efforts   []string `json:"efforts,omitempty"`   // the supported values of llm.Settings.Effort
	// Instructs means that the model follows instructions in the middle of a conversation as
	// instructions.
	Instructs *bool  `json:"instructs,omitempty"`
	Schema    *bool  `json:"schema,omitempty"`     // can be held to a schema of its reply
	Bound     *bool  `json:"bound,omitempty"`      // binds reasoning to what stands before it
	Window    int    `json:"window,omitempty"`     // the context window in tokens
	MaxOutput int    `json:"max_output,omitempty"` // the longest reply in tokens
	Price     *Price `json:"price,omitempty"`      // nil means unknown

	// Ends is the announced day from which on the provider no longer serves the model, 2006-01-02.
	// Empty means that no end is announced. See Catalog.Ending.
	Ends string `json:"ends,omitempty"`

	// Successor is the ID of the model that the provider recommends in its place.
	Successor string `json:"successor,omitempty"`

	Source string `json:"source,omitempty"` // the page with these facts
	Date   string `json:"date,omitempty"`   // the day it was read, 2006-01-02
	Note   string `json:"note,omitempty"`   // for the readers of the catalogue
}

// Thinking is the way to set the amount of reasoning, for APIs with several ways. Empty means
// unknown, or a single way.
type Thinking string

const (
	Adaptive Thinking = "adaptive" // Anthropic: by a word; the model decides the amount
	Level    Thinking = "level"    // Gemini: by a word
	Budget   Thinking = "budget"   // Anthropic, Gemini: by a maximum number of tokens
)

// Name returns the name that provider.Open accepts.
func (m *Model) Name() string { return m.Provider + ":" + m.ID }

// Catalog is a list of models. It is safe for concurrent use.
type Catalog struct {
	models []Model
	names  map[string]int // indexes of models, by PROVIDER:ID and by alias

	partial bool // a record without a fact does not say that the fact is unknown
}

// Default returns the catalog that is part of the program.
func Default() *Catalog { return inside() }

// inside is parsed at first use.
var inside = sync.OnceValue(func() *Catalog {
	c, err := Parse(embedded)
	if err != nil {
		panic("models.json: " + err.Error()) // a mistake in the program's own text
	}
	return c
})

// Parse reads a catalog: a JSON list of Models. The error names the faulty record and the expected
// value.
func Parse(data []byte) (*Catalog, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	c := &Catalog{names: map[string]int{}}
	if err := d.Decode(&c.models); err != nil {
		return nil, fmt.Errorf("want a JSON list of models: %w", err)
	}
	// Decode stops after the list. A second list, as from two joined files, would be ignored
	// without notice.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON list of models, and nothing after it")
	}
	for i := range c.models {
		m := &c.models[i]
		m.Provider = owner(m.Provider)
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("model %d, %s: %w", i+1, m.Name(), err)
		}
		for _, id := range append([]string{m.ID}, m.Aliases...) {
			name := m.Provider + ":" + id
			if _, twice := c.names[name]; twice {
				return nil, fmt.Errorf("model %d: %s is a duplicate", i+1, name)
			}
			c.names[name] = i
		}
	}
	return c, nil
}

func (m *Model) check() error {
	parallel := m.Parallel != nil && *m.Parallel
	silent := m.Calling != nil && !*m.Calling
	switch {
	case m.Provider == "" || m.ID == "" || strings.Contains(m.Provider, ":"):
		return errors.New("want a provider, without a colon, and an id")
	case slices.Contains(m.Aliases, ""):
		return errors.New("an alias is empty")
	case m.Window < 0 || m.MaxOutput < 0:
		return errors.New("window and max_output are numbers of tokens, not less than 0")
	case m.Window > 0 && m.MaxOutput > m.Window:
		return errors.New("max_output is more than window")
	case parallel && silent:
		return errors.New("it cannot call in parallel without calling")
	}
	switch m.Thinking {
	case "", Adaptive, Level, Budget:
	default:
		return fmt.Errorf("thinking %q: want %s, %s or %s", m.Thinking, Adaptive, Level, Budget)
	}
	if m.Price != nil {
		if err := m.Price.check(); err != nil {
			return err
		}
	}
	for _, d := range []struct{ field, day string }{{"date", m.Date}, {"ends", m.Ends}} {
		if d.day == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, d.day); err != nil {
			return fmt.Errorf("%s %q: want one such as 2006-01-02", d.field, d.day)
		}
	}
	// A notice about a successor is shown because of the end.
	if m.Successor != "" && m.Ends == "" {
		return errors.New("a successor without ends: want the day from which on it is needed")
	}
	if m.Source != "" {
		if u, err := url.Parse(m.Source); err != nil || u.Host == "" {
			return fmt.Errorf("source %q: want an address", m.Source)
		}
	}
	return nil
}

// Models returns a copy of the list, in its order. If provider is not empty, it returns only the
// models of that provider. The targets of pointers in a Model must not be changed.
func (c *Catalog) Models(provider string) []Model {
	list := []Model{}
	for _, m := range c.models {
		if provider == "" || m.Provider == owner(provider) {
			list = append(list, m)
		}
	}
	return list
}

// owner returns the provider of the models that a name of package provider reaches: openai for
// openai-chat.
func owner(provider string) string {
	if provider == "openai-chat" {
		return "openai" // another API for the same models
	}
	return provider
}
