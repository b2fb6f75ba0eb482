package agentfile

// forms.go: the keys that can be written in several ways, such as model, tools and history.

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/internal/advice"
	"github.com/pawl-go/pawl/internal/demomodel"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/tools/outside"
)

// The values that can be written in several ways.
var (
	_ form = (*Models)(nil)
	_ form = (*Model)(nil)
	_ form = (*Tool)(nil)
	_ form = (*Choice)(nil)
	_ form = (*Output)(nil)
	_ form = (*History)(nil)
	_ form = (*Worker)(nil)
)

func (m *Models) wanted() string { return "the name of a model, or a list of them" }
func (m *Model) wanted() string {
	return "the name of a model, or an object with name, base_url and key_env"
}
func (t *Tool) wanted() string {
	return "the name of a set of tools, or an object with command, http, openapi, a2a or mcp"
}
func (c *Choice) wanted() string {
	return "auto, none, required, the name of a tool, or a list of names"
}
func (o *Output) wanted() string { return "a JSON Schema, or the name of a file with one" }
func (h *History) wanted() string {
	return "window, all, current_trace, {window: {…}}, {turns: N}, {tokens: N} or {summary: N}"
}

// read reads one model, or a list of them.
func (m *Models) read(r *reading, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		*m = make(Models, 1)
		(*m)[0].read(r, n, index(path, 0))
		return
	}
	*m = make(Models, len(n.Content))
	if len(n.Content) == 0 {
		r.report(CodeBadValue, n, path, modelHint, "the list is empty")
	}
	for i, c := range n.Content {
		r.value(c, reflect.ValueOf(&(*m)[i]).Elem(), index(path, i), "")
	}
}

// wordOr reads a text into word, and an object into the struct that whole points to.
func (r *reading) wordOr(n *yaml.Node, word *string, whole any, path string) {
	v := reflect.ValueOf(whole).Elem()
	switch n.Kind {
	case yaml.ScalarNode:
		r.scalar(n, reflect.ValueOf(word).Elem(), path)
	case yaml.MappingNode:
		r.object(n, v, path)
	default:
		r.wrong(n, v.Type(), path)
	}
}

func (m *Model) read(r *reading, n *yaml.Node, path string) {
	r.wordOr(n, &m.Name, m, path)
	if e := r.expanded[n]; e == nil && m.Name != "" {
		r.modelName(n, m.Name, path)
	}
}

// modelName reports a name that cannot be opened.
func (r *reading) modelName(n *yaml.Node, name, path string) {
	if strings.HasPrefix(name, scripted) || name == none && path == "side.model" {
		return
	}
	if demo, ok := strings.CutPrefix(name, demomodel.Prefix); ok {
		_, err := demomodel.Open(demo)
		r.cannotOpen(n, name, path, err)
		return
	}
	_, err := provider.Open(name, nil)
	r.cannotOpen(n, name, path, err)
}

// cannotOpen reports the error of opening a model, if it is about the name.
func (r *reading) cannotOpen(n *yaml.Node, name, path string, err error) {
	if err != nil {
		text, hint := wrongName(name, err)
		f := finding(CodeUnknownModel, path, hint, "%s", text)
		f.Line = n.Line
		f.Column = n.Column
		if n.Kind == yaml.MappingNode {
			f.Path += ".name"
			if p, ok := r.places[f.Path]; ok {
				f.Line = p.line
				f.Column = p.column
			}
		}
		r.found(f)
	}
}

// wrongName returns the message and the hint for a model name that cannot be opened.
func wrongName(name string, err error) (text, hint string) {
	text, _ = advice.Parts(err)
	near := provider.Suggest(name)
	if !strings.Contains(name, ":") && len(name) > 24 {
		text = "this is no PROVIDER:MODEL"
		if !strings.Contains(name, "/") {
			near = "" // it may be a key, which no message repeats
		}
	}
	if near == "" {
		return text, modelHint
	}
	return text, "did you mean " + cut(near) + "?"
}

func (t *Tool) read(r *reading, n *yaml.Node, path string) {
	before := len(r.findings)
	if n.Kind == yaml.MappingNode {
		if len(n.Content) != 2 {
			r.report(CodeConflict, n, path, "begin another entry for each",
				"want one of command, http, openapi, a2a and mcp, got %d keys", len(n.Content)/2)
			return
		}
		r.headers(n.Content[1])
	}

	r.wordOr(n, &t.Set, t, path)
	switch {
	case len(r.findings) > before:
	case n.Kind == yaml.MappingNode:
		r.made(n, t, path)
	case n.Kind == yaml.ScalarNode && !slices.Contains(SetNames(), strings.TrimSpace(t.Set)):
		f := unknownSet(t.Set, path)
		r.report(f.Code, n, path, f.Hint, "%s", f.Message)
	}
}

// headers prepares the headers of an http or openapi tool. Their variables are expanded by the
// tool, which hides the values from the model and from all output.
func (r *reading) headers(def *yaml.Node) {
	if def == nil || real(def).Kind != yaml.MappingNode {
		return
	}
	def = real(def)
	for i := 0; i+1 < len(def.Content); i += 2 {
		list := real(def.Content[i+1])
		if def.Content[i].Value != "headers" || list.Kind != yaml.MappingNode {
			continue
		}
		for j := 1; j < len(list.Content); j += 2 {
			if h := real(list.Content[j]); h.Kind == yaml.ScalarNode && strings.Contains(h.Value, "${") {
				r.header(h)
			}
		}
	}
}

// header leaves ${NAME} in a header for each variable that is set, and puts the default in place of
// the others. The values of the variables become secrets.
func (r *reading) header(h *yaml.Node) {
	written := h.Value
	e := r.expand(h, "") // reports what is wrong, and changes h
	h.Value = written
	for k, name := range e.names {
		h.Value = r.plainVariable(h.Value, name)
		r.secrets = append(r.secrets, secret{name, e.values[k]})
	}
	h.Value = r.defaults(h.Value)
	r.expanded[h] = &expanded{written: written}
}

// plainVariable writes ${NAME:-default} as ${NAME}, where the variable is set.
func (r *reading) plainVariable(text, name string) string {
	before, after, found := strings.Cut(text, "${"+name+":-")
	if !found {
		return text
	}
	_, tail, _ := strings.Cut(after, "}")
	return before + "${" + name + "}" + r.plainVariable(tail, name)
}

// defaults puts the default in the place of variables that are not set.
func (r *reading) defaults(text string) string {
	before, after, found := strings.Cut(text, "${")
	if !found {
		return text
	}
	inner, tail, closed := strings.Cut(after, "}")
	name, fallback, has := strings.Cut(inner, ":-")
	switch {
	case !closed:
		return text
	case has && r.env(name) == "":
		return before + fallback + r.defaults(tail)
	}
	return before + "${" + inner + "}" + r.defaults(tail)
}

// made reports an invalid definition of a tool, as far as it shows without running anything.
func (r *reading) made(n *yaml.Node, t *Tool, path string) {
	if t.Command == nil && t.HTTP == nil {
		return
	}
	d := outside.Definition{Command: t.Command, HTTP: t.HTTP}
	o := &outside.Options{Dir: r.dir, Getenv: r.env, Run: outside.Exec}
	if _, err := outside.New([]outside.Definition{d}, o); err != nil {
		text := strings.TrimPrefix(err.Error(), "tools[0]: ")
		r.report(CodeBadTool, n, path, "docs/outside.md has the form", "%s", text)
	}
}

func (c *Choice) read(r *reading, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.ScalarNode:
		var word string
		r.scalar(n, reflect.ValueOf(&word).Elem(), path)
		if word != "" {
			*c = Choice{word}
		}
	case yaml.SequenceNode:
		r.plain(n, reflect.ValueOf((*[]string)(c)).Elem(), path, "")
	default:
		r.wrong(n, reflect.TypeFor[Choice](), path)
	}
}

func (o *Output) read(r *reading, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.ScalarNode:
		r.scalar(n, reflect.ValueOf(&o.File).Elem(), path)
	case yaml.MappingNode:
		var schema outside.JSON
		before := len(r.findings)
		r.json(n, reflect.ValueOf(&schema).Elem(), path)
		if len(r.findings) > before {
			return
		}
		o.Schema = json.RawMessage(schema)
		if err := checkSchema(o.Schema); err != nil {
			r.report(CodeBadSchema, n, path, "", "%v", err)
		}
	default:
		r.wrong(n, reflect.TypeFor[Output](), path)
	}
}

func (h *History) read(r *reading, n *yaml.Node, path string) {
	r.wordOr(n, &h.Word, h, path)
	r.bounded(n, reflect.ValueOf(&h.Word).Elem(), path, `enum:"window,all,current_trace"`)
	if n.Kind == yaml.MappingNode && len(n.Content) != 2 {
		r.report(CodeConflict, n, path, "", "want one of window, turns, tokens and summary, got %d", len(n.Content)/2)
	}
}
