package pawl

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// echoes reports whether text, fences stripped, is wholly JSON and equal to the arguments of a call of m, or to a wrapper
// {name, arguments} around them. Prose is never an echo.
func echoes(text string, m llm.Message) bool {
	if !m.HasCalls() {
		return false
	}
	b := []byte(unfenced(text))
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	got := canonicalObject(b)
	if got == nil {
		return false
	}
	var wrap struct {
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
		Args       json.RawMessage `json:"args"`
	}
	_ = json.Unmarshal(b, &wrap) // no wrapper leaves it empty
	var inner []byte
	for _, a := range []json.RawMessage{wrap.Arguments, wrap.Parameters, wrap.Args} {
		if a == nil {
			continue
		}
		var s string
		if json.Unmarshal(a, &s) == nil {
			a = json.RawMessage(s) // arguments as a string, as some servers echo them
		}
		inner = canonicalObject(a)
		break
	}
	for _, p := range m.Parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args := canonicalObject(c.Args)
		if args == nil && len(bytes.TrimSpace(c.Args)) == 0 {
			args = []byte("{}")
		}
		if args != nil && (bytes.Equal(got, args) || inner != nil && wrap.Name == c.Name && bytes.Equal(inner, args)) {
			return true
		}
	}
	return false
}

// canonicalObject returns the canonical form of b when it is wholly one JSON object, else nil.
func canonicalObject(b []byte) []byte {
	if !json.Valid(b) {
		return nil
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return nil
	}
	return jsonform.Canonical(b)
}

// unfenced strips one ``` fence around the whole of s.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	rest, ok = strings.CutSuffix(rest, "```")
	if !ok {
		return s
	}
	if i := strings.IndexByte(rest, '\n'); i >= 0 && !strings.ContainsAny(rest[:i], "{[") {
		rest = rest[i+1:] // the language of the fence
	}
	return strings.TrimSpace(rest)
}
