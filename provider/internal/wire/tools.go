package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Toolset is the wire form of the tools of a request: the array of their definitions, encoded
// once, and their names. It is read-only.
type Toolset struct {
	tools []*llm.ToolSpec
	Body  []byte            // "[{…},{…}]"
	wire  map[string]string // wire names that differ from the tool's name
	back  map[string]string // the reverse of wire
	names map[string]bool   // by wire name, whether the tool is offered; nil means unknown
	words map[string]string // the wire names, for Cursor.Known
	rule  NameRule

	Notices []llm.Notice // about tools that are left out
	restore map[string]func(json.RawMessage) json.RawMessage
}

// NoTools is the toolset of decoding without a request.
var NoTools = new(Toolset)

// Offered reports whether name may be called. Without tools any name may: the call pipeline
// rejects it.
func (s *Toolset) Offered(name string) bool { return s.names == nil || s.names[name] }

// Known reports whether the offered tools are known.
func (s *Toolset) Known() bool { return s.names != nil }

// ToWire returns the wire form of a tool's name. It also maps the tools of old messages that are
// no longer offered.
func (s *Toolset) ToWire(name string) string {
	if w, ok := s.wire[name]; ok {
		return w
	}
	if s.rule.Fits(name) {
		return name
	}
	return fitted(name, 0)
}

// FromWire returns the agent's name of a tool.
func (s *Toolset) FromWire(name string) string {
	if n, ok := s.back[name]; ok {
		return n
	}
	return name
}

// NameRule is the form of tool names that an API accepts: 1 to Max letters of ASCII, digits,
// underscores, and the characters of Also.
type NameRule struct {
	Max   int
	Also  string
	Start bool // the first character is a letter or an underscore
}

// Fits reports whether the API accepts name unchanged.
func (r NameRule) Fits(name string) bool {
	if name == "" || len(name) > r.Max {
		return false
	}
	if r.Start && !letter(name[0]) && name[0] != '_' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case letter(c), c == '_', '0' <= c && c <= '9', strings.IndexByte(r.Also, c) >= 0:
		default:
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fitted derives a name that every API accepts. A hash keeps similar names apart. The result
// depends on name alone, so it does not change when a tool is added. again is 0, or the number of
// results that are names of other tools.
func fitted(name string, again int) string {
	b := []byte(name)
	for i, c := range b {
		if !letter(c) && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || !letter(b[0]) {
		b = append([]byte("t_"), b...)
	}
	for range again {
		name += "\x00"
	}
	sum := strconv.FormatUint(Hash(name)%(36*36*36*36*36*36), 36)
	return string(b[:min(len(b), 64-1-len(sum))]) + "_" + sum
}

// ToolForm describes a provider's form of a tool.
type ToolForm struct {
	Provider string
	Names    NameRule
	Dialect  *dialect.Dialect // of input schemas
	Strict   *dialect.Dialect // tried first, if the caller asked for strict tools; nil means none

	// FromTool appends the definition of a tool. name fits; schema is the input schema in one of
	// the dialects, on one line; strict means the dialect Strict.
	FromTool func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, strict bool) []byte
}

// ToolCache stores the toolsets that a Model used last. The runs of an agent share one. Sets are
// compared by pointer, because tools do not change after their first use. It is safe for
// concurrent use.
type ToolCache struct {
	Form ToolForm

	mu   sync.Mutex
	sets [16]*Toolset
	next int
}

// Get returns the toolset of tools. Concurrent calls wait for a new toolset instead of encoding the
// same tools.
func (c *ToolCache) Get(tools []*llm.ToolSpec) (*Toolset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sets {
		if s != nil && slices.Equal(s.tools, tools) {
			return s, nil
		}
	}
	s, err := NewToolset(c.Form, tools)
	if err != nil {
		return nil, err
	}
	c.sets[c.next] = s
	c.next = (c.next + 1) % len(c.sets)
	return s, nil
}

// NewToolset encodes tools. A tool whose schema has no form in the dialect is left out, with a
// notice.
func NewToolset(form ToolForm, tools []*llm.ToolSpec) (*Toolset, error) {
	s := &Toolset{rule: form.Names}
	if len(tools) == 0 {
		return s, nil
	}
	if err := s.name(form.Provider, tools); err != nil {
		return nil, err
	}
	s.tools, s.Body = slices.Clone(tools), []byte{'['}
	s.names = map[string]bool{}
	s.words = map[string]string{}
	for _, t := range tools {
		name := s.ToWire(t.Name)
		if len(t.Input) > 0 && !jsonscan.IsObject(t.Input) {
			return nil, Invalid(form.Provider, "tools", "%s: input: the schema is not a JSON object", t.Name)
		}
		sent, strict, err := form.compile(t)
		s.names[name], s.words[name] = err == nil, name
		if err != nil { // only this tool is left out
			text := fmt.Sprintf("%s: the tool %s is not offered: %v", form.Provider, t.Name, err)
			s.Notices = append(s.Notices, llm.Notice{Code: "tool_left_out", Text: text})
			continue
		}
		// Arguments in the provider's form are not what the tool reads. restore converts them back.
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

// name gives each tool that needs one a wire name of its own.
func (s *Toolset) name(provider string, tools []*llm.ToolSpec) error {
	taken := make(map[string]bool, len(tools)) // names of tools
	for _, t := range tools {
		if taken[t.Name] {
			return Invalid(provider, "tools", "two tools are named %q", t.Name)
		}
		taken[t.Name] = true
	}
	for _, t := range tools {
		if s.rule.Fits(t.Name) {
			continue
		}
		if s.wire == nil {
			s.wire = map[string]string{}
			s.back = map[string]string{}
		}
		// Two names may become equal when they are fitted, or become the name of another tool.
		again := 0
		w := fitted(t.Name, again)
		for ; taken[w]; w = fitted(t.Name, again) {
			again++
		}
		taken[w] = true
		s.wire[t.Name], s.back[w] = w, t.Name
	}
	return nil
}

// compile returns the input schema of t in the dialect of the provider.
func (f *ToolForm) compile(t *llm.ToolSpec) (c *dialect.Compiled, strict bool, err error) {
	if f.Strict != nil {
		c, err = f.Strict.Compile(t.Input)
		if err == nil {
			return c, true, nil
		}
	}
	c, err = f.Dialect.Compile(t.Input)
	return c, false, err
}

// reshaped reports whether values that fit the sent schema must be restored to the tool's own.
func reshaped(c *dialect.Compiled) bool {
	return slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == dialect.Reshaped })
}

// Empty reports whether no tool is offered.
func (s *Toolset) Empty() bool { return len(s.Body) <= len("[]") }

// Refuse returns an error if choice requires a tool that was left out. own has the tools in the
// request's options.
func (s *Toolset) Refuse(provider string, c llm.ToolChoice, own ...string) error {
	allLeftOut := s.Empty() && len(s.Notices) > 0
	switch {
	case c.Mode == llm.ToolRequired && allLeftOut && len(own) == 0:
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

// EmitNotices emits the notices about tools that are left out, and reports whether the consumer
// wants more.
func (s *Toolset) EmitNotices(yield func(llm.Delta, error) bool) bool {
	for i := range s.Notices {
		if !yield(llm.Delta{Notice: &s.Notices[i]}, nil) {
			return false
		}
	}
	return true
}
