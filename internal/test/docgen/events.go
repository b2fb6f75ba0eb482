package docgen

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// kind is a kind of event as event.go declares it.
type kind struct {
	name, comment string
	fields        []string // JSON names, as eventFields has them
}

// field is a field of the JSON form of an event.
type field struct {
	json, words string
	meaning     string // where the JSON form itself says it; "": where Event does
}

// Events returns the text of docs/events.md, made from the source of event.go: the kinds, which
// fields each carries (eventFields), the JSON names (eventJSON) and what they mean (the comments of
// Event, and of eventJSON where that has one).
func Events(src string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var (
		kinds    []kind
		carried  map[string][]string // by Go name of the kind
		form     []field
		meanings map[string]string // by JSON name
		goNames  = map[string]string{}
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
					goNames[s.Names[0].Name] = name
					kinds = append(kinds, kind{name: name, comment: text(s.Comment)})
				} else if s.Names[0].Name == "eventFields" {
					carried = table(s.Values[0].(*ast.CompositeLit))
				}
			case *ast.TypeSpec:
				st, ok := s.Type.(*ast.StructType)
				switch {
				case ok && s.Name.Name == "Event":
					meanings = comments(st)
				case ok && s.Name.Name == "eventJSON":
					form = jsonForm(st)
				}
			}
		}
	}
	if len(kinds) == 0 || len(carried) != len(kinds) || len(form) == 0 || len(meanings) == 0 {
		return "", fmt.Errorf("event.go: found %d kinds, the fields of %d, %d JSON names and %d comments: its shape has changed, change docgen with it",
			len(kinds), len(carried), len(form), len(meanings))
	}
	for name, fields := range carried {
		for i := range kinds {
			if kinds[i].name == goNames[name] {
				kinds[i].fields = fields
			}
		}
	}
	return render(kinds, form, meanings)
}

func text(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	return strings.Join(strings.Fields(c.Text()), " ")
}

// table reads a literal of map[EventKind][]string.
func table(lit *ast.CompositeLit) map[string][]string {
	m := map[string][]string{}
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		var names []string
		for _, v := range kv.Value.(*ast.CompositeLit).Elts {
			name, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				panic(err) // the parser has seen a string there
			}
			names = append(names, name)
		}
		m[kv.Key.(*ast.Ident).Name] = names
	}
	return m
}

// comments returns what the fields of Event say of themselves, by their names in lower case.
func comments(st *ast.StructType) map[string]string {
	m := map[string]string{}
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			m[strings.ToLower(name.Name)] = text(f.Comment)
		}
	}
	return m
}

func jsonForm(st *ast.StructType) []field {
	var fields []field
	for _, f := range st.Fields.List {
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			panic(err) // the parser has seen a string there
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		fields = append(fields, field{json: name, words: typeWords(f.Type), meaning: text(f.Comment)})
	}
	return fields
}

// typeWords says what JSON a Go type becomes.
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

func render(kinds []kind, form []field, meanings map[string]string) (string, error) {
	byName := map[string]field{}
	for _, f := range form {
		byName[f.json] = f
	}
	var b strings.Builder
	b.WriteString(`<!-- Made from event.go by internal/test/docgen. Change the comments there, then: make docs -->

# Events

All that happens in a run leaves it as events, through one sequence. ` + "`Agent.Stream`" + ` yields them as ` + "`pawl.Event`" + `; ` + "`pawl run --json`" + ` prints them, one
JSON object a line. The list is closed: a kind or a field that is not on it is an error when an event is read. A field that
a kind carries may be left out where it is empty.

## Every event

| field | JSON | meaning |
|---|---|---|
`)
	carried := map[string]bool{}
	for _, k := range kinds {
		for _, f := range k.fields {
			if _, ok := byName[f]; !ok {
				return "", fmt.Errorf("event.go: %s carries %q, which the JSON form does not have", k.name, f)
			}
			carried[f] = true
		}
	}
	for _, f := range form {
		if carried[f.json] {
			continue
		}
		meaning := meanings[f.json]
		if f.json == "event" {
			meaning = "what happened: one of the kinds below"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.json, f.words, cell(meaning))
	}
	b.WriteString("\n## Kinds\n\nIn the order in which a run emits them.\n\n| event | what happened | carries |\n|---|---|---|\n")
	for _, k := range kinds {
		if k.comment == "" {
			return "", fmt.Errorf("event.go: the kind %s has no comment at the end of its line", k.name)
		}
		var names []string
		for _, f := range k.fields {
			names = append(names, "`"+f+"`")
		}
		if names == nil {
			names = []string{"nothing more"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, cell(k.comment), strings.Join(names, ", "))
	}
	b.WriteString("\n## What they carry\n\n| field | JSON | in which kinds, and what it means |\n|---|---|---|\n")
	for _, f := range form {
		if !carried[f.json] {
			continue
		}
		meaning := cmp.Or(f.meaning, meanings[f.json])
		if meaning == "" {
			return "", fmt.Errorf("event.go: the field %s has no comment, in Event or in eventJSON", f.json)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.json, f.words, cell(meaning))
	}
	b.WriteString("\nTypes in `code` are those of the Go package, in the JSON form that `go doc pawl TYPE` and its `MarshalJSON` describe.\n")
	return b.String(), nil
}

// cell makes s fit a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
