package agentfile

// secrets.go: which values no output may show, by the name of their variable or key.

import (
	"slices"
	"strings"
)

// secret is the value of a variable that no output may show.
type secret struct{ name, value string }

// modelReads reports whether the text of a field is sent to the model.
func modelReads(path string) bool {
	field := path[strings.LastIndexByte(path, '.')+1:]
	return field == "instructions" || field == "description"
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
