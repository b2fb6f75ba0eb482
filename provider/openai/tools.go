package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

// toolset is the wire form of the tools of a request: the array of their definitions, encoded once, and their names.
type toolset struct {
	tools []*pawl.Tool
	body  []byte            // "[{…},{…}]"
	wire  map[string]string // what a tool is called on the wire; only names that differ
	back  map[string]string // the other way round
	names map[string]bool   // what is offered, by wire name; nil: not known
}

// noTools is the toolset of requests without tools, and of decoding without a request.
var noTools = new(toolset)

// offered reports whether name may be called. Without tools everything may be: the pipeline knows what to say.
func (s *toolset) offered(name string) bool { return s.names == nil || s.names[name] }

// toWire returns the wire form of a tool's name. A tool of an old message may be offered no more; its name is mapped too.
func (s *toolset) toWire(name string) string {
	if w, ok := s.wire[name]; ok {
		return w
	}
	if fits(name) {
		return name
	}
	return fitted(name)
}

// fromWire returns the name that the agent knows.
func (s *toolset) fromWire(name string) string {
	if n, ok := s.back[name]; ok {
		return n
	}
	return name
}

// fits reports whether a name is accepted as it is by all providers: [A-Za-z][A-Za-z0-9_]{0,63}.
func fits(name string) bool {
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
	sum := strconv.FormatUint(hash(name)%(36*36*36*36*36*36), 36)
	return string(b[:min(len(b), 64-1-len(sum))]) + "_" + sum
}

// toolCache keeps the toolsets that a Model met last. Runs of one agent share one; tools must not change after their
// first use, so pointers tell sets apart.
type toolCache struct {
	mu   sync.RWMutex
	sets [16]*toolset
	next int
}

func (c *toolCache) get(d *dialect, tools []*pawl.Tool) (*toolset, error) {
	if len(tools) == 0 {
		return noTools, nil
	}
	c.mu.RLock()
	for _, s := range c.sets {
		if s != nil && slices.Equal(s.tools, tools) {
			c.mu.RUnlock()
			return s, nil
		}
	}
	c.mu.RUnlock()
	s, err := newToolset(d, tools)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.sets[c.next] = s
	c.next = (c.next + 1) % len(c.sets)
	c.mu.Unlock()
	return s, nil
}

func newToolset(d *dialect, tools []*pawl.Tool) (*toolset, error) {
	s := &toolset{tools: slices.Clone(tools), body: []byte{'['}, names: map[string]bool{}}
	for i, t := range tools {
		name := t.Name
		if !fits(name) {
			name = fitted(name)
			if s.wire == nil {
				s.wire, s.back = map[string]string{}, map[string]string{}
			}
			s.wire[t.Name], s.back[name] = name, t.Name
		}
		if s.names[name] {
			return nil, d.invalid("tools", "two tools are named %q", t.Name)
		}
		s.names[name] = true
		schema, err := fromSchema(t.Input)
		if err != nil {
			return nil, d.invalid("tools", "%s: input: %v", t.Name, err)
		}
		if i > 0 {
			s.body = append(s.body, ',')
		}
		s.body = d.fromTool(s.body, name, t, schema)
	}
	s.body = append(s.body, ']')
	return s, nil
}

// fromSchema returns the schema on one line, with the properties that OpenAI asks of every object of arguments.
func fromSchema(schema json.RawMessage) ([]byte, error) {
	if len(schema) == 0 {
		return []byte(`{"type":"object","properties":{}}`), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, schema); err != nil {
		return nil, err
	}
	out := b.Bytes()
	c := jsonscan.New(out)
	members := 0
	if !c.Object() {
		return out, nil
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		members++
		switch string(k) {
		case "properties", "$ref":
			return out, nil
		}
	}
	out = out[:len(out)-1]
	if members > 0 {
		out = append(out, ',')
	}
	return append(out, `"properties":{}}`...), nil
}
