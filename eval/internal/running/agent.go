package running

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/eval/internal/suite"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
)

// agent.go: builds the agent of a variant in a world, and finds what could leak from it.

// carrier is how requests to models are sent.
type carrier struct {
	transport http.RoundTripper // nil means the default
	offline   bool              // the transport answers by itself
}

// inWorld reads the agent of a variant, with its root, its database and its limits as the case and
// the world have them.
func inWorld(v *suite.Variant, c *suite.LoadedCase, w *World) (*agentfile.Agent, error) {
	a, err := v.Agent()
	if err != nil {
		return nil, err
	}
	set := func(path string) { a.Override(path) }
	a.Root = w.Root
	set("root")
	a.Store.DB = w.DB
	set("store.db")
	a.Checkpoints = false // their copies are kept in the home of the user
	a.Schedules = nil
	lower(&a.Limits, &c.Bounds)
	return a, nil
}

// lower sets each limit of into that is higher than the one of from, or not stated.
func lower(into, from *agentfile.Limits) {
	to := reflect.ValueOf(into).Elem()
	of := reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		stated := of.Field(i)
		switch {
		case stated.IsZero():
		case stated.Kind() != reflect.Pointer, to.Field(i).IsNil():
			to.Field(i).Set(stated)
		case isLess(stated.Elem(), to.Field(i).Elem()):
			to.Field(i).Set(stated)
		}
	}
}

func isLess(a, b reflect.Value) bool {
	if a.CanInt() {
		return a.Int() < b.Int()
	}
	return a.Float() < b.Float()
}

// options are the options of a build in a world.
func options(w *World, getenv func(string) string, by carrier) *agentfile.Options {
	env := func(name string) string {
		if value, has := w.where.Env[name]; has {
			return value
		}
		return getenv(name)
	}
	return &agentfile.Options{Getenv: env, HTTP: by.transport, Offline: by.offline}
}

// Leaks returns the tools of a variant that could change something outside of the world of a case,
// each with what would be right. It asks no server and starts no program.
func Leaks(ctx context.Context, v *suite.Variant, c *suite.LoadedCase, getenv func(string) string) ([]string, error) {
	w, err := NewWorld(&c.Where)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	a, err := inWorld(v, c, w)
	if err != nil {
		return nil, err
	}
	o := options(w, getenv, carrier{})
	o.Dry = true

	sets, _, closeSets, err := a.Toolsets(ctx, o)
	if err != nil {
		return nil, err
	}
	defer closeSets()
	var leaks []string
	for _, set := range sets {
		if isInWorld(a, set.Name) {
			continue
		}
		more, err := leaksOf(ctx, set, &c.Where)
		if err != nil {
			return nil, err
		}
		leaks = append(leaks, more...)
	}

	// The tools of workers act where the files of the workers say.
	built, err := a.Build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer built.Close()
	for _, t := range built.Within {
		if changes(t) && !slices.Contains(c.Where.Real, t.Name) {
			leaks = append(leaks, t.Name)
		}
	}
	slices.Sort(leaks)
	return slices.Compact(leaks), nil
}

// isInWorld reports whether all tools of a set act within the root and the database of the agent.
func isInWorld(a *agentfile.Agent, set string) bool {
	switch set {
	case "http", "search":
		return false
	case "shell", "code":
		return a.Sandbox != "none" && len(a.SandboxHosts) == 0
	}
	return slices.Contains(agentfile.SetNames(), set)
}

// changes reports whether a tool may change the world.
func changes(t *pawl.Tool) bool {
	switch t.Effect.Assumed() {
	case pawl.EffectWrite, pawl.EffectIdempotent:
		return true
	}
	return false
}

// leaksOf returns the tools of a set that change something, without a fake. The tools of an MCP
// server that was not asked are unknown.
func leaksOf(ctx context.Context, set agentfile.Set, where *suite.Where) (leaks []string, err error) {
	if slices.Contains(where.Real, set.Name) {
		return nil, nil
	}
	tools, err := set.Tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	isServer := strings.HasPrefix(set.Name, "mcp:")
	if isServer && len(tools) == 0 {
		return []string{set.Name}, nil
	}
	for _, t := range tools {
		isSafe := where.Fakes[t.Name] != nil || slices.Contains(where.Real, t.Name)
		if !isSafe && (changes(t) || isServer) {
			leaks = append(leaks, t.Name)
		}
	}
	return leaks, nil
}

// Tool is a tool of a variant.
type Tool struct {
	// Name is the name of the tool.
	Name string

	// Effect is what it may do, by the words of pawl.Effect.
	Effect string

	// InWorld is true for a tool that works on the root and the database of the agent alone.
	InWorld bool
}

// Tools returns the tools of a variant that its model calls, without asking a server. The tools of
// MCP servers are not among them.
func Tools(ctx context.Context, v *suite.Variant, getenv func(string) string) (all []Tool, err error) {
	a, err := v.Agent()
	if err != nil {
		return nil, err
	}
	o := &agentfile.Options{Getenv: getenv, Dry: true}
	sets, _, closeSets, err := a.Toolsets(ctx, o)
	if err != nil {
		return nil, err
	}
	defer closeSets()
	inWorld := map[string]bool{}
	for _, set := range sets {
		tools, err := set.Tools.Tools(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			inWorld[t.Name] = isInWorld(a, set.Name)
		}
	}

	// The agent has more tools than its sets: its workers, plans and programs.
	built, err := a.Build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer built.Close()
	for _, t := range built.Tools {
		all = append(all, Tool{t.Name, t.Effect.Assumed().String(), inWorld[t.Name]})
	}
	return all, nil
}

// ToolNames returns the names of the tools of a variant, without asking a server. all is false if
// there may be others.
func ToolNames(ctx context.Context, v *suite.Variant,
	getenv func(string) string) (names []string, all bool, err error) {
	a, err := v.Agent()
	if err != nil {
		return nil, false, err
	}
	built, err := a.Build(ctx, &agentfile.Options{Getenv: getenv, Dry: true})
	if err != nil {
		return nil, false, err
	}
	defer built.Close()
	for _, t := range slices.Concat(built.Tools, built.Within) {
		names = append(names, t.Name)
	}
	return names, len(a.Servers) == 0, nil
}

// faked are tools of which some are answered by a world. Their declarations, checks and approvals
// stay, and only what runs is replaced.
type faked struct {
	inner pawl.Toolset
	world *World

	mu     sync.Mutex
	copies map[*pawl.Tool]*pawl.Tool // so that a tool is the same in each request
}

var _ pawl.Toolset = (*faked)(nil)

// Tools returns the tools.
func (f *faked) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	tools, err := f.inner.Tools(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(tools)
	for i, t := range out {
		if f.world.where.Fakes[t.Name] != nil {
			out[i] = f.copy(t)
		}
	}
	return out, nil
}

func (f *faked) copy(t *pawl.Tool) *pawl.Tool {
	if known := f.copies[t]; known != nil {
		return known
	}
	fake := t.Clone()
	fake.Reconcile = nil
	fake.Run = func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		return f.world.answer(call), nil
	}
	f.copies[t] = fake
	return fake
}

// build builds the agent of a variant in a world.
func build(ctx context.Context, v *suite.Variant, c *suite.LoadedCase, w *World, getenv func(string) string,
	by carrier) (*agentfile.Built, error) {
	a, err := inWorld(v, c, w)
	if err != nil {
		return nil, err
	}
	built, err := a.Build(ctx, options(w, getenv, by))
	if err != nil {
		return nil, err
	}

	if len(c.Where.Fakes) > 0 {
		for i, set := range built.Agent.Tools {
			built.Agent.Tools[i] = &faked{inner: set, world: w, copies: map[*pawl.Tool]*pawl.Tool{}}
		}
	}
	functions := functionsOf(w)
	for _, t := range functions {
		built.Agent.Tools = append(built.Agent.Tools, t)
	}
	for name := range c.Where.Fakes {
		has := func(t *pawl.Tool) bool { return t.Name == name }
		if !slices.ContainsFunc(built.Tools, has) && !slices.ContainsFunc(functions, has) {
			built.Close()
			return nil, fmt.Errorf("world.tools: the agent has no tool %s", name)
		}
	}
	return built, nil
}

// functionsOf returns the tools that exist in a world alone.
func functionsOf(w *World) (tools []*pawl.Tool) {
	for _, f := range w.where.Functions {
		t := &pawl.Tool{
			Name:        f.Name,
			Description: f.Description,
			Input:       json.RawMessage(f.Input),
			Effect:      pawl.EffectWrite,
			Run: func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				return w.answer(call), nil
			},
		}
		if f.Effect == "read" {
			t.Effect = pawl.EffectRead
		}
		tools = append(tools, t)
	}
	return tools
}
