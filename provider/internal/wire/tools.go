package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Toolset is the wire form of the tools of a request: the array of their definitions, encoded once, and their names.
type Toolset struct {
	tools []*llm.ToolSpec
	Body  []byte            // "[{…},{…}]"
	wire  map[string]string // what a tool is called on the wire; only names that differ
	back  map[string]string // the other way round
	names map[string]bool   // what is offered, by wire name; nil: not known
	words map[string]string // the wire names, each by itself

	Notices []llm.Notice // of tools that are left out
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
	Dialect  *dialect.Dialect // what the input schema is said in
	Strict   *dialect.Dialect // what is tried before it, where the caller asked for that; nil: nothing

	// FromTool appends the definition of a tool under a name that fits. schema is its input in one of the dialects, on one
	// line; strict says that it is Strict.
	FromTool func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte
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
func (c *ToolCache) Get(tools []*llm.ToolSpec) (*Toolset, error) {
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
func NewToolset(form ToolForm, tools []*llm.ToolSpec) (*Toolset, error) {
	s := &Toolset{tools: slices.Clone(tools), Body: []byte{'['}, names: map[string]bool{}, words: map[string]string{}}
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
		if len(t.Input) > 0 && !jsonscan.IsObject(t.Input) {
			return nil, Invalid(form.Provider, "tools", "%s: input: the schema is not a JSON object", t.Name)
		}
		sent, strict, err := form.compile(t)
		s.names[name], s.words[name] = err == nil, name
		if err != nil { // this tool alone is left out
			s.Notices = append(s.Notices, llm.Notice{Code: "tool_left_out", Text: fmt.Sprintf("%s: the tool %s is not offered: %v", form.Provider, t.Name, err)})
			continue
		}
		if reshaped(sent) {
			if s.restore == nil {
				s.restore = map[string]func(json.RawMessage) json.RawMessage{}
			}
			s.restore[t.Name] = sent.Restore
		}
		if len(s.Body) > 1 {
			s.Body = append(s.Body, ',')
		}
		s.Body = form.FromTool(s.Body, name, t, sent.Schema, strict)
	}
	s.Body = append(s.Body, ']')
	return s, nil
}

func (s *Toolset) seen(name string) bool {
	_, ok := s.names[name]
	return ok
}

// compile returns the schema of a tool as the provider takes it.
func (f *ToolForm) compile(t *llm.ToolSpec) (c *dialect.Compiled, strict bool, err error) {
	if f.Strict != nil {
		if c, err = f.Strict.Compile(t.Input); err == nil {
			return c, true, nil
		}
	}
	c, err = f.Dialect.Compile(t.Input)
	return c, false, err
}

// reshaped reports whether what fits the schema that is sent has to be turned back.
func reshaped(c *dialect.Compiled) bool {
	return slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == dialect.Reshaped })
}

// Empty reports whether there is no tool to offer: none was given, or each was left out.
func (s *Toolset) Empty() bool { return len(s.Body) <= len("[]") }

// Refuse returns why a choice that Check accepts cannot be sent: a tool that it needs was left out. own are the names of tools that the
// request's options bring. nil: it can be sent.
func (s *Toolset) Refuse(provider string, c llm.ToolChoice, own ...string) error {
	switch {
	case c.Mode == llm.ToolRequired && s.Empty() && len(s.Notices) > 0 && len(own) == 0:
		return Unsupported(provider, "tool_choice", "no tool is offered: %s", s.Notices[0].Text)
	case c.Mode == llm.ToolNamed:
		for _, n := range c.Names {
			if !s.Offered(s.ToWire(n)) && !slices.Contains(own, n) {
				return Unsupported(provider, "tool_choice", "%s is not offered: its input schema cannot be said to this provider", n)
			}
		}
	}
	return nil
}

// Tell yields the notices about tools that are not offered, and reports whether the consumer wants more.
func (s *Toolset) Tell(yield func(llm.Delta, error) bool) bool {
	for i := range s.Notices {
		if !yield(llm.Delta{Notice: &s.Notices[i]}, nil) {
			return false
		}
	}
	return true
}
