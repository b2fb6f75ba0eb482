package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ReadTools reads a file of tools in any common form: a JSON Schema; one tool, or a list of tools,
// in the form of an MCP server or of one of the providers; an object that contains the list in
// "tools" (an MCP result, a whole request) or in "functionDeclarations"; or one of these on each
// line. A single schema is a tool without a name.
func ReadTools(data []byte) ([]Tool, error) {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff"))
	if len(data) == 0 {
		return nil, fmt.Errorf("no tools: the file is empty")
	}
	v, err := parse(data)
	if err == nil {
		return readValue(v)
	}
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) < 2 || !json.Valid(bytes.TrimSpace(lines[0])) {
		return nil, err
	}
	var tools []Tool
	for i, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		more, err := readValue(v)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		tools = append(tools, more...)
	}
	return tools, nil
}

func readValue(v any) ([]Tool, error) {
	switch v := v.(type) {
	case []any:
		var tools []Tool
		for i, x := range v {
			more, err := readValue(x)
			if err != nil {
				return nil, fmt.Errorf("tool %d: %w", i+1, err)
			}
			tools = append(tools, more...)
		}
		return tools, nil
	case *object:
		for _, k := range []string{"functionDeclarations", "function_declarations", "tools"} {
			if list, ok := v.get(k).([]any); ok {
				return readValue(list)
			}
		}
		for _, k := range []string{"result", "function", "toolSpec"} {
			if inner := v.object(k); inner != nil && !v.has("properties") {
				return readValue(inner)
			}
		}
		return readTool(v)
	}
	return nil, fmt.Errorf("want a schema, a tool or a list of tools, got %s", clip(show(v), 40))
}

func readTool(o *object) ([]Tool, error) {
	t := Tool{Name: o.text("name"), Description: o.text("description")}
	for _, k := range []string{"inputSchema", "input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema", "input", "schema"} {
		v, ok := o.vals[k]
		if !ok {
			continue
		}
		if m, isObject := v.(*object); isObject && k == "inputSchema" && m.has("json") { // Bedrock
			v = m.get("json")
		}
		if v != nil {
			t.Input = appendJSON(nil, v)
		}
		return []Tool{t}, nil
	}
	switch {
	case o.has("properties") || o.has("$ref") || o.has("anyOf") || o.has("oneOf") || o.has("allOf") || o.has("$schema") || len(o.keys) == 0,
		t.Name == "" && o.has("type") && !strings.Contains(o.text("type"), "_"):
		return []Tool{{Input: appendJSON(nil, o)}}, nil
	case t.Name != "" && (!o.has("type") || o.text("type") == "function"):
		return []Tool{t}, nil // a tool without arguments
	case o.has("type"):
		return nil, nil // a provider's own tool, such as web_search_20250305
	}
	return nil, fmt.Errorf("%s is neither a schema nor a tool: it has no name and no properties", clip(show(o), 60))
}
