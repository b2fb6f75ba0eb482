package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/internal/text"
)

// Tool is the input of Lint: a tool's definition as a model gets it.
type Tool struct {
	Name        string
	Description string
	Input       json.RawMessage // nil means no arguments
}

// Report is the result of Lint.
type Report struct {
	Tools    []ToolReport `json:"tools"`
	Warnings []Warning    `json:"warnings"`
}

// ToolReport is the result for one tool.
type ToolReport struct {
	Name     string    `json:"name"`
	Changes  []Change  `json:"changes,omitempty"` // what Normalize would change
	Verdicts []Verdict `json:"verdicts"`          // one for each dialect, in their order
}

// Verdict is the result for a tool's schema in one dialect.
type Verdict struct {
	Dialect string `json:"dialect"`
	// Error says why the schema cannot be expressed. The other fields are then empty.
	Error  string          `json:"error,omitempty"`
	Source string          `json:"source,omitempty"`
	Losses []Loss          `json:"losses,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Warning reports that tools are hard to distinguish, or that a name must be changed.
type Warning struct {
	Tools []string `json:"tools"`
	Text  string   `json:"text"`
}

// OK reports whether every tool can be expressed in every dialect. Losses and warnings do not
// count.
func (r *Report) OK() bool {
	for _, t := range r.Tools {
		for _, v := range t.Verdicts {
			if v.Error != "" {
				return false
			}
		}
	}
	return true
}

// Lint compiles the schema of each tool in each dialect, and checks the names and descriptions by
// which a model chooses. No dialects means all of them. The report is in the order of the tools.
func Lint(tools []Tool, dialects ...*Dialect) *Report {
	if len(dialects) == 0 {
		dialects = All()
	}
	r := &Report{Tools: []ToolReport{}, Warnings: []Warning{}}
	for _, t := range tools {
		tr := ToolReport{Name: t.Name}
		input := t.Input
		if len(input) > 0 {
			if fixed, changes, err := Normalize(input); err == nil && len(changes) > 0 {
				input = fixed
				tr.Changes = changes
			}
		}
		for _, d := range dialects {
			v := Verdict{Dialect: d.Name}
			if c, err := d.Compile(input); err != nil {
				e := err.(*Error) //nolint:errorlint // Compile returns nothing else
				v.Error, v.Source = strings.TrimPrefix(e.Error(), d.Name+": "), e.Source
			} else {
				v.Losses, v.Schema = c.Losses, c.Schema
			}
			tr.Verdicts = append(tr.Verdicts, v)
		}
		r.Tools = append(r.Tools, tr)
	}
	r.Warnings = append(r.Warnings, names(tools)...)
	r.Warnings = append(r.Warnings, short(tools)...)
	r.Warnings = append(r.Warnings, alike(tools)...)
	return r
}

// plainName matches the names that every provider accepts, but for their length.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// names warns about names that are sent in another form, and about names that are too similar.
func names(tools []Tool) (out []Warning) {
	var mapped []string
	defer func() {
		if mapped != nil {
			out = append(out, Warning{mapped, "sent under another name to a provider that refuses it: " +
				"all accept a letter or an underscore, then letters, digits, underscores and dashes, 64 in all"})
		}
	}()

	seen := map[string]bool{}
	folded := map[string]string{}
	for _, t := range tools {
		fold := strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(t.Name))
		switch {
		case t.Name == "":
			if len(tools) > 1 {
				out = append(out, Warning{[]string{""}, "a tool has no name"})
			}
			continue
		case seen[t.Name]:
			out = append(out, Warning{[]string{t.Name}, "two tools have this name"})
		case folded[fold] != "":
			out = append(out, Warning{[]string{folded[fold], t.Name}, "the names differ only in case and punctuation"})
		default:
			folded[fold] = t.Name
		}

		seen[t.Name] = true
		if len(t.Name) > 64 || !plainName.MatchString(t.Name) {
			mapped = append(mapped, t.Name)
		}
	}
	return out
}

// A description is too short if it has fewer words than fewest, or none that the name does not
// contain.
const fewest = 4

// short warns about descriptions with too little information, and about arguments without a
// description.
func short(tools []Tool) (out []Warning) {
	for _, t := range tools {
		words := wordsOf(t.Description)
		news := slices.DeleteFunc(slices.Clone(words),
			func(w string) bool { return slices.Contains(wordsOf(t.Name), w) || slices.Contains(filler, w) })
		switch {
		case t.Name == "" && t.Description == "": // a schema without a tool
		case strings.TrimSpace(t.Description) == "":
			out = append(out, Warning{[]string{t.Name}, "it has no description: a model chooses by it"})
		case len(words) < fewest:
			out = append(out, Warning{[]string{t.Name},
				fmt.Sprintf("the description has %d word%s: say what the tool does, and when to use it",
					len(words), text.Plural(len(words), "", "s"))})
		case len(news) == 0:
			out = append(out, Warning{[]string{t.Name}, "the description says no more than the name"})
		}

		v, err := parse(t.Input)
		if err != nil {
			continue // a schema that is no JSON has a verdict of its own
		}
		if bare := undescribed(v); len(bare) > 0 {
			out = append(out, Warning{[]string{t.Name},
				"arguments without a description: " + clip(strings.Join(bare, ", "), 200)})
		}
	}
	return out
}

// undescribed returns the top-level arguments without a description. Enumerations need none.
func undescribed(v any) (out []string) {
	o, _ := v.(*object)
	if o == nil || o.object("properties") == nil {
		return nil
	}

	props := o.object("properties")
	for _, name := range props.keys {
		p := props.object(name)
		switch {
		case p == nil:
			out = append(out, name)
		case p.has("enum") || p.has("const") || refOf(p) != "":
			// The values, or another place, explain it.
		case p.text("description") == "":
			out = append(out, name)
		}
	}
	return out
}

// filler lists words that do not distinguish tools.
var filler = strings.Fields("a an the of for to in on with and or by from as at is are be it this that which " +
	"tool function given specified using use used")

// wordsOf returns the words of a text in lower case; names are split at underscores and capitals.
func wordsOf(s string) []string {
	var b strings.Builder
	var last rune
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.Fields(b.String())
}

// alike warns about tools whose descriptions have the same words.
func alike(tools []Tool) (out []Warning) {
	groups := map[string][]string{}
	order := []string{} // the names of tools by their words
	seen := map[[2]string]bool{}
	for _, t := range tools {
		words := slices.DeleteFunc(wordsOf(t.Description), func(w string) bool { return slices.Contains(filler, w) })
		slices.Sort(words)
		key := strings.Join(slices.Compact(words), " ")
		at := [2]string{key, t.Name}
		if key == "" || seen[at] {
			continue
		}
		seen[at] = true
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t.Name)
	}

	for _, key := range order {
		if names := groups[key]; len(names) > 1 {
			out = append(out, Warning{names, "the descriptions say the same: a model has only the names to choose by"})
		}
	}
	return out
}

// Text writes the report for people. Losses of kind Note are counted; verbose lists them, and the
// sources of the rules.
func (r *Report) Text(w io.Writer, verbose bool) error {
	var b bytes.Buffer
	for _, t := range r.Tools {
		name := cmp.Or(t.Name, "schema")
		fmt.Fprintf(&b, "%s\n", name)
		for _, c := range t.Changes {
			fmt.Fprintf(&b, "  no JSON Schema: %s\n", c)
		}
		for _, v := range t.Verdicts {
			v.text(&b, verbose)
		}
	}

	if len(r.Warnings) > 0 {
		b.WriteString("warnings\n")
	}
	for _, x := range r.Warnings {
		names := strings.Join(x.Tools, ", ")
		if names != "" {
			names += ": "
		}
		fmt.Fprintf(&b, "  %s%s\n", names, x.Text)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// text writes the verdict. Notes are counted if they are not listed.
func (v *Verdict) text(w io.Writer, verbose bool) {
	if v.Error != "" {
		fmt.Fprintf(w, "  %-16s cannot be expressed: %s\n", v.Dialect, v.Error)
		if verbose && v.Source != "" {
			fmt.Fprintf(w, "    %-8s %s\n", "", v.Source)
		}
		return
	}

	shown := v.Losses
	notes := 0
	if !verbose {
		shown = slices.DeleteFunc(slices.Clone(v.Losses), func(l Loss) bool { return l.Kind == Note })
		notes = len(v.Losses) - len(shown)
	}
	switch {
	case len(shown) > 0:
		fmt.Fprintf(w, "  %-16s with losses\n", v.Dialect)
	case notes > 0:
		fmt.Fprintf(w, "  %-16s ok; %d explanation%s expressed in another way\n",
			v.Dialect, notes, text.Plural(notes, "", "s"))
	default:
		fmt.Fprintf(w, "  %-16s ok\n", v.Dialect)
	}

	// The same loss at several places is one line.
	for len(shown) > 0 {
		l := shown[0]
		var paths []string
		var others []Loss
		for _, m := range shown {
			if m.Kind == l.Kind && m.Keyword == l.Keyword && m.Means == l.Means {
				paths = append(paths, place(m.Path))
			} else {
				others = append(others, m)
			}
		}
		shown = others

		if more := len(paths) - 3; more > 0 && !verbose {
			paths = append(paths[:3], fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(w, "    %-8s %s: %s: %s\n", l.Kind, l.Keyword, l.Means, strings.Join(paths, ", "))
		if verbose && l.Source != "" {
			fmt.Fprintf(w, "    %-8s %s\n", "", l.Source)
		}
	}
}

// place shortens a JSON Pointer of a schema to its subject: /files/items/path for
// /properties/files/items/properties/path.
func place(ptr string) string {
	if ptr == "" {
		return "/"
	}
	var out []string
	parts := strings.Split(ptr, "/")[1:]
	for i := 0; i < len(parts); i++ {
		if parts[i] == "properties" && i+1 < len(parts) {
			i++
		}
		out = append(out, parts[i])
	}
	return "/" + strings.Join(out, "/")
}

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

	// One JSON text on each line; the first line says whether the file is meant so.
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) < 2 || !json.Valid(bytes.TrimSpace(lines[0])) {
		return nil, err
	}
	var tools []Tool
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
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

// inputKeys are the names by which MCP and the providers call a tool's schema.
var inputKeys = []string{
	"inputSchema", "input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema", "input", "schema",
}

// isOnlySchema reports whether an object is a schema and not a tool.
func isOnlySchema(o *object) bool {
	switch {
	case len(o.keys) == 0:
		return true
	case slices.ContainsFunc([]string{"properties", "$ref", "anyOf", "oneOf", "allOf", "$schema"}, o.has):
		return true
	}
	// A type with an underscore is a provider's own tool, such as web_search_20250305.
	return o.text("name") == "" && o.has("type") && !strings.Contains(o.text("type"), "_")
}

func readTool(o *object) ([]Tool, error) {
	t := Tool{Name: o.text("name"), Description: o.text("description")}
	for _, k := range inputKeys {
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
	case isOnlySchema(o):
		return []Tool{{Input: appendJSON(nil, o)}}, nil
	case t.Name != "" && (!o.has("type") || o.text("type") == "function"):
		return []Tool{t}, nil // a tool without arguments
	case o.has("type"):
		return nil, nil // a provider's own tool, such as web_search_20250305
	}
	return nil, fmt.Errorf("%s is neither a schema nor a tool: it has no name and no properties", clip(show(o), 60))
}
