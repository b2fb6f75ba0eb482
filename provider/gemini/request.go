package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// skipSignature is Google's documented placeholder for the signature that Gemini 3 requires, for
// calls of another model.
const skipSignature = `"thoughtSignature":"skip_thought_signature_validator"`

// rules are the API's requirements on messages.
var rules = wire.Rules{HistoryRules: llm.HistoryRules{Settled: true, UserFirst: true}, Heads: []string{"cachedContent", "cached_content"}}

// encoder appends a body.
type encoder struct {
	wire.Writer
	dialect
	model  string
	facts  facts
	tools  *wire.Toolset
	output wire.Output
	opts   options

	role  string  // of the current content; "" means none
	calls []place // the calls of the last replies, which the next results answer
	// the current content has no signed call yet, and its first call needs a signature
	missing bool
}

// encode appends the body of req to dst. The model is in the address, not in the body, but decides
// what the body may have.
func (d *dialect) encode(dst []byte, name string, tools *wire.Toolset, output wire.Output, req *llm.Request) ([]byte,
	error) {
	if err := wire.Check(provider, name, req, tools); err != nil {
		return dst, err
	}
	opts, err := readOptions(req.Settings.Options[provider])
	if err != nil {
		return dst, err
	}
	e := encoder{Writer: wire.Writer{Provider: provider, Body: dst}, dialect: *d, model: name,
		facts: toFacts(d.catalog, name), tools: tools, output: output, opts: opts}
	e.Begin(opts.rest)
	fromRequest(&e, req)
	return e.Finish()
}

// Has reports whether the options have a member of the body.
func (e *encoder) Has(name string) bool { return slices.Contains(e.opts.keys, name) }

// fromRequest writes the members of the body.
func fromRequest(e *encoder, req *llm.Request) {
	fromInstructions(e, req)
	if e.Key("contents") {
		e.Raw("[")
		fromMessages(e, req.Messages)
		e.Raw("]")
	}
	fromTools(e, req)
	fromSettings(e, req)
}

// fromMessages writes the contents.
func fromMessages(e *encoder, messages []llm.Message) {
	for i := 0; i < len(messages); i++ {
		if messages[i].Role == llm.RoleTool {
			i = fromResults(e, messages, i)
		} else {
			fromMessage(e, i, &messages[i])
		}
	}
	if e.role == "" {
		e.Fail(invalid("messages", "Gemini wants at least one message that is no instruction"))
	}
	e.close()
}

// fromInstructions writes all system and developer messages: the API has one place for them.
func fromInstructions(e *encoder, req *llm.Request) {
	ask := len(req.Output) > 0 && !e.native(req)
	if !ask && !slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return wire.Instructs(&m) }) || !e.Key("systemInstruction") {
		return
	}
	e.Raw(`{"parts":[`)
	for i := range req.Messages {
		m := &req.Messages[i]
		if !wire.Instructs(m) {
			continue
		}
		for j, p := range m.Parts {
			t, ok := p.(llm.Text)
			if !ok {
				e.Fail(unsupported(wire.Field(i, j), "instructions are text; Gemini cannot take %T there", p))
			}
			e.Comma()
			e.text(t.Text)
			e.Raw("}")
		}
		// Without it, the list of parts could be empty.
		if len(m.Parts) == 0 {
			e.Comma()
			e.Raw(`{"text":""}`)
		}
	}
	if ask {
		e.Comma()
		e.text(wire.SchemaPrompt(req.Output))
		e.Raw("}")
	}
	e.Raw(`]}`)
}

// part begins a part of a content of role. Contents alternate, so parts of the same role share
// one.
func (e *encoder) part(role string) {
	if e.role == role {
		e.Comma()
		return
	}
	e.close()
	e.Comma()
	e.Raw(`{"role":"`)
	e.Raw(role)
	e.Raw(`","parts":[`)
	e.role = role
	e.missing = role == "model" && e.facts.version >= 3
}

// close ends the current content.
func (e *encoder) close() {
	if e.role != "" {
		e.Raw("]}")
		e.role = ""
	}
}

// text begins a text part. The caller closes it.
func (e *encoder) text(s string) {
	e.Quote(`{"text":`, s)
}

// fromMessage writes message i, unless it holds results or instructions.
func fromMessage(e *encoder, i int, m *llm.Message) {
	switch m.Role {
	case llm.RoleSystem, llm.RoleDeveloper:
	case llm.RoleAssistant:
		fromReply(e, i, m)
	case llm.RoleUser:
		// The calls before a user's message have their results, so that results after it belong to
		// later calls.
		e.calls = e.calls[:0]
		for j, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				if p.Text == "" && len(m.Parts) > 1 {
					continue // the API rejects empty parts
				}
				e.part("user")
				e.text(p.Text)
				e.Raw("}")
			case llm.Media:
				e.part("user")
				fromMedia(e, wire.Field(i, j), p, true)
				e.Raw("}")
			default:
				e.Fail(invalid(wire.Field(i, j), "%T has no place in this message", p))
			}
		}
	default:
		e.Fail(invalid("messages", "message %d has the unknown role %q", i, m.Role))
	}
}

// fromReply writes the parts of an assistant message, each with the members that accompanied it.
// The reasoning of other providers' models is left out.
func fromReply(e *encoder, i int, m *llm.Message) {
	// Several assistant messages in a row are one content. Their calls are answered together.
	if e.role != "model" {
		e.calls = e.calls[:0]
	}
	for j, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			stored := e.stored(p.Opaque)
			if p.Text == "" && stored == nil {
				continue
			}
			e.part("model")
			e.text(p.Text)
			e.endObject(stored)
		case llm.Reasoning:
			stored := e.stored(p.Opaque)
			switch {
			case stored == nil || wire.Member(stored, ofMedia) != nil:
			case isThought(stored):
				e.part("model")
				e.text(p.Text)
				e.endObject(stored)
			default: // only the provider can read it
				e.part("model")
				e.Body = append(e.Body, stored...)
			}
		case llm.Media:
			e.part("model")
			fromMedia(e, wire.Field(i, j), p, false)
			var stored []byte
			// The members of media follow in a part of their own (toDelta).
			if j+1 < len(m.Parts) {
				if r, ok := m.Parts[j+1].(llm.Reasoning); ok {
					stored = wire.Member(e.stored(r.Opaque), ofMedia)
				}
			}
			e.endObject(stored)
		case llm.ToolCall:
			e.calls = append(slices.Grow(e.calls, len(m.Parts)-j), place{i, j})
			e.part("model")
			fromCall(e, &p)
		default:
			e.Fail(unsupported(wire.Field(i, j), "Gemini cannot take %T in an assistant message", p))
		}
	}
}

// stored returns the stored members of a part, which are sent back with it; nil means none from
// this host. They are the Data of Opaque, an object:
//
//	{"thoughtSignature":…}   of a text or a call: its other members, as they were written
//	{"thought":true,…}       of a Reasoning with text: the same
//	{"executableCode":…,…}   of a Reasoning without text: the whole part
//	{"ofMedia":{…}}          of a Reasoning after a Media without Opaque: the Media's members
func (e *encoder) stored(o *llm.Opaque) []byte {
	if o == nil || o.Provider != e.tag || !jsonscan.IsObject(o.Data) {
		return nil
	}
	return o.Data
}

// ofMedia is the member with the stored members of a Media.
const ofMedia = "ofMedia"

// signed reports whether an object has a signature, in either of the API's spellings.
func signed(object []byte) bool {
	return wire.Member(object, "thoughtSignature") != nil || wire.Member(object, "thought_signature") != nil
}

// isThought reports whether an object has the members of a thought, and is not a whole part.
func isThought(object []byte) bool {
	thought := false
	c := jsonscan.New(object)
	for k := range c.Members() {
		switch string(k) {
		case "thought":
			thought = true
		case "text", "thoughtSignature", "thought_signature", "partMetadata":
		default:
			return false
		}
	}
	return thought
}

// endObject appends the members of an object to the current part and closes it. Members with
// content are left out, because the content may have changed.
func (e *encoder) endObject(object []byte) {
	c := jsonscan.New(object)
	if len(object) > 0 {
		for k := range c.Members() {
			switch string(k) {
			case "text", "functionCall", "function_call", "inlineData", "inline_data", "fileData", "file_data":
				continue
			}
			e.Comma()
			e.Bytes(k)
			e.Raw(":")
			e.Body = append(e.Body, c.Raw()...)
		}
	}
	e.Raw("}")
}

// fromCall writes a call. Gemini 3 requires a signature on the first call of a content. A call of
// another model gets the documented placeholder.
func fromCall(e *encoder, c *llm.ToolCall) {
	e.Raw(`{"functionCall":{`)
	e.id(c.ID)
	e.Quote(`"name":`, e.tools.ToWire(c.Name), `,"args":`)
	e.Body = append(e.Body, wire.Object(c.Args, "invalid_arguments")...)
	e.Raw("}")
	stored := e.stored(c.Opaque)
	if e.missing && !signed(stored) {
		e.Comma()
		e.Raw(skipSignature)
	}
	e.missing = false
	e.endObject(stored)
}

// id writes the id of a call, unless pawl made the id because the model gave none. Such ids repeat
// in each reply, and the order of calls is more specific.
func (e *encoder) id(id string) {
	if id == "" || made(id) {
		return
	}
	e.Quote(`"id":`, id, ",")
}

// made reports whether an id is one of Response.Add's: call_N, with the index of the part in its
// reply. Gemini's own ids can have this form but are longer. An id that is taken for one by
// mistake is not sent, with its result; only the id is lost.
func made(id string) bool {
	n, ok := strings.CutPrefix(id, "call_")
	if !ok || n == "" || len(n) > 3 {
		return false
	}
	return strings.Trim(n, "0123456789") == ""
}

// names is the form of function names. The API documents 128 characters, and has refused more than
// 64.
var names = wire.NameRule{Max: 64, Also: ".:-", Start: true}

// form is the API's form of tools, with a JSON Schema. Both of Google's hosts accept it, and
// little of a schema must be removed. The older field takes a subset of OpenAPI.
var form = wire.ToolForm{Provider: provider, Names: names, Dialect: dialects.GeminiJSON,
	FromTool: func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, _ bool) []byte {
		return fromTool(dst, name, t, "parametersJsonSchema", schema)
	}}

// subsetForm is the form of tools for servers that know only the older field.
var subsetForm = wire.ToolForm{Provider: provider, Names: names, Dialect: dialects.Gemini,
	FromTool: func(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, _ bool) []byte {
		return fromTool(dst, name, t, "parameters", schema)
	}}

// These are the forms of a schema for the reply.
var (
	outputForm       = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.GeminiJSON}, Any: true}
	subsetOutputForm = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.Gemini}, Any: true}
)

// fromTool appends the declaration of a function. field is the name of the schema's member.
func fromTool(dst []byte, name string, t *llm.ToolSpec, field string, schema json.RawMessage) []byte {
	dst = append(dst, `{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	dst = append(dst, `,"description":`...) // the API requires one, even if it is empty
	dst = jsonscan.AppendString(dst, t.Description)
	dst = append(append(append(dst, `,"`...), field...), `":`...)
	dst = append(dst, schema...)
	return append(dst, '}')
}

// fromChoice writes the function calling config.
func fromChoice(e *encoder, c llm.ToolChoice) {
	switch c.Mode {
	case llm.ToolNone:
		e.Raw(`{"mode":"NONE"}`)
	case llm.ToolRequired:
		e.Raw(`{"mode":"ANY"}`)
	case llm.ToolNamed:
		e.Raw(`{"mode":"ANY","allowedFunctionNames":[`)
		for _, n := range c.Names {
			e.Comma()
			e.String(e.tools.ToWire(n))
		}
		e.Raw(`]}`)
	default:
		e.Raw(`{"mode":"AUTO"}`)
	}
}
