package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/schema"
)

// ToolSpec is what a Model is told about a tool. It must not change once it is in a Request.
type ToolSpec struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; nil means an object without properties
	Output      json.RawMessage // JSON Schema of the result's data; nil means that it is not stated
	Deferred    bool            // the model knows the tool from tool_search alone, so errors do not list it
	NoRepair    bool            // arguments that do not fit Input are refused even if they could be repaired

	// Source is the value the ToolSpec was made from: a *Tool in the requests of a run, nil in a
	// Request read from JSON. Engines use it; it is never sent.
	Source any

	compiled struct {
		once   sync.Once
		schema *schema.Schema
		err    error
	}
}

// Validate returns nil if a call with args would be executed: they fit Input, or can be repaired to
// fit it. Otherwise the error names each field and what was expected there, in words for the model.
// Empty args stand for {}. Drivers use it to ask the model again before there is a call; the calls of
// a run are validated by the pipeline in any case. Validate may be called concurrently.
func (s *ToolSpec) Validate(args json.RawMessage) error {
	c := &s.compiled
	c.once.Do(func() { c.schema, c.err = schema.Compile(s.Input) })
	if c.err != nil {
		return fmt.Errorf("tool %s: input schema: %w", s.Name, c.err)
	}
	if _, _, refusal := c.schema.Arguments(s.Name, args, !s.NoRepair); refusal != "" {
		return errors.New(refusal)
	}
	return nil
}

// toolNames lists the tools that are offered; "none" if there is none.
func toolNames(tools []*ToolSpec) string {
	var names []string
	for _, t := range tools {
		if !t.Deferred {
			names = append(names, t.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
