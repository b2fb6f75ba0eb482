package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/dialect"
)

// OutputForm is what a provider can hold the text of a reply to.
type OutputForm struct {
	Dialects []*dialect.Dialect // to try, the one that is enforced most before the others
	Any      bool               // the reply may be any value, and not an object alone
}

// Output is the schema of a reply's text as it is sent.
type Output struct {
	Schema  json.RawMessage  // nil: it cannot be said natively, and has to be asked for in words
	Dialect *dialect.Dialect // that Schema is said in
}

// NewOutput says the schema in the first dialect that can. Text is shown while it comes and nothing can be turned back in it, so a form
// that changes what is written does not count; nor does one in which nothing could be written at all.
func NewOutput(form OutputForm, schema json.RawMessage) Output {
	if len(schema) == 0 {
		return Output{}
	}
	for _, d := range form.Dialects {
		compile := d.Compile
		if form.Any {
			compile = d.CompileValue
		}
		c, err := compile(schema)
		if err != nil || reshaped(c) || emptied(c) {
			continue
		}
		return Output{c.Schema, d}
	}
	return Output{}
}

// emptied reports whether a map of any names has become an object that has none.
func emptied(c *dialect.Compiled) bool {
	return slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == dialect.Stricter }) && strings.Contains(string(c.Schema), `"properties":{}`)
}

// Wish asks in words for a reply that fits the schema, from models and servers that cannot be held to it. The reply is checked like any
// other.
func Wish(schema json.RawMessage) string { return wish + string(schema) }

const wish = "When you give your final answer, give one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n"

// OutputCache keeps the outputs that a Model met last. It may be used concurrently.
type OutputCache struct {
	Form OutputForm

	mu   sync.Mutex
	made map[string]Output
}

// Get returns the output for a schema.
func (c *OutputCache) Get(schema json.RawMessage) Output {
	if len(schema) == 0 {
		return Output{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.made[string(schema)]
	if !ok {
		o = NewOutput(c.Form, schema)
		if c.made == nil || len(c.made) >= 16 {
			c.made = map[string]Output{}
		}
		c.made[string(schema)] = o
	}
	return o
}
