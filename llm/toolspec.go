package llm

// toolspec.go: ToolSpec, the description of a tool that a model reads.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/schema"
)

// ToolSpec describes a tool to a Model. It must not be changed once it is in a Request.
type ToolSpec struct {
	Name        string // unique within a Request
	Description string // what the tool does and when to call it, for the model
	// JSON Schema of the arguments; nil means an object without properties.
	Input  json.RawMessage
	Output json.RawMessage // JSON Schema of the result data; nil means unspecified
	// Deferred means that the model knows the tool only from tool_search, so that errors do not
	// list it.
	Deferred bool
	// NoRepair rejects arguments that do not fit Input, even if they could be repaired.
	NoRepair bool

	// Source is the value that the ToolSpec was made from: a *Tool in the requests of a run, nil in
	// a Request read from JSON. Engines use it. It is never sent.
	Source any

	compiled struct {
		once   sync.Once
		schema *schema.Schema
		err    error
	}
}

// validator is a tool that repairs its arguments itself.
type validator interface {
	Validate(args json.RawMessage) error
}

// Validate returns nil if a call with args would be executed: args fit Input, or can be repaired to
// fit it. Otherwise the error names each field and the expected value, in words for the model.
// Empty args count as {}.
//
// Drivers use Validate to ask the model again before a call exists. The pipeline validates the
// calls of a run in any case. Validate is safe for concurrent use.
func (s *ToolSpec) Validate(args json.RawMessage) error {
	c := &s.compiled
	c.once.Do(func() { c.schema, c.err = schema.Compile(s.Input) })
	if c.err != nil {
		return fmt.Errorf("tool %s: input schema: %w", s.Name, c.err)
	}
	if _, _, refusal := c.schema.Arguments(context.Background(), s.Name, args, !s.NoRepair); refusal != "" {
		tool, ok := s.Source.(validator)
		if ok && tool.Validate(args) == nil { // by its own repair
			return nil
		}
		return errors.New(refusal)
	}
	return nil
}

// toolNames lists the offered tools, or returns "none".
func toolNames(tools []*ToolSpec) string {
	var names []string
	for _, t := range tools {
		if !t.Deferred {
			names = append(names, t.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
