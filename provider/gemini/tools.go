package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/wire"
)

// form is how the API has tools. The schema goes as JSON Schema, which both of Google's hosts take beside the older
// field for a subset of OpenAPI: nothing has to be taken out of it, and nothing is lost on the way.
var form = wire.ToolForm{Provider: provider, FromTool: fromTool}

// fromTool appends the declaration of a function.
func fromTool(dst []byte, name string, t *pawl.Tool) ([]byte, error) {
	dst = append(dst, `{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	dst = append(dst, `,"description":`...) // the API wants one, even if there is nothing in it
	dst = jsonscan.AppendString(dst, t.Description)
	dst = append(dst, `,"parametersJsonSchema":`...)
	if len(t.Input) == 0 {
		return append(dst, `{"type":"object","properties":{}}}`...), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, t.Input); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	dst = append(dst, b.Bytes()...)
	return append(dst, '}'), nil
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
