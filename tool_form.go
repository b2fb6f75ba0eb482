package pawl

// tool_form.go: what is computed once from the fields of a Tool: its ToolSpec, its compiled schema and
// its canonical schema.

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/llm"
)

// toolForm is what is computed from the fields of a Tool, each part at its first use.
type toolForm struct {
	spec      *llm.ToolSpec // its Source is the tool
	schema    func() (*schema.Schema, error)
	canonical func() []byte // of Input
}

// formed returns the form of t as t is now. A copied Tool has the form of its original, and a changed
// Tool an old one: both get their own. Goroutines that use t at the same time get the same form.
func (t *Tool) formed() *toolForm {
	f := t.form.Load()
	if f != nil && f.describes(t) {
		return f
	}

	made := newToolForm(t)
	if t.form.CompareAndSwap(f, made) {
		return made
	}
	return t.formed()
}

func newToolForm(t *Tool) *toolForm {
	name, input := t.Name, t.Input
	return &toolForm{
		spec: &llm.ToolSpec{
			Name:        t.Name,
			Description: t.Description,
			Input:       t.Input,
			Output:      t.Output,
			Deferred:    t.Deferred,
			NoRepair:    t.NoRepair,
			Source:      t,
		},
		schema: sync.OnceValues(func() (*schema.Schema, error) {
			s, err := schema.Compile(input)
			if err != nil {
				return nil, fmt.Errorf("tool %s: input schema: %w", name, err)
			}
			return s, nil
		}),
		canonical: sync.OnceValue(func() []byte { return jsonform.Canonical(input) }),
	}
}

// describes reports whether f was computed from t with the fields that t has now.
func (f *toolForm) describes(t *Tool) bool {
	s := f.spec
	switch {
	case s.Source != t:
		return false
	case s.Name != t.Name, s.Description != t.Description:
		return false
	case s.Deferred != t.Deferred, s.NoRepair != t.NoRepair:
		return false
	}
	return bytes.Equal(s.Input, t.Input) && bytes.Equal(s.Output, t.Output)
}

// Spec returns the description of t for a model, with t as its Source. Every call returns the same
// pointer while t is not changed, so that adapters can cache its encoding.
func (t *Tool) Spec() *llm.ToolSpec { return t.formed().spec }

// specs returns the descriptions of tools.
func specs(tools []*Tool) []*llm.ToolSpec {
	if len(tools) == 0 {
		return nil
	}
	all := make([]*llm.ToolSpec, len(tools))
	for i, t := range tools {
		all[i] = t.Spec()
	}
	return all
}
