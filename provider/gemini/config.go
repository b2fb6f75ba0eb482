package gemini

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// options are the members of the body in the request's options. They are copied unchanged. Three
// of them are merged with the adapter's own members, so that an option for safety settings does
// not replace the temperature.
type options struct {
	tools      []byte   // elements of an array: built-in tools
	toolConfig inside   // an object
	generation inside   // an object: generationConfig
	rest       []byte   // an object with the other members; nil means none
	keys       []string // of rest
}

// inside is the content of an object: its members unchanged, and their names.
type inside struct {
	members []byte
	keys    []string
}

func (o *inside) has(name string) bool {
	return slices.Contains(o.keys, name)
}

func readOptions(raw []byte) (options, error) {
	var o options
	if len(raw) == 0 {
		return o, nil
	}
	if !jsonscan.IsObject(raw) {
		return o, invalid("settings.options."+provider, "not a JSON object")
	}
	var rest []byte
	c := jsonscan.New(raw)
	for k := range c.Members() {
		key := string(k)
		value := c.Raw()
		kind := jsonscan.Kind(value[0])
		// Only a member of the expected type is merged. Others go into the body unchanged, so that
		// the API reports the mistake.
		switch {
		case key == "tools" && kind == jsonscan.Array:
			o.tools = trim(value)
		case key == "toolConfig" && kind == jsonscan.Object:
			o.toolConfig = readInside(value)
		case key == "generationConfig" && kind == jsonscan.Object:
			o.generation = readInside(value)
		default:
			rest = wire.AppendMember(rest, key, value)
			o.keys = append(o.keys, key)
		}
	}
	if rest != nil {
		o.rest = append(rest, '}')
	}
	return o, nil
}

func readInside(object []byte) inside {
	in := inside{members: trim(object)}
	c := jsonscan.New(object)
	for k := range c.Members() {
		in.keys = append(in.keys, string(k))
	}
	return in
}

// trim returns the content of a value without its brackets; nil means none.
func trim(value []byte) []byte {
	value = bytes.TrimSpace(value)
	if len(value) < 2 {
		return nil
	}
	return bytes.TrimSpace(value[1 : len(value)-1])
}

// fromTools writes the tools and the tool choice.
func fromTools(e *encoder, req *llm.Request) {
	offered := !e.tools.Empty()
	if (offered || len(e.opts.tools) > 0) && e.Key("tools") {
		e.Raw("[")
		if offered {
			e.Raw(`{"functionDeclarations":`)
			e.Body = append(e.Body, e.tools.Body...)
			e.Raw("}")
		}
		if len(e.opts.tools) > 0 {
			e.Comma()
			e.Body = append(e.Body, e.opts.tools...)
		}
		e.Raw("]")
	}
	// A program that configures function calling itself knows modes that llm.ToolChoice does not
	// have.
	own := offered && !e.opts.toolConfig.has("functionCallingConfig")
	if (own || len(e.opts.toolConfig.members) > 0) && e.Key("toolConfig") {
		e.Raw("{")
		if own {
			e.Raw(`"functionCallingConfig":`)
			fromChoice(e, req.Choice)
		}
		e.join(e.opts.toolConfig)
		e.Raw("}")
	}
	if p := req.Settings.Parallel; p != nil && !*p && offered {
		e.Fail(unsupported("settings.parallel_calls", "Gemini cannot limit the model to one call at a time"))
	}
}

// join appends the members of the options to the current object.
func (e *encoder) join(in inside) {
	if len(in.members) > 0 {
		e.Comma()
		e.Body = append(e.Body, in.members...)
	}
}

// fromSettings writes generationConfig, unless it is empty.
func fromSettings(e *encoder, req *llm.Request) {
	s := &req.Settings
	own := e.opts.generation
	if e.Has("generationConfig") {
		return // an option that is not an object: the API reports the error
	}
	start := len(e.Body)
	e.Key("generationConfig")
	e.Raw("{")
	empty := len(e.Body)
	key := func(name string) bool {
		if own.has(name) {
			return false
		}
		e.Comma()
		e.Raw(`"` + name + `":`)
		return true
	}
	if s.MaxTokens > 0 && key("maxOutputTokens") {
		e.Int(s.MaxTokens)
	}
	if s.Temperature != nil && key("temperature") {
		e.Float("settings.temperature", *s.Temperature)
	}
	if s.TopP != nil && key("topP") {
		e.Float("settings.top_p", *s.TopP)
	}
	if len(s.StopSequences) > 0 && key("stopSequences") {
		e.Strings(s.StopSequences)
	}
	if s.Effort != "" && key("thinkingConfig") {
		fromEffort(e, s.Effort)
	}
	if e.native(req) {
		if key("responseMimeType") {
			e.Raw(`"application/json"`)
		}
		// A schema in the older dialect, for servers without JSON Schema, has a field of its own.
		field := "responseJsonSchema"
		if e.output.Dialect == dialects.Gemini {
			field = "responseSchema"
		}
		if !own.has("responseSchema") && key(field) {
			e.Body = append(e.Body, e.output.Schema...)
		}
	}
	// The members of the options come last. key has left out the members that they contain, because
	// a repeated name is an error.
	e.join(own)
	if len(e.Body) == empty {
		e.Body = e.Body[:start]
		return
	}
	e.Raw("}")
}

// native reports whether the model enforces the schema of the output. Models before Gemini 3
// reject a schema for requests with tools. They read it in the instructions, as do all models if
// the schema has no form in the dialect.
func (e *encoder) native(req *llm.Request) bool {
	return e.output.Schema != nil && (e.tools.Empty() || e.facts.version == 0 || e.facts.version >= 3)
}

// fromEffort writes how much the model may think. Gemini 3 has levels, older models a number of
// tokens. A number is such a budget; words map to the budgets of Google's own compatibility layer.
func fromEffort(e *encoder, effort string) {
	budget, err := strconv.Atoi(effort)
	// A number is a budget for new models too: they accept both.
	if err != nil && e.facts.levels {
		if effort == "none" {
			e.Fail(unsupported("settings.effort", `%s always thinks; its lowest effort is "minimal"`, e.model))
		}
		e.Quote(`{"thinkingLevel":`, effort, "}")
		return
	}
	if err != nil {
		known := false
		budget, known = budgets[strings.ToLower(effort)]
		if !known {
			e.Fail(unsupported("settings.effort", "%s thinks by a budget: a number of tokens, or none, minimal, low, "+
				"medium, high or dynamic; not %q", e.model, effort))
		}
	}
	e.Raw(`{"thinkingBudget":` + strconv.Itoa(budget) + `}`)
}

var budgets = map[string]int{"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "dynamic": -1}
