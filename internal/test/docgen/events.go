package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// kind is a kind of event in event.go.
type kind struct {
	name, comment string
}

// field is a field of the JSON form of events.
type field struct {
	json, words string
	on          []string // kinds that carry it; "all" means every kind
	meaning     string
}

// Events returns the text of docs/events.md, made from the source of event.go: the constants of
// EventKind, the fields of Event with their tags json and on, and the fields of callDelta, which
// stand for Call in call_delta.
func Events(src string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var (
		kinds       []kind
		event, call []field
	)
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				if id, ok := s.Type.(*ast.Ident); ok && id.Name == "EventKind" {
					name, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						return "", err
					}
					kinds = append(kinds, kind{name: name, comment: text(s.Doc)})
				}
			case *ast.TypeSpec:
				st, ok := s.Type.(*ast.StructType)
				switch {
				case ok && s.Name.Name == "Event":
					event = jsonForm(st)
				case ok && s.Name.Name == "callDelta":
					call = jsonForm(st)
				}
			}
		}
	}
	if len(kinds) == 0 || len(event) == 0 || len(call) == 0 {
		return "", fmt.Errorf("event.go: found %d kinds, %d fields of Event and %d of callDelta: its shape has changed, change docgen with it",
			len(kinds), len(event), len(call))
	}
	return render(kinds, event, call)
}

func text(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return strings.Join(strings.Fields(c.Text()), " ")
}

// jsonForm returns the fields of a struct that its JSON form has.
func jsonForm(st *ast.StructType) []field {
	var fields []field
	for _, f := range st.Fields.List {
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			panic(err) // the parser has checked that it is a string
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" {
			continue
		}
		fields = append(fields, field{name, typeWords(f.Type), strings.Fields(reflect.StructTag(tag).Get("on")),
			text(f.Doc)})
	}
	return fields
}

// typeWords returns the JSON type of a Go type.
func typeWords(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return typeWords(x.X)
	case *ast.ArrayType:
		return "list of " + typeWords(x.Elt)
	case *ast.SelectorExpr:
		return "any JSON"
	case *ast.MapType:
		return typeWords(x.Value) + " by " + typeWords(x.Key)
	case *ast.Ident:
		switch x.Name {
		case "string", "Key", "EventKind", "Outcome":
			if x.Name != "string" {
				return "string (`" + x.Name + "`)"
			}
			return "string"
		case "int", "int64":
			return "number"
		}
		return "`" + x.Name + "`"
	}
	return "?"
}

func render(kinds []kind, event, call []field) (string, error) {
	known := map[string]bool{"all": true}
	for _, k := range kinds {
		if k.comment == "" {
			return "", fmt.Errorf("event.go: the kind %s has no comment above it", k.name)
		}
		known[k.name] = true
	}
	for _, f := range event {
		switch {
		case len(f.on) == 0:
			return "", fmt.Errorf("event.go: the field %s has no tag on", f.json)
		case f.meaning == "":
			return "", fmt.Errorf("event.go: the field %s has no comment", f.json)
		}
		for _, on := range f.on {
			if !known[on] {
				return "", fmt.Errorf("event.go: the field %s is on %q, which is no kind", f.json, on)
			}
		}
	}
	var b strings.Builder
	b.WriteString(`<!-- Made from event.go by internal/test/docgen. Change the comments there, then: make docs -->

# Events

A run reports everything as events, in one sequence. ` + "`Agent.Stream`" + ` yields them as ` + "`pawl.Event`" + `;
` + "`pawl run --json`" + ` prints them, one JSON object per line. The list is closed: an unknown kind and an
unknown field are errors when an event is read. Empty fields may be omitted.

## Every event

| field | JSON | meaning |
|---|---|---|
`)
	row := func(f field, on string) {
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", f.json, f.words, on, cell(f.meaning))
	}
	for _, f := range event {
		if slices.Contains(f.on, "all") {
			row(f, "")
		}
	}
	b.WriteString("\n## Kinds\n\nIn the order in which a run emits them.\n\n| event | what happened | carries |\n|---|---|---|\n")
	for _, k := range kinds {
		var names []string
		for _, f := range event {
			switch {
			case !slices.Contains(f.on, k.name):
			case k.name == "call_delta" && f.json == "call":
				for _, c := range call {
					names = append(names, "`"+c.json+"`")
				}
			default:
				names = append(names, "`"+f.json+"`")
			}
		}
		if names == nil {
			names = []string{"nothing more"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, cell(k.comment), strings.Join(names, ", "))
	}
	b.WriteString("\n## What they carry\n\n| field | JSON | in which kinds, and what it means |\n|---|---|---|\n")
	for _, f := range event {
		if slices.Contains(f.on, "all") {
			continue
		}
		if f.json == "call" {
			f.on = slices.DeleteFunc(f.on, func(k string) bool { return k == "call_delta" })
			for _, c := range call {
				row(c, "call_delta: ")
			}
		}
		row(f, strings.Join(f.on, ", ")+": ")
	}
	b.WriteString("\nTypes in `code` are types of the Go package, in the JSON form that `go doc pawl TYPE` and its `MarshalJSON` describe.\n")
	return b.String(), nil
}

// cell escapes s for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
