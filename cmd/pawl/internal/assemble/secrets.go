package assemble

import (
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/tools/search"
)

// minKey is how long a key is at least that is hidden: what people set for servers that want none
// ("none", "ollama") is an ordinary word, and no provider's keys are so short.
const minKey = 8

// Secrets returns a redactor for the keys of all providers and search services, for others (the
// value of --key-env, headers of --tool-file), and for arguments that tools mark as secret.
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

// addKeys hides those that are long enough to be keys.
func addKeys(r *redact.Redactor, keys []string) {
	for _, key := range keys {
		if len(key) >= minKey {
			_ = r.Add(key) // it is long enough
		}
	}
}
