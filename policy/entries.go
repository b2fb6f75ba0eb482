package policy

// entries.go: the entries of lists of tools: names, patterns, effects and servers.

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/nearest"
)

// The beginnings of entries that are no names.
const (
	effect = "effect:"
	server = "mcp:"
)

// matches reports whether entry is about t.
func matches(entry string, t *pawl.Tool) bool {
	if e, ok := strings.CutPrefix(entry, effect); ok {
		return t.Effect.String() == e || t.Effect.Assumed().String() == e
	}
	if name, ok := strings.CutPrefix(entry, server); ok {
		return name != "" && t.Server == name
	}
	ok, _ := path.Match(entry, t.Name)
	return ok
}

// matchesAny reports whether one of entries is about t; nil is about every tool.
func matchesAny(entries []string, t *pawl.Tool) bool {
	return entries == nil || slices.ContainsFunc(entries, func(e string) bool { return matches(e, t) })
}

// isName reports whether entry is a tool's name, and not a pattern, an effect or a server.
func isName(entry string) bool {
	if strings.HasPrefix(entry, effect) || strings.HasPrefix(entry, server) {
		return false
	}
	return !strings.ContainsAny(entry, `*?[\`)
}

// checkEntries reports the first entry that can be about none of tools. policy is the name of the
// policy in errors.
func checkEntries(policy string, entries []string, tools []*pawl.Tool) error {
	for _, e := range entries {
		if err := checkEntry(e, tools); err != nil {
			return fmt.Errorf("%s: %w", policy, err)
		}
	}
	return nil
}

// number is a field of a policy that must not be negative.
type number struct {
	field string
	value int64
}

// notNegative reports the first number that is negative. policy is the name of the policy in
// errors.
func notNegative(policy string, numbers ...number) error {
	for _, n := range numbers {
		if n.value < 0 {
			return fmt.Errorf("%s: %s is negative; 0 means the default", policy, n.field)
		}
	}
	return nil
}

// checkEntry reports an entry that can be about none of tools.
func checkEntry(entry string, tools []*pawl.Tool) error {
	if strings.Contains(entry, "(") {
		return fmt.Errorf("%q: only approval rules have conditions on arguments", entry)
	}
	if name, ok := strings.CutPrefix(entry, effect); ok {
		return new(pawl.Effect).UnmarshalText([]byte(name))
	}
	if entry == server {
		return advice.New(fmt.Sprintf("%q names no server", entry), "want mcp:NAME")
	}
	if isName(entry) {
		return checkName(entry, tools)
	}

	// A pattern may match no tool: the same rules serve agents with different tools.
	if _, err := path.Match(entry, ""); err != nil {
		return fmt.Errorf("%q is no pattern: %w", entry, err)
	}
	return nil
}

// checkName reports that no tool has this name.
func checkName(name string, tools []*pawl.Tool) error {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
		if t.Name == name {
			return nil
		}
	}

	hint := "there are: " + strings.Join(all, ", ")
	if len(all) == 0 {
		hint = "the agent has no tools"
	} else if near := nearest.Word(name, all); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return advice.New(fmt.Sprintf("no tool is named %q", name), hint)
}

// calledTool returns the tool of the call of v if one of entries is about it; otherwise nil.
func calledTool(v *pawl.Invocation, entries []string) *pawl.Tool {
	if v == nil || !matchesAny(entries, v.Tool()) {
		return nil
	}
	return v.Tool()
}
