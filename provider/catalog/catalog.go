// Package catalog says what is known of models: whether they call tools and see images, how much they read and write, what they cost.
//
//	c := catalog.Default()
//	m, assumed := c.Lookup("openai:gpt-5-mini")
//
// The facts are data, models.json, each record with the page it was read on and the day. What no page said is left out, and that is not the
// same as no: see Model. A file in the same form can stand in for them, with Parse.
//
// Nothing is refused for what stands here: a model that the catalogue does not know works, with the assumptions that Lookup returns.
package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed models.json
var embedded []byte

// Model is what is known of one model behind one provider. A nil or zero field is not known.
type Model struct {
	Provider  string   `json:"provider"`          // as in front of the colon of a model's name
	ID        string   `json:"id"`                // the provider's name of it
	Aliases   []string `json:"aliases,omitempty"` // other names that the provider has for it
	Calling   *bool    `json:"calling,omitempty"` // it calls tools natively
	Parallel  *bool    `json:"parallel,omitempty"`
	Vision    *bool    `json:"vision,omitempty"`
	Reasoning *bool    `json:"reasoning,omitempty"`
	Window    int      `json:"window,omitempty"`     // tokens
	MaxOutput int      `json:"max_output,omitempty"` // tokens of one reply
	Price     *Price   `json:"price,omitempty"`
	Source    string   `json:"source,omitempty"` // the page all this was read on
	Date      string   `json:"date,omitempty"`   // the day it was read, 2006-01-02
	Note      string   `json:"note,omitempty"`
}

// Price is in US dollars for a million tokens. Cached is nil where it is not known.
type Price struct {
	Input  float64  `json:"input"`
	Output float64  `json:"output"`
	Cached *float64 `json:"cached,omitempty"` // input that was read from a cache
}

// Name returns the name that provider.Open takes.
func (m *Model) Name() string { return m.Provider + ":" + m.ID }

// Catalog is a list of models. It may be used concurrently.
type Catalog struct{ models []Model }

// Default returns the catalogue that comes with the program.
func Default() *Catalog {
	c, err := Parse(embedded)
	if err != nil {
		panic("models.json: " + err.Error()) // a mistake in the program's own text
	}
	return c
}

// Parse reads a catalogue: a JSON list of Models. The error says which record is wrong, and what would be right.
func Parse(data []byte) (*Catalog, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	c := new(Catalog)
	if err := d.Decode(&c.models); err != nil {
		return nil, fmt.Errorf("want a JSON list of models: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON list of models, and nothing after it")
	}
	seen := map[string]bool{}
	for i := range c.models {
		m := &c.models[i]
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("model %d, %s: %w", i+1, m.Name(), err)
		}
		for _, id := range append([]string{m.ID}, m.Aliases...) {
			if name := m.Provider + ":" + id; seen[name] {
				return nil, fmt.Errorf("model %d: %s stands there twice", i+1, name)
			} else {
				seen[name] = true
			}
		}
	}
	return c, nil
}

func (m *Model) check() error {
	switch {
	case m.Provider == "" || m.ID == "" || strings.Contains(m.Provider, ":"):
		return errors.New("want a provider, without a colon, and an id")
	case slices.Contains(m.Aliases, ""):
		return errors.New("an alias is empty")
	case m.Window < 0 || m.MaxOutput < 0:
		return errors.New("window and max_output are numbers of tokens, not less than 0")
	case m.Window > 0 && m.MaxOutput > m.Window:
		return errors.New("max_output is more than window")
	case m.Parallel != nil && *m.Parallel && m.Calling != nil && !*m.Calling:
		return errors.New("it cannot call in parallel without calling")
	}
	if p := m.Price; p != nil {
		for _, v := range []*float64{&p.Input, &p.Output, p.Cached} {
			if v != nil && (*v < 0 || math.IsInf(*v, 0)) {
				return errors.New("a price is less than 0")
			}
		}
		if m.Source == "" || m.Date == "" {
			return errors.New("a price needs its source and date")
		}
	}
	if m.Date != "" {
		if _, err := time.Parse(time.DateOnly, m.Date); err != nil {
			return fmt.Errorf("date %q: want one such as 2006-01-02", m.Date)
		}
	}
	if m.Source != "" {
		if u, err := url.Parse(m.Source); err != nil || u.Host == "" {
			return fmt.Errorf("source %q: want an address", m.Source)
		}
	}
	return nil
}

// Models returns a copy of the list, in its order. With a provider, only its own.
func (c *Catalog) Models(provider string) []Model {
	list := []Model{}
	for _, m := range c.models {
		if provider == "" || m.Provider == owner(provider) {
			list = append(list, m)
		}
	}
	return list
}

// owner is the provider whose models a name of package provider reaches.
func owner(provider string) string {
	if provider == "openai-chat" {
		return "openai" // another API to the same models
	}
	return provider
}

// dated is the end of a snapshot's name.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// Lookup returns what is known of the model that name, "PROVIDER:MODEL", stands for, and a sentence for each thing that was assumed: that a
// dated snapshot is like the model it is of, that a model behind OpenRouter is like the one at its maker, or, of a model that is not known at
// all, that it calls tools. Without assumptions it returns nil. The Model always has the Provider and ID of name.
func (c *Catalog) Lookup(name string) (Model, []string) {
	provider, id, _ := strings.Cut(name, ":")
	var assumed []string
	m, ok := c.find(owner(provider), id)
	if !ok {
		if base := dated.ReplaceAllString(id, ""); base != id {
			if m, ok = c.find(owner(provider), base); ok {
				assumed = append(assumed, "it is taken to be like "+m.Name()+", whose snapshot its name says it is")
			}
		}
	}
	if !ok && provider == "openrouter" {
		if maker, base, found := strings.Cut(id, "/"); found {
			if m, ok = c.find(maker, base); ok {
				m.Price = nil
				assumed = append(assumed, "it is taken to be like "+m.Name()+"; its price here is not known")
			}
		}
	}
	if !ok {
		m = Model{}
		assumed = append(assumed, "the catalogue does not know it")
	}
	if m.Calling == nil {
		yes := true
		m.Calling = &yes
		assumed = append(assumed, "it is taken to call tools")
	}
	m.Provider, m.ID = provider, id
	return m, assumed
}

func (c *Catalog) find(provider, id string) (Model, bool) {
	for _, m := range c.models {
		if m.Provider == provider && (m.ID == id || slices.Contains(m.Aliases, id)) {
			return m, true
		}
	}
	return Model{}, false
}
