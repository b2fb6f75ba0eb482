package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/dialect"
)

// Toolset is the wire form of the tools of a request: the array of their definitions, encoded once, and their names.
type Toolset struct {
	tools []*pawl.Tool
	Body  []byte            // "[{…},{…}]"
	wire  map[string]string // what a tool is called on the wire; only names that differ
	back  map[string]string // the other way round
	names map[string]bool   // what is offered, by wire name; nil: not known

	Notices []pawl.Notice // of tools that are left out
	restore map[string]func(json.RawMessage) json.RawMessage
}

// NoTools is the toolset of requests without tools, and of decoding without a request.
var NoTools = new(Toolset)

// Offered reports whether name may be called. Without tools everything may be: the pipeline knows what to say.
func (s *Toolset) Offered(name string) bool { return s.names == nil || s.names[name] }

// Known reports whether it is known what is offered.
func (s *Toolset) Known() bool { return s.names != nil }

// ToWire returns the wire form of a tool's name. A tool of an old message may be offered no more; its name is mapped too.
func (s *Toolset) ToWire(name string) string {
	if w, ok := s.wire[name]; ok {
		return w
	}
	if Fits(name) {
		return name
	}
	return fitted(name)
}

// FromWire returns the name that the agent knows.
func (s *Toolset) FromWire(name string) string {
	if n, ok := s.back[name]; ok {
		return n
	}
	return name
}

// Fits reports whether a name is accepted as it is by all providers: [A-Za-z][A-Za-z0-9_]{0,63}.
func Fits(name string) bool {
	if name == "" || len(name) > 64 || !letter(name[0]) {
		return false
	}
	for _, c := range []byte(name) {
		if !letter(c) && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fitted makes a name that fits out of any, the same every time. Part of a hash keeps names apart that would become
// equal, whatever other tools there are, so that a name does not change when a tool is added.
func fitted(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !letter(c) && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || !letter(b[0]) {
		b = append([]byte("t_"), b...)
	}
	sum := strconv.FormatUint(Hash(name)%(36*36*36*36*36*36), 36)
	return string(b[:min(len(b), 64-1-len(sum))]) + "_" + sum
}

// ToolForm is how a provider has a tool.
type ToolForm struct {
	Provider string
	Dialect  *dialect.Dialect                                            // what FromTool is given the input schema in; nil: as it is
	FromTool func(dst []byte, name string, t *pawl.Tool) ([]byte, error) // appends its definition under a name that fits
}

// ToolCache keeps the toolsets that a Model met last. Runs of one agent share one; tools must not change after their
// first use, so pointers tell sets apart.
type ToolCache struct {
	Form ToolForm

	mu   sync.RWMutex
	sets [16]*Toolset
	next int
}

// Get returns the toolset of tools.
func (c *ToolCache) Get(tools []*pawl.Tool) (*Toolset, error) {
	if len(tools) == 0 {
		return NoTools, nil
	}
	c.mu.RLock()
	for _, s := range c.sets {
		if s != nil && slices.Equal(s.tools, tools) {
			c.mu.RUnlock()
			return s, nil
		}
	}
	c.mu.RUnlock()
	s, err := NewToolset(c.Form, tools)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.sets[c.next] = s
	c.next = (c.next + 1) % len(c.sets)
	c.mu.Unlock()
	return s, nil
}

// NewToolset encodes tools.
func NewToolset(form ToolForm, tools []*pawl.Tool) (*Toolset, error) {
	s := &Toolset{tools: slices.Clone(tools), Body: []byte{'['}, names: map[string]bool{}}
	for _, t := range tools {
		name := t.Name
		if !Fits(name) {
			name = fitted(name)
			if s.wire == nil {
				s.wire, s.back = map[string]string{}, map[string]string{}
			}
			s.wire[t.Name], s.back[name] = name, t.Name
		}
		if s.seen(name) {
			return nil, Invalid(form.Provider, "tools", "two tools are named %q", t.Name)
		}
		sent, err := s.compile(form, t, name)
		if err != nil {
			return nil, Invalid(form.Provider, "tools", "%s: input: %v", t.Name, err)
		}
		s.names[name] = sent != nil
		if sent == nil {
			continue
		}
		if len(s.Body) > 1 {
			s.Body = append(s.Body, ',')
		}
		if s.Body, err = form.FromTool(s.Body, name, sent); err != nil {
			return nil, Invalid(form.Provider, "tools", "%s: %v", t.Name, err)
		}
	}
	s.Body = append(s.Body, ']')
	return s, nil
}

func (s *Toolset) seen(name string) bool {
	_, ok := s.names[name]
	return ok
}

// compile returns the tool with its schema as the provider takes it. One that cannot be said at all is left out alone: then there is
// a notice, and no tool.
func (s *Toolset) compile(form ToolForm, t *pawl.Tool, name string) (*pawl.Tool, error) {
	if form.Dialect == nil || len(t.Input) == 0 {
		return t, nil
	}
	c, err := form.Dialect.Compile(t.Input)
	var cannot *dialect.Error
	switch {
	case errors.As(err, &cannot):
		s.Notices = append(s.Notices, pawl.Notice{Code: "tool_left_out", Text: fmt.Sprintf("%s: the tool %s is not offered: %v", form.Provider, t.Name, err)})
		return nil, nil
	case err != nil:
		return nil, err
	}
	if slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == dialect.Reshaped }) {
		if s.restore == nil {
			s.restore = map[string]func(json.RawMessage) json.RawMessage{}
		}
		s.restore[name] = c.Restore
	}
	return &pawl.Tool{Name: t.Name, Description: t.Description, Input: c.Schema}, nil
}

// Restore returns what turns arguments of the tool with that wire name into those that its own schema asks for; nil: they are.
func (s *Toolset) Restore(name string) func(json.RawMessage) json.RawMessage { return s.restore[name] }

// Tell yields the notices about tools that are not offered, and reports whether the consumer wants more.
func (s *Toolset) Tell(yield func(pawl.Delta, error) bool) bool {
	for i := range s.Notices {
		if !yield(pawl.Delta{Notice: &s.Notices[i]}, nil) {
			return false
		}
	}
	return true
}
