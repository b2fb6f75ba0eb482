package gotype

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
)

// fieldTag is what the tags of a field say about its schema.
type fieldTag struct {
	required bool
	nullable bool
	typ      shape // "" means that the Go type decides
	rules    []setting
}

// setting is one rule with its value, such as minimum=1.
type setting struct {
	rule  *rule
	value string
}

// rule is a word of a jsonschema tag.
type rule struct {
	word string
	flag bool    // it has no value, or true
	on   []shape // of the values to which it applies; nil means all
	set  func(n *node, value string) error
}

var (
	onNumbers = []shape{shapeNumber, shapeInteger}
	onText    = []shape{shapeString}
	onArrays  = []shape{shapeArray}
	onObjects = []shape{shapeObject}
	onScalars = []shape{shapeString, shapeNumber, shapeInteger, shapeBoolean, shapeAny}
)

// rules are the words of a jsonschema tag, as invopop/jsonschema has them. readTag itself reads
// required, nullable and type.
var rules = []rule{
	{word: "required", flag: true},
	{word: "nullable", flag: true},
	{word: "type"},
	{word: "title", set: func(n *node, s string) error { n.Title = s; return nil }},
	{word: "description", set: describe},
	{word: "default", on: onScalars, set: setDefault},
	{word: "example", on: onScalars, set: addExample},
	{word: "deprecated", flag: true, set: func(n *node, _ string) error { n.Deprecated = true; return nil }},
	{word: "readOnly", flag: true, set: func(n *node, _ string) error { n.ReadOnly = true; return nil }},
	{word: "writeOnly", flag: true, set: func(n *node, _ string) error { n.WriteOnly = true; return nil }},
	{word: "enum", on: onScalars, set: addEnum},

	{word: "minimum", on: onNumbers, set: number(func(n *node) *json.Number { return &n.Minimum })},
	{word: "maximum", on: onNumbers, set: number(func(n *node) *json.Number { return &n.Maximum })},
	{word: "exclusiveMinimum", on: onNumbers, set: number(func(n *node) *json.Number { return &n.ExclusiveMinimum })},
	{word: "exclusiveMaximum", on: onNumbers, set: number(func(n *node) *json.Number { return &n.ExclusiveMaximum })},
	{word: "multipleOf", on: onNumbers, set: number(func(n *node) *json.Number { return &n.MultipleOf })},

	{word: "minLength", on: onText, set: count(func(n *node) *json.Number { return &n.MinLength })},
	{word: "maxLength", on: onText, set: count(func(n *node) *json.Number { return &n.MaxLength })},
	{word: "pattern", on: onText, set: setPattern},
	{word: "format", on: onText, set: func(n *node, s string) error { n.Format = s; return nil }},

	{word: "minItems", on: onArrays, set: count(func(n *node) *json.Number { return &n.MinItems })},
	{word: "maxItems", on: onArrays, set: count(func(n *node) *json.Number { return &n.MaxItems })},
	{
		word: "uniqueItems",
		flag: true,
		on:   onArrays,
		set:  func(n *node, _ string) error { n.UniqueItems = true; return nil },
	},
	{word: "minProperties", on: onObjects, set: count(func(n *node) *json.Number { return &n.MinProperties })},
	{word: "maxProperties", on: onObjects, set: count(func(n *node) *json.Number { return &n.MaxProperties })},
}

func findRule(word string) *rule {
	for i := range rules {
		if rules[i].word == word {
			return &rules[i]
		}
	}
	return nil
}

// readTag reads the tags jsonschema, jsonschema_description, description and enum of a field.
func readTag(sf reflect.StructField) (fieldTag, error) {
	var t fieldTag
	if tag, ok := sf.Tag.Lookup("jsonschema"); ok {
		settings, err := parseTag(tag)
		if err != nil {
			return t, fmt.Errorf("the tag jsonschema:%q: %w", tag, err)
		}
		if err := t.add(settings); err != nil {
			return t, fmt.Errorf("the tag jsonschema:%q: %w", tag, err)
		}
	}
	// The tags of other libraries, so that their types have the same schema here.
	for _, key := range []string{"jsonschema_description", "description"} {
		if text, ok := sf.Tag.Lookup(key); ok && text != "" {
			t.rules = append(t.rules, setting{findRule("description"), text})
		}
	}
	if words, ok := sf.Tag.Lookup("enum"); ok {
		for word := range strings.SplitSeq(words, ",") {
			t.rules = append(t.rules, setting{findRule("enum"), strings.TrimSpace(word)})
		}
	}
	return t, nil
}

// add records settings, and reads the rules that concern more than the node.
func (t *fieldTag) add(settings []setting) error {
	for _, s := range settings {
		if s.rule.flag && s.value != "" && s.value != "true" {
			return fmt.Errorf("%s has no value, got %q", s.rule.word, s.value)
		}
		switch s.rule.word {
		case "required":
			t.required = true
		case "nullable":
			t.nullable = true
		case "type":
			t.typ = shape(s.value)
			if !slices.Contains(append(onScalars[:4:4], shapeArray, shapeObject), t.typ) {
				return fmt.Errorf("type=%s is no JSON type; known: string, number, integer, boolean, array, object", s.value)
			}
		default:
			t.rules = append(t.rules, s)
		}
	}
	return nil
}

// parseTag reads a jsonschema tag: rules with commas between them, or a sentence, which is the
// description. A comma ends a rule only if a rule follows, and \, is a comma of the text.
func parseTag(tag string) ([]setting, error) {
	if strings.TrimSpace(tag) == "" {
		return nil, errors.New("it says nothing")
	}
	if tag == "-" {
		return nil, errors.New("- leaves out no field; json:\"-\" does")
	}
	sentence := []setting{{findRule("description"), tag}}
	var all []setting
	for i, part := range commaParts(tag) {
		r, value, ok := asRule(part)
		switch {
		case ok:
			all = append(all, setting{r, value})

		case i == 0 && unknownWord(part) == "":
			return sentence, nil
		case unknownWord(part) != "" && (i == 0 || nearest.Word(unknownWord(part), words()) != ""):
			return nil, fmt.Errorf("there is no rule %s; known: %s", unknownWord(part), strings.Join(words(), ", "))

		case all[len(all)-1].rule.flag:
			// "required, if the order is open"
			if strings.Contains(tag, "=") {
				return nil, fmt.Errorf("%q is no rule; known: %s", strings.TrimSpace(part), strings.Join(words(), ", "))
			}
			return sentence, nil
		default:
			all[len(all)-1].value += "," + part
		}
	}
	return all, nil
}

// commaParts splits s at its commas. A comma after a backslash stays, without the backslash.
func commaParts(s string) []string {
	parts := []string{""}
	for i := 0; i < len(s); i++ {
		last := len(parts) - 1
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			parts[last] += ","
			i++
		case s[i] == ',':
			parts = append(parts, "")
		default:
			parts[last] += s[i : i+1]
		}
	}
	return parts
}

// asRule reads a part of a tag as a rule.
func asRule(part string) (r *rule, value string, ok bool) {
	word, value, has := strings.Cut(strings.TrimSpace(part), "=")
	r = findRule(word)
	if r == nil || !has && !r.flag {
		return nil, "", false
	}
	return r, value, true
}

var wordAssigned = regexp.MustCompile(`^([^\s=]+)=`)

// unknownWord returns the word before the first = of a part that looks like a rule.
func unknownWord(part string) string {
	m := wordAssigned.FindStringSubmatch(part)
	if m == nil {
		return ""
	}
	return m[1]
}

func words() []string {
	all := make([]string, len(rules))
	for i := range rules {
		all[i] = rules[i].word
	}
	return all
}

// apply adds the rules of the tag to n. Rules for the values of a list apply to its items.
func (t *fieldTag) apply(n *node) (*node, error) {
	if t.typ != "" && t.typ != n.shape {
		if n.shape != shapeAny || n.raw != nil {
			return nil, fmt.Errorf("the tag states type=%s, and the Go type is %s in JSON", t.typ, n.shape)
		}
		n = typed(t.typ)
	}
	for _, s := range t.rules {
		target := n
		// A rule such as enum on a list of words is about the words.
		if !s.rule.appliesTo(n) && n.shape == shapeArray && n.Items != nil {
			target = n.Items
		}
		switch {
		case n.raw != nil && s.rule.word == "description":
			if err := n.describeRaw(s.value); err != nil {
				return nil, err
			}
			continue
		case n.raw != nil:
			return nil, fmt.Errorf("the rule %s has no place, because JSONSchema states the schema", s.rule.word)
		case !s.rule.appliesTo(target):
			return nil, fmt.Errorf("the rule %s is for %s, and the field is %s in JSON", s.rule.word, list(s.rule.on), n.shape)
		}
		if err := s.rule.set(target, s.value); err != nil {
			return nil, fmt.Errorf("the rule %s=%s: %w", s.rule.word, s.value, err)
		}
	}
	return n, nil
}

func (r *rule) appliesTo(n *node) bool { return r.on == nil || slices.Contains(r.on, n.shape) }

func list(on []shape) string {
	var names []string
	for _, s := range on {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// describe sets the description, which several tags can have.
func describe(n *node, text string) error {
	if n.Description != "" && n.Description != text {
		return errors.New("the field has two descriptions")
	}
	n.Description = text
	return nil
}

// describeRaw sets the description in the schema of a JSONSchema method.
func (n *node) describeRaw(text string) error {
	v, err := jsonform.Value(n.raw)
	if err != nil {
		return err
	}
	keywords, ok := v.(map[string]any)
	if !ok {
		return nil // true and false have no place for it
	}
	keywords["description"] = text
	n.raw, err = jsonform.Marshal(keywords)
	return err
}

func setDefault(n *node, text string) error {
	v, err := n.literal(text)
	n.Default = v
	return err
}

func addExample(n *node, text string) error {
	v, err := n.literal(text)
	n.Examples = append(n.Examples, v)
	return err
}

func addEnum(n *node, text string) error {
	v, err := n.literal(text)
	if err != nil {
		return err
	}
	for _, old := range n.Enum {
		if string(old) == string(v) {
			return errors.New("the value is there twice")
		}
	}
	n.Enum = append(n.Enum, v)
	return nil
}

func setPattern(n *node, text string) error {
	if _, err := regexp.Compile(text); err != nil {
		return err
	}
	n.Pattern = text
	return nil
}

// number returns the set function of a rule whose value is a number.
func number(place func(*node) *json.Number) func(*node, string) error {
	return func(n *node, text string) error {
		v, err := (&node{shape: shapeNumber}).literal(text)
		*place(n) = json.Number(v)
		return err
	}
}

// count returns the set function of a rule whose value is a number of things.
func count(place func(*node) *json.Number) func(*node, string) error {
	return func(n *node, text string) error {
		v, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
		if err != nil {
			return errors.New("want a whole number from 0")
		}
		*place(n) = json.Number(strconv.FormatUint(v, 10))
		return nil
	}
}

// literal returns the JSON of a value that stands as text in a tag.
func (n *node) literal(text string) (json.RawMessage, error) {
	if n.shape == shapeString {
		return jsonform.Marshal(text)
	}
	raw := json.RawMessage(strings.TrimSpace(text))
	v, err := jsonform.Value(raw)
	// A value of any type that is no JSON is a text.
	if n.shape == shapeAny && err != nil {
		return jsonform.Marshal(text)
	}
	fits := err == nil
	switch v.(type) {
	case json.Number:
		fits = fits && n.shape != shapeBoolean
	case bool:
		fits = fits && n.shape != shapeNumber && n.shape != shapeInteger
	default:
		fits = fits && n.shape == shapeAny
	}
	if !fits {
		return nil, fmt.Errorf("want a JSON %s", n.shape)
	}
	return raw, nil
}
