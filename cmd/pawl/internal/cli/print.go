package cli

import (
	"bytes"
	"encoding/json"
	"io"
)

// PrintJSON writes v to w as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Pretty returns indented JSON. Text that is not JSON stays unchanged.
func Pretty(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
