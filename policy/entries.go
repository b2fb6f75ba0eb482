package policy

// entries.go: the entries of lists of tools: names, patterns, effects and servers.

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
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
		return t.Effect.String() == e
	}
	if name, ok := strings.CutPrefix(entry, server); ok {
		return name != "" && t.Server == name
	}
	ok, _ := path.Match(entry, t.Name)
	return ok
}

// about reports whether one of entries is about t; nil is about every tool.
func about(entries []string, t *pawl.Tool) bool {
	return entries == nil || slices.ContainsFunc(entries, func(e string) bool { return matches(e, t) })
}

// plain reports whether entry is a tool's name, and not a pattern, an effect or a server.
func plain(entry string) bool {
	return !strings.HasPrefix(entry, effect) && !strings.HasPrefix(entry, server) && !strings.ContainsAny(entry, `*?[\`)
}

// check reports an entry that can be about nothing.
func check(who string, entries []string, tools []*pawl.Tool) error {
	for _, e := range entries {
		var known pawl.Effect
		name, isEffect := strings.CutPrefix(e, effect)
		switch {
		case strings.Contains(e, "("):
			return fmt.Errorf("%s: %q: only approval rules have conditions on arguments", who, e)
		case isEffect:
			if err := known.UnmarshalText([]byte(name)); err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		case e == server:
			return fmt.Errorf("%s: %q names no server; want mcp:NAME", who, e)
		case plain(e):
			if err := named(who, e, tools); err != nil {
				return err
			}
		default:
			if _, err := path.Match(e, ""); err != nil {
				return fmt.Errorf("%s: %q is no pattern: %w", who, e, err)
			}
		}
	}
	return nil
}

func named(who, name string, tools []*pawl.Tool) error {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
		if t.Name == name {
			return nil
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: no tool is named %q; the agent has no tools", who, name)
	}
	if near := nearest.Word(name, all); near != "" {
		return fmt.Errorf("%s: no tool is named %q; did you mean %q?", who, name, near)
	}
	return fmt.Errorf("%s: no tool is named %q; there are: %s", who, name, strings.Join(all, ", "))
}

// called returns the tool of the call of v if one of entries matches it; otherwise nil.
func called(v *pawl.Invocation, entries []string) *pawl.Tool {
	if v == nil || !about(entries, v.Tool()) {
		return nil
	}
	return v.Tool()
}
