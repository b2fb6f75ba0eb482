package docgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// openAPI has the parts of an OpenAPI document that HTTP reads.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]form }
}

type operation struct {
	Summary, Description string
	Parameters           []struct{ Name, In, Description string }
	RequestBody          struct{ Content map[string]content }
	Responses            map[string]struct{ Content map[string]content }
}

type content struct{ Schema form }

// form is a JSON Schema in the server's form.
type form struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Format, Description  string
	Properties           map[string]form
	Required             []string
	Items                *form
	AdditionalProperties json.RawMessage
}

// HTTP returns the text of docs/http.md, made from the OpenAPI document of the server.
func HTTP(document []byte) (string, error) {
	var doc openAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return "", err
	}
	if len(doc.Paths) == 0 {
		return "", fmt.Errorf("the document has no paths: its shape has changed, change docgen with it")
	}
	var b strings.Builder
	b.WriteString(`<!-- Made from the server's OpenAPI document by internal/test/docgen. Change server/table.go, then: make docs -->

# The HTTP API

[The server](server.md) describes its use; ` + "`GET /openapi.json`" + ` of a running one has this page as an OpenAPI document. Bodies are JSON. A failure is ` + "`{\"error\":{\"code\",\"message\",\"hint\"}}`" + ` with
[a code](server.md#errors).

| | | needs |
|---|---|---|
`)
	type endpoint struct {
		title string
		op    operation
	}
	var all []endpoint
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			op, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			e := endpoint{strings.ToUpper(method) + " " + path, op}
			all = append(all, e)
			needs := strings.TrimSuffix(strings.TrimPrefix(op.Description, "Needs the scope "), ".")
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", e.title, Anchors("# `" + e.title + "`")[0], cell(op.Summary), cell(needs))
		}
	}
	for _, e := range all {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", e.title, e.op.Summary)
		if e.op.Description != "" {
			fmt.Fprintf(&b, "%s\n", e.op.Description)
		}
		if len(e.op.Parameters) > 0 {
			b.WriteString("\n| parameter | in | |\n|---|---|---|\n")
			for _, p := range e.op.Parameters {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.In, cell(p.Description))
			}
		}
		lines := []string{}
		if c, ok := e.op.RequestBody.Content["application/json"]; ok {
			lines = append(lines, "Takes "+c.Schema.words()+".")
		}
		for _, status := range slices.Sorted(maps.Keys(e.op.Responses)) {
			if status == "default" {
				continue
			}
			var gives []string
			for _, kind := range slices.Sorted(maps.Keys(e.op.Responses[status].Content)) {
				if kind == "application/json" {
					gives = append(gives, e.op.Responses[status].Content[kind].Schema.words())
				} else {
					gives = append(gives, "`"+kind+"`")
				}
			}
			if gives != nil {
				lines = append(lines, "Gives "+status+": "+strings.Join(gives, ", or ")+".")
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n", strings.Join(lines, " "))
		}
	}
	b.WriteString("\n## Forms\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		f := doc.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if f.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", f.Description)
		}
		if len(f.Properties) == 0 {
			fmt.Fprintf(&b, "%s\n", f.words())
			continue
		}
		b.WriteString("| field | JSON | |\n|---|---|---|\n")
		for _, field := range slices.Sorted(maps.Keys(f.Properties)) {
			p := f.Properties[field]
			meaning := p.Description
			if slices.Contains(f.Required, field) {
				meaning = strings.TrimSpace(meaning + " Always there.")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, p.words(), cell(meaning))
		}
	}
	return b.String(), nil
}

// words returns the JSON type of a form.
func (f form) words() string {
	switch {
	case f.Ref != "":
		name := f.Ref[strings.LastIndex(f.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case f.Type == "array" && f.Items != nil:
		return "list of " + f.Items.words()
	case f.Type == "object" && len(f.AdditionalProperties) > 0:
		var of form
		if json.Unmarshal(f.AdditionalProperties, &of) == nil {
			return of.words() + " by name"
		}
		return "object"
	case f.Format == "date-time":
		return "time"
	case f.Type == "":
		return "any JSON"
	}
	return f.Type
}
