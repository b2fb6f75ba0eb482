package gemini

import (
	"encoding/json"

	"github.com/pawl-go/pawl"
	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/wire"
)

// form is how the API has tools: with a JSON Schema, which both of Google's hosts take beside the older field for a subset of OpenAPI;
// little has to be taken out of it.
var form = wire.ToolForm{Provider: provider, Dialect: dialects.GeminiJSON,
	FromTool: func(dst []byte, name string, t *pawl.Tool, schema json.RawMessage, _ bool) []byte {
		return fromTool(dst, name, t, "parametersJsonSchema", schema)
	}}

// subsetForm is how a server has tools that knows the older field alone.
var subsetForm = wire.ToolForm{Provider: provider, Dialect: dialects.Gemini,
	FromTool: func(dst []byte, name string, t *pawl.Tool, schema json.RawMessage, _ bool) []byte {
		return fromTool(dst, name, t, "parameters", schema)
	}}

// What a reply can be held to, in each of the two.
var (
	outputForm       = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.GeminiJSON}, Any: true}
	subsetOutputForm = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.Gemini}, Any: true}
)

// fromTool appends the declaration of a function, with its schema under the name of the field for it.
func fromTool(dst []byte, name string, t *pawl.Tool, field string, schema json.RawMessage) []byte {
	dst = append(dst, `{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	dst = append(dst, `,"description":`...) // the API wants one, even if there is nothing in it
	dst = jsonscan.AppendString(dst, t.Description)
	dst = append(append(append(dst, `,"`...), field...), `":`...)
	dst = append(dst, schema...)
	return append(dst, '}')
}

// fromChoice writes the function calling config.
func fromChoice(e *encoder, c pawl.ToolChoice) {
	switch c.Mode {
	case pawl.ToolNone:
		e.Raw(`{"mode":"NONE"}`)
	case pawl.ToolRequired:
		e.Raw(`{"mode":"ANY"}`)
	case pawl.ToolNamed:
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
