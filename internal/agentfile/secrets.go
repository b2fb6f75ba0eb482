package agentfile

// secrets.go: which values no output may show, by the name of their variable or key.

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secret is the value of a variable that no output may show.
type secret struct{ name, value string }

// modelKeys are the keys of texts that models read, at any depth.
var modelKeys = []string{
	"instructions", "description", "title", "prompt", "prompts", "rules", "text", "input", "output",
	"system_prompt", "planning_prompt",
}

// modelReads reports whether the text at a path is sent to a model.
func modelReads(path string) bool {
	if strings.HasPrefix(path, "schedules[") && strings.Contains(path, ".args") {
		return true
	}
	if strings.HasPrefix(path, "mcp_servers.") { // its prompts and resources are switches
		return false
	}
	for key := range strings.SplitSeq(path, ".") {
		key, _, _ = strings.Cut(key, "[")
		if slices.Contains(modelKeys, key) {
			return true
		}
	}
	return false
}

// declared returns the names of variables that a document says models may read. It is read before
// the other keys, which may stand above it.
func declared(root *yaml.Node) (names []string) {
	if root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		list := real(root.Content[i+1])
		if root.Content[i].Value != "variables" || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, n := range list.Content {
			names = append(names, real(n).Value)
		}
	}
	return names
}

// secretWords are parts of the names of secrets.
var secretWords = []string{
	"key", "token", "secret", "password", "passwd", "credential", "authorization", "auth_header", "cookie",
}

// keyLike reports whether a field or variable of this name holds a secret.
func keyLike(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// handedOn reports whether the value at a path goes to an MCP server and must be hidden.
func handedOn(path string) bool {
	if !strings.HasPrefix(path, "mcp_servers.") {
		return false
	}
	return strings.Contains(path, ".headers.") || strings.Contains(path, ".env[")
}
