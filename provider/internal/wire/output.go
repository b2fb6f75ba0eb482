package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/dialect"
)

// OutputForm describes how a provider can enforce a schema on the text of a reply.
type OutputForm struct {
	Dialects []*dialect.Dialect // in order of preference: the strictest one first
	Any      bool               // any JSON value is allowed, not only an object
}

// Output is the schema of a reply's text as the provider receives it.
type Output struct {
	Schema  json.RawMessage  // nil means that only a prompt can ask for it
	Dialect *dialect.Dialect // the dialect of Schema
}

// NewOutput compiles the schema in the first dialect that supports it. Text is shown while it
// arrives and cannot be restored, so a dialect that changes the form of the text is skipped. A
// dialect in which no value fits is skipped too.
func NewOutput(form OutputForm, schema json.RawMessage) Output {
	if len(schema) == 0 {
		return Output{}
	}
	for _, d := range form.Dialects {
		compile := d.Compile
		if form.Any {
			compile = d.CompileValue
		}
		// A schema with no form is no error: the run asks for the schema in its instructions, and
		// validates the reply.
		c, err := compile(schema)
		if err != nil || reshaped(c) || emptied(c) {
			continue
		}
		return Output{c.Schema, d}
	}
	return Output{}
}

// emptied reports whether an object with arbitrary names became an object without any.
func emptied(c *dialect.Compiled) bool {
	return slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == dialect.Stricter }) &&
		strings.Contains(string(c.Schema), `"properties":{}`)
}

// SchemaPrompt returns a prompt that asks for a reply that fits the schema, for models and servers
// that cannot enforce one. The reply is validated as usual.
func SchemaPrompt(schema json.RawMessage) string { return schemaPrompt + string(schema) }

const schemaPrompt = "When you give your final answer, give one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n"

// OutputCache stores the outputs that a Model used last. It is safe for concurrent use.
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
