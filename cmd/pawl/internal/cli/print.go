package cli

import (
	"bytes"
	"encoding/json"
	"io"
)

// PrintJSON prints v, indented.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Pretty returns JSON indented for people. Text that is not JSON stays unchanged.
func Pretty(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
