// Package wire has what the parts of the simulated providers share: the names of the APIs, the JSON
// that they exchange, the forms of names, and the errors.
//
//	         ┌▶ reply ─▶ summaries
//	pawltest ┼▶ read ──▶ seal ─▶ wire
//	         └▶ check ─▶
package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The names of the APIs, as package pawltest exports them.
const (
	Chat      = "openai-chat"
	Responses = "openai-responses"
	Anthropic = "anthropic-messages"
	Gemini    = "gemini"
)

// APIs returns the names of the APIs.
func APIs() []string { return []string{Chat, Responses, Anthropic, Gemini} }

// Object is a JSON object to write. Its keys are sorted in the output.
type Object = map[string]any

// Marshal writes JSON as OpenAI does, without escaping <, > and &.
func Marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("pawltest: %v", err)) // we only write maps, strings and numbers
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// IsObject reports whether s is a JSON object.
func IsObject(s string) bool {
	return strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s))
}

// NameForm is the form of a name. A pattern with a large count takes long to compile, which every
// program that imports package pawltest would do at its start.
type NameForm struct {
	Pattern *regexp.Regexp
	Longest int // in bytes
}

// Fits reports whether s has the form.
func (n NameForm) Fits(s string) bool { return len(s) <= n.Longest && n.Pattern.MatchString(s) }
