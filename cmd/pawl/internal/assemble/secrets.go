package assemble

import (
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/tools/search"
)

// minKey is the minimum length of a key that is hidden. Shorter values, such as "none" or "ollama"
// for a server without keys, are ordinary words.
const minKey = 8

// Secrets returns a redactor for the keys of all providers and search services, for others, such as
// the value of --key-env and headers of --tool-file, and for arguments that tools mark as secret.
func Secrets(env func(string) string, tools []*pawl.Tool, others ...string) *redact.Redactor {
	r := new(redact.Redactor)
	r.AddTools(tools...)
	keys := others
	for _, name := range append(provider.KeyVariables(), search.KeyVariables()...) {
		keys = append(keys, strings.TrimSpace(env(name)))
	}
	addKeys(r, keys)
	return r
}

// addKeys adds the keys that are long enough.
func addKeys(r *redact.Redactor, keys []string) {
	for _, key := range keys {
		if len(key) >= minKey {
			_ = r.Add(key) // the length is checked
		}
	}
}
