package pawl

// toolset.go: Toolset, Toolsets, Registry, Filter, Prefix, and tools that a run offers on demand.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/panics"
	"github.com/pawl-go/pawl/internal/slots"
	"github.com/pawl-go/pawl/llm"
)

// Toolset supplies tools: a *Tool, a Registry, an MCP server. Tools is called at the start of each
// run; the model sees the tools in its order. It must be safe for concurrent use.
type Toolset interface {
	Tools(ctx context.Context) ([]*Tool, error)
}

// Toolsets joins several toolsets.
type Toolsets []Toolset

// Tools returns the tools of all sets in order. Two tools with the same name are an error.
func (s Toolsets) Tools(ctx context.Context) ([]*Tool, error) {
	all := make([]*Tool, 0, len(s))
	for _, set := range s {
		if t, ok := set.(*Tool); ok && t != nil {
			all = append(all, t) // most sets are one tool, which needs no list
			continue
		}
		tools, err := toolsOf(ctx, set)
		if err != nil {
			return nil, err
		}
		all = append(all, tools...)
	}
	seen := make(map[string]bool, len(all))
	for _, t := range all {
		if seen[t.Name] {
			return nil, advice.New(fmt.Sprintf("two tools are named %q", t.Name), "rename one, or put a Prefix around its toolset")
		}
		seen[t.Name] = true
	}
	return all, nil
}

// toolsOf returns the tools of a set. A nil set, a nil tool in it, and a panic are errors.
func toolsOf(ctx context.Context, set Toolset) (tools []*Tool, err error) {
	if v := reflect.ValueOf(set); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("the entry is nil; remove it, or put a tool or a toolset there")
	}
	defer panics.Recover(fmt.Sprintf("%T.Tools", set), &err)

	tools, err = set.Tools(ctx)
	if err == nil && slices.Contains(tools, nil) {
		return nil, fmt.Errorf("%T returned a nil tool", set)
	}
	return tools, err
}

// Execute executes one call of a tool of the sets outside a run, through the same pipeline. Every
// failure is in the Execution: an unknown name, arguments that do not fit, an error, a panic, an
// error of a set. A call of a passive tool is refused, because it has no caller that could answer.
func (s Toolsets) Execute(ctx context.Context, call llm.ToolCall) Execution {
	const key = "execute"
	tools, err := s.Tools(ctx)
	if err != nil {
		x := Execution{Key: key, Call: call, Outcome: OutcomeError, Error: err.Error(), err: err,
			Result: llm.ErrorResult(err.Error())}
		x.Result.CallID = call.ID
		x.Result.Key = key
		return x
	}
	t := Task{Key: key, Call: call}
	t.scope = &scope{tools: tools, slots: &slots.Semaphore{Free: defaultParallel}}
	return t.Do(ctx, func(Event) {})
}

// Filter returns the tools of set for which keep returns true.
func Filter(set Toolset, keep func(*Tool) bool) Toolset {
	return toolsetFunc(func(ctx context.Context) ([]*Tool, error) {
		tools, err := toolsOf(ctx, set)
		if err == nil && keep == nil {
			return nil, errors.New("Filter has no function; give it one, or remove it")
		}
		return slices.DeleteFunc(slices.Clone(tools), func(t *Tool) bool { return !keep(t) }), err
	})
}

// Prefix returns the tools of set with prefix before their names.
func Prefix(prefix string, set Toolset) Toolset {
	var mu sync.Mutex
	made := map[*Tool]*Tool{} // a tool keeps its compiled schema
	return toolsetFunc(func(ctx context.Context) ([]*Tool, error) {
		tools, err := toolsOf(ctx, set)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()

		// Only the tools of this list are remembered: a set may make new ones each time.
		fresh := make(map[*Tool]*Tool, len(tools))
		out := make([]*Tool, len(tools))
		for i, t := range tools {
			c := made[t]
			if c == nil {
				c = t.Clone()
				c.Name = prefix + t.Name
				run := t.Run
				name := t.Name
				if run != nil {
					// The tool knows itself by its own name.
					c.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
						call.Name = name
						return run(ctx, call)
					}
				}
			}
			fresh[t] = c
			out[i] = c
		}
		made = fresh
		return out, nil
	})
}

type toolsetFunc func(context.Context) ([]*Tool, error)

func (f toolsetFunc) Tools(ctx context.Context) ([]*Tool, error) { return f(ctx) }

// Errors of a Registry.
var (
	ErrDuplicate = errors.New("a tool of that name is there already")
	ErrReserved  = errors.New("the name is reserved")
)

// Registry is a Toolset that can change while runs are active. A run has the tools from the time of
// its start. The zero value is empty and ready. A Registry is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	tools []*Tool
}

var _ Toolset = (*Registry)(nil)

// reserved returns the reason why a tool with effect e cannot have the name. "" means that it can.
// The names of pawl's own records are reserved. The names of composing tools are reserved for them.
func reserved(name string, e Effect) string {
	switch name {
	case "decision_extraction", "decision_validation":
		return "it stands for a decision that could not be read"
	case "execute_plan", "execute_code":
		if e != EffectCompose {
			return "it belongs to a tool with EffectCompose"
		}
	}
	return ""
}

// Add adds tools in order. After an error it has added none: ErrDuplicate for a name that is in
// use, ErrReserved for a name that pawl uses, or the error of Tool.Check.
func (r *Registry) Add(tools ...*Tool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.tools)
	for _, t := range tools {
		if err := t.Check(); err != nil {
			return err
		}
		if why := reserved(t.Name, t.Effect); why != "" {
			return fmt.Errorf("add tool %q: %w: %s", t.Name, ErrReserved, why)
		}
		if find(all, t.Name) != nil {
			return fmt.Errorf("add tool %q: %w; Replace replaces it", t.Name, ErrDuplicate)
		}
		all = append(all, t)
	}
	r.tools = all
	return nil
}

// Replace replaces the tool with the name of t. The error is ErrNotFound if there is none.
func (r *Registry) Replace(t *Tool) error {
	if err := t.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.tools, func(o *Tool) bool { return o.Name == t.Name })
	if i < 0 {
		return fmt.Errorf("replace tool %q: %w", t.Name, ErrNotFound)
	}
	if why := reserved(t.Name, t.Effect); why != "" {
		return fmt.Errorf("replace tool %q: %w: %s", t.Name, ErrReserved, why)
	}
	r.tools = slices.Clone(r.tools)
	r.tools[i] = t
	return nil
}

// Remove removes the tool with that name. It reports whether there was one.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.tools)
	r.tools = slices.DeleteFunc(slices.Clone(r.tools), func(t *Tool) bool { return t.Name == name })
	return len(r.tools) < n
}

// Lookup returns the tool with that name. nil means none.
func (r *Registry) Lookup(name string) *Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return find(r.tools, name)
}

// Tools returns the tools in the order in which they were added.
func (r *Registry) Tools(context.Context) ([]*Tool, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.tools), nil
}

// Execute executes one call outside a run; see Toolsets.Execute.
func (r *Registry) Execute(ctx context.Context, name string, args json.RawMessage) Execution {
	return Toolsets{r}.Execute(ctx, llm.ToolCall{ID: "call_0", Name: name, Args: args})
}

func find(tools []*Tool, name string) *Tool {
	for _, t := range tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func names(tools []*Tool) string {
	var out []string
	for _, t := range tools {
		if !t.Deferred {
			out = append(out, t.Name)
		}
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// toolSearch is the name of the tool that finds deferred tools; see package tools/find.
const toolSearch = "tool_search"

// found is the Data in a result of tool_search.
type found struct {
	Found []string `json:"found"`
}

// deferred tracks which deferred tools the model has seen. It depends only on the conversation, so
// that a resumed run offers the same tools.
type deferred struct {
	waiting map[string]*Tool
	offered []*Tool
	seen    int             // messages
	edited  int             // llm.Request.Edited: the messages before the last tool was offered
	search  map[string]bool // calls of tool_search in the last reply
}

// newDeferred returns nil if no tool is deferred, or if tool_search is missing.
func newDeferred(tools []*Tool, choice llm.ToolChoice) *deferred {
	if !slices.ContainsFunc(tools, func(t *Tool) bool { return t.Deferred }) || find(tools, toolSearch) == nil {
		return nil
	}
	l := &deferred{waiting: map[string]*Tool{}, search: map[string]bool{}}
	for _, t := range tools {
		if t.Deferred && !slices.Contains(choice.Names, t.Name) {
			l.waiting[t.Name] = t
		} else {
			l.offered = append(l.offered, t)
		}
	}
	return l
}

// tools returns the tools for a request with the conversation msgs. Tools of earlier requests come
// first, in the same order.
func (l *deferred) tools(msgs []llm.Message) []*Tool {
	for ; l.seen < len(msgs); l.seen++ {
		for _, p := range msgs[l.seen].Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if p.Name == toolSearch {
					l.search[p.ID] = true
				}
				l.offer(p.Name)
			case llm.ToolResult:
				var f found
				if l.search[p.CallID] && !p.IsError && json.Unmarshal(p.Data, &f) == nil {
					for _, name := range f.Found {
						l.offer(name)
					}
				}
			}
		}
		if msgs[l.seen].Role == llm.RoleTool {
			clear(l.search)
		}
	}
	return l.offered
}

func (l *deferred) offer(name string) {
	if t := l.waiting[name]; t != nil {
		delete(l.waiting, name)
		l.offered = append(slices.Clip(l.offered), t) // earlier requests keep their slice
		l.edited = l.seen + 1
	}
}
