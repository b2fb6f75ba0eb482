// Package agentname reads the names of agents. NAME@VERSION is a version of the agent NAME, and
// NAME/PART is a part of it. Versions of an agent continue each other's runs.
package agentname

import "strings"

// Split returns the name of an agent without its version, and the version. "" means that the name
// has none.
func Split(agent string) (name, version string) {
	name, version, _ = strings.Cut(agent, "@")
	return name, version
}

// Same reports whether two names are of one agent, in any version.
func Same(a, b string) bool {
	first, _ := Split(a)
	second, _ := Split(b)
	return first == second
}

// Belongs reports whether agent is the agent called name, a version of it, or a part of it.
func Belongs(agent, name string) bool {
	rest, found := strings.CutPrefix(agent, name)
	return found && (rest == "" || rest[0] == '@' || rest[0] == '/')
}
