package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// List prints entries: as JSON, or as a table in which row returns the cells of an entry. The
// columns of head are separated by "|".
func List[T any](w io.Writer, asJSON bool, all []T, head string, row func(T) []any) error {
	if asJSON {
		return PrintJSON(w, all)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ReplaceAll(head, "|", "\t"))
	for _, v := range all {
		for i, cell := range row(v) {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// Fields prints the names and values of one entry, a line each. Empty values are left out.
func Fields(w io.Writer, fields [][2]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if f[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", f[0], f[1])
		}
	}
	return t.Flush()
}

// JSONLines returns an encoder that writes values to w, one a line.
func JSONLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// PrintJSON writes v to w as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := JSONLines(w)
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
