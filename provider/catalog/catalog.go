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
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed models.json
var embedded []byte

// Model is what is known of one model behind one provider. A nil or zero field is not known.
type Model struct {
	Provider  string   `json:"provider"`          // as in front of the colon of a model's name; openai-chat is read as openai, whose models it reaches
	ID        string   `json:"id"`                // the provider's name of it
	Aliases   []string `json:"aliases,omitempty"` // other names that the provider has for it
	Calling   *bool    `json:"calling,omitempty"` // it calls tools natively
	Parallel  *bool    `json:"parallel,omitempty"`
	Vision    *bool    `json:"vision,omitempty"`
	Reasoning *bool    `json:"reasoning,omitempty"`
	Thinking  Thinking `json:"thinking,omitempty"`   // how it is told to reason
	Efforts   []string `json:"efforts,omitempty"`    // of llm.Settings.Effort, those that it takes
	Instructs *bool    `json:"instructs,omitempty"`  // it takes instructions in the middle of a conversation as what they are
	Schema    *bool    `json:"schema,omitempty"`     // it can be held to a schema of its reply
	Window    int      `json:"window,omitempty"`     // tokens
	MaxOutput int      `json:"max_output,omitempty"` // tokens of one reply
	Price     *Price   `json:"price,omitempty"`
	Source    string   `json:"source,omitempty"` // the page all this was read on
	Date      string   `json:"date,omitempty"`   // the day it was read, 2006-01-02
	Note      string   `json:"note,omitempty"`
}

// Thinking is how a model is told how much to reason, where one API has several ways. Empty: not known, or there is one way.
type Thinking string

const (
	Adaptive Thinking = "adaptive" // Anthropic: by a word, and it decides itself
	Level    Thinking = "level"    // Gemini: by a word
	Budget   Thinking = "budget"   // Anthropic, Gemini: up to a number of tokens
)

// Name returns the name that provider.Open takes.
func (m *Model) Name() string { return m.Provider + ":" + m.ID }

// Catalog is a list of models. It may be used concurrently.
type Catalog struct {
	models []Model
	names  map[string]int // of models, by PROVIDER:ID and by each alias
}

// Default returns the catalogue that comes with the program.
func Default() *Catalog { return inside() }

// inside is read when it is first asked for.
var inside = sync.OnceValue(func() *Catalog {
	c, err := Parse(embedded)
	if err != nil {
		panic("models.json: " + err.Error()) // a mistake in the program's own text
	}
	return c
})

// Parse reads a catalogue: a JSON list of Models. The error says which record is wrong, and what would be right.
func Parse(data []byte) (*Catalog, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	c := &Catalog{names: map[string]int{}}
	if err := d.Decode(&c.models); err != nil {
		return nil, fmt.Errorf("want a JSON list of models: %w", err)
	}
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
				return nil, fmt.Errorf("model %d: %s stands there twice", i+1, name)
			}
			c.names[name] = i
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

// Models returns a copy of the list, in its order. With a provider, only its own. What a Model points to must not be changed.
func (c *Catalog) Models(provider string) []Model {
	list := []Model{}
	for _, m := range c.models {
		if provider == "" || m.Provider == owner(provider) {
			list = append(list, m)
		}
	}
	return list
}

// owner returns the provider whose models a name of package provider reaches: that of openai-chat is openai.
func owner(provider string) string {
	if provider == "openai-chat" {
		return "openai" // another API to the same models
	}
	return provider
}
