package catalog

import (
	"regexp"
	"strings"
)

// dated is the end of a snapshot's name.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// makers are the providers of the names in front of the slash at OpenRouter, where they have another there.
var makers = map[string]string{"google": "gemini", "x-ai": "xai", "mistralai": "mistral"}

// Lookup returns what is known of the model that name, "PROVIDER:MODEL", stands for, and a sentence for each thing that was assumed: that a
// dated snapshot is like the model it is of, an Ollama model like the others of its family, a model behind OpenRouter like the one at its maker, or, of
// a model of which that is not known, that it calls tools. Without assumptions it returns nil. The Model always has the Provider and ID of name,
// and Calling; what it points to must not be changed. A nil Catalog is Default.
func (c *Catalog) Lookup(name string) (Model, []string) {
	provider, id, _ := strings.Cut(name, ":")
	var assumed []string
	m, like, ok := c.like(provider, id)
	switch {
	case !ok:
		assumed = append(assumed, "the catalogue does not know it")
	case like != "":
		assumed = append(assumed, like)
	}
	if m.Calling == nil {
		yes := true
		m.Calling = &yes
		assumed = append(assumed, "it is taken to call tools")
	}
	m.Provider, m.ID = provider, id
	return m, assumed
}

// like finds the model, or one that it is taken to be like, and says so.
func (c *Catalog) like(provider, id string) (m Model, like string, ok bool) {
	if m, ok = c.Find(provider, id); ok {
		return m, "", true
	}
	if base := dated.ReplaceAllString(id, ""); base != id {
		if m, ok = c.Find(provider, base); ok {
			return m, "it is taken to be like " + m.Name() + ", whose snapshot its name says it is", true
		}
	}
	switch provider {
	case "ollama":
		if base, _, tag := strings.Cut(id, ":"); tag {
			if m, ok = c.Find(provider, base); ok {
				return m, "it is taken to be like the others of " + m.Name(), true
			}
		}
	case "openrouter":
		maker, base, _ := strings.Cut(id, "/")
		if p, other := makers[maker]; other {
			maker = p
		}
		if m, ok = c.Find(maker, base); !ok {
			m, ok = c.Find(maker, strings.ReplaceAll(base, ".", "-")) // Anthropic's names have no dots
		}
		if ok {
			m.Price = nil
			return m, "it is taken to be like " + m.Name() + "; its price here is not known", true
		}
	}
	return Model{}, "", false
}

// Find returns what is known of the provider's model of this name or alias, and nothing that was assumed. A nil Catalog is Default.
func (c *Catalog) Find(provider, id string) (Model, bool) {
	if c == nil {
		c = Default()
	}
	if i, ok := c.names[owner(provider)+":"+id]; ok {
		return c.models[i], true
	}
	return Model{}, false
}
