package catalog

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// dated matches the end of a snapshot's name.
var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// makers maps the vendor names of OpenRouter to providers, where they differ.
var makers = map[string]string{"google": "gemini", "x-ai": "xai", "mistralai": "mistral"}

// Lookup returns the known facts about the model that name ("PROVIDER:MODEL") refers to, and a
// sentence for each assumption. It assumes that a dated snapshot equals its model, that an Ollama
// model equals the others of its family, and that a model of OpenRouter equals the model of its
// vendor. If it is unknown whether the model calls tools, it assumes that it does. The sentences
// are nil if there is no assumption.
//
// The Model always has Calling, and the Provider and ID of name. The targets of its pointers must
// not be changed. A nil Catalog means Default.
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
		assumed = append(assumed, "it is assumed to call tools")
	}
	m.Provider = provider
	m.ID = id
	return m, assumed
}

// Window returns the context window and the longest reply of the model that a request names, in
// tokens. name is the adapter's model, for a request that names none. 0 means unknown.
func (c *Catalog) Window(provider, name string, req *llm.Request) (window, output int) {
	m, _ := c.Lookup(provider + ":" + cmp.Or(req.Model, name))
	return m.Window, m.MaxOutput
}

// like finds the model, or a model that counts as equal, which it names.
func (c *Catalog) like(provider, id string) (m Model, like string, ok bool) {
	m, ok = c.Find(provider, id)
	if ok {
		return m, "", true
	}
	if base := dated.ReplaceAllString(id, ""); base != id {
		m, ok = c.Find(provider, base)
		if ok {
			return m, "it is assumed to be like " + m.Name() + ", because its name is a snapshot of it", true
		}
	}
	switch provider {
	case "ollama":
		if base, _, tag := strings.Cut(id, ":"); tag {
			m, ok = c.Find(provider, base)
			if ok {
				return m, "it is assumed to be like the others of " + m.Name(), true
			}
		}
	case "openrouter":
		maker, base, _ := strings.Cut(id, "/")
		if p, other := makers[maker]; other {
			maker = p
		}
		m, ok = c.Find(maker, base)
		if !ok {
			// Anthropic's names have no dots.
			m, ok = c.Find(maker, strings.ReplaceAll(base, ".", "-"))
		}
		if ok {
			m.Price = nil
			return m, "it is assumed to be like " + m.Name() + "; its price here is not known", true
		}
	}
	return Model{}, "", false
}

// Find returns the known facts about the provider's model with this name or alias, without
// assumptions. A nil Catalog means Default.
func (c *Catalog) Find(provider, id string) (Model, bool) {
	c = cmp.Or(c, Default())
	if i, ok := c.names[owner(provider)+":"+id]; ok {
		return c.models[i], true
	}
	return Model{}, false
}
