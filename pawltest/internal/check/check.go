// Package check finds the faults in the history of a request's body: the pairing and order of calls
// and results, the shape of tools and tool choice, and what each API demands beyond that. It shares
// no code with the adapters or with pawl's decoding, so that it detects their mistakes.
package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Violation is a fault of a request.
type Violation struct {
	Place string // JSON pointer to the fault
	Text  string // the fault, in a sentence
}

// Body returns the faults in the body of a request to model, which a body need not name. Package
// pawltest documents the rules, at Check.
func Body(api, model string, body []byte) []Violation {
	c := &checker{signed: seal.Demanded(model)}
	dec := json.NewDecoder(bytes.NewReader(body))
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		c.add("", "the body is no JSON object: %v", err)
		return c.found
	}
	if dec.More() {
		c.add("", "something follows the JSON object")
	}
	switch api {
	case wire.Chat:
		c.chat(root)
	case wire.Responses:
		c.responses(root)
	case wire.Anthropic:
		c.anthropic(root)
	case wire.Gemini:
		c.gemini(root)
	default:
		c.add("", "unknown API %q; known: %s", api, strings.Join(wire.APIs(), ", "))
	}
	return c.found
}

// checker collects violations, and follows the open calls of the current reply.
type checker struct {
	found    []Violation
	open     []openCall // calls of the last reply, with or without a result
	answered bool       // a result of the last reply was seen
	before   bool       // the start of the history is not in the body
	later    bool       // the history also contains tools
	signed   bool       // Gemini: the model requires signatures
}

type openCall struct {
	id, place string
	results   int
	code      string // the id of the code that made the call; "" means the model itself
}

func (c *checker) add(place, format string, args ...any) {
	c.found = append(c.found, Violation{place, fmt.Sprintf(format, args...)})
}

// call records a call of the current reply.
func (c *checker) call(id, place string) {
	if slices.ContainsFunc(c.open, func(o openCall) bool { return o.id == id }) {
		c.add(place, "another call of this reply has the id %q", id)
		return
	}
	c.open = append(c.open, openCall{id: id, place: place})
}

// result records a result.
func (c *checker) result(id, place string) {
	c.answered = true
	for i := range c.open {
		if o := &c.open[i]; o.id == id {
			o.results++
			if o.results == 2 {
				c.add(place, "the call %q is answered a second time", id)
			}
			return
		}
	}
	if !c.before {
		c.add(place, "a result for %q, but no call of the reply before it has that id", id)
	}
}

// settle ends the current reply: every call must have its result at this point.
func (c *checker) settle(next string) {
	for _, o := range c.open {
		if o.results == 0 {
			c.add(o.place, "the call %q has no result before %s", o.id, next)
		}
	}
	c.open = nil
	c.answered = false
}

// tools checks tool definitions and returns their names. In Chat a function is nested under
// "function"; in Responses it is flat.
func (c *checker) tools(root map[string]any, nested bool) []string {
	v, ok := root["tools"]
	if !ok || v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		c.add("/tools", "want a list")
		return nil
	}
	if len(list) == 0 && nested {
		c.add("/tools", "the list is empty; leave it out")
	}
	var names []string
	for i, v := range list {
		place := fmt.Sprintf("/tools/%d", i)
		tool, ok := v.(map[string]any)
		if !ok {
			c.add(place, "want an object")
			continue
		}
		kind, _ := tool["type"].(string)
		switch kind {
		case "":
			c.add(place+"/type", "a tool needs a type")
			continue
		case "function", "custom":
		default:
			continue // hosted by the provider
		}
		def := c.nesting(tool, kind, place, nested)
		if def == nil {
			continue
		}
		name, _ := def["name"].(string)
		if name == "" {
			c.add(place, "a tool needs a name")
			continue
		}
		if slices.Contains(names, name) {
			c.add(place, "another tool is named %q", name)
		}
		names = append(names, name)
		if p, ok := def["parameters"]; ok && p != nil {
			if _, ok := p.(map[string]any); !ok {
				c.add(place+"/parameters", "want a JSON Schema object, got %s", kindOf(p))
			}
		}
	}
	return names
}

// nesting returns the object with a function's name: v[kind] if nested, otherwise v. For the other
// API's shape it reports a violation and returns nil.
func (c *checker) nesting(v map[string]any, kind, place string, nested bool) map[string]any {
	inner, has := v[kind].(map[string]any)
	switch {
	case nested && !has:
		c.add(place, "this API wants the definition under %q", kind)
		return nil
	case !nested && has:
		c.add(place+"/"+kind, "this API wants the definition flat, not under %q", kind)
		return nil
	case nested:
		return inner
	}
	return v
}

// choice checks tool_choice against the names of the tools.
func (c *checker) choice(root map[string]any, names []string, nested bool) {
	v, ok := root["tool_choice"]
	if !ok || v == nil {
		return
	}
	list, _ := root["tools"].([]any)
	if len(list) == 0 && !c.before && !c.later {
		c.add("/tool_choice", "a tool choice without tools")
		return
	}
	switch v := v.(type) {
	case string:
		if !slices.Contains([]string{"auto", "none", "required"}, v) {
			c.add("/tool_choice", "unknown choice %q", v)
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		switch kind {
		case "function", "custom":
			if def := c.nesting(v, kind, "/tool_choice", nested); def != nil {
				c.offered(def, "/tool_choice", names)
			}
		case "allowed_tools":
			set := v
			place := "/tool_choice"
			if nested {
				set, _ = v["allowed_tools"].(map[string]any)
				place += "/allowed_tools"
			}
			if mode, _ := set["mode"].(string); mode != "auto" && mode != "required" {
				c.add(place+"/mode", "want auto or required")
			}
			tools, _ := set["tools"].([]any)
			if len(tools) == 0 {
				c.add(place+"/tools", "no tool is allowed")
			}
			for i, t := range tools {
				t, _ := t.(map[string]any)
				p := fmt.Sprintf("%s/tools/%d", place, i)
				if kind, _ := t["type"].(string); kind == "function" {
					if def := c.nesting(t, kind, p, nested); def != nil {
						c.offered(def, p, names)
					}
				}
			}
		case "":
			c.add("/tool_choice/type", "a tool choice needs a type")
		}
	default:
		c.add("/tool_choice", "want a string or an object, got %s", kindOf(v))
	}
}

func (c *checker) offered(def map[string]any, place string, names []string) {
	if name, _ := def["name"].(string); !slices.Contains(names, name) {
		c.add(place, "the tool %q is not among the tools", name)
	}
}

// kindOf names the JSON type of v.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}
