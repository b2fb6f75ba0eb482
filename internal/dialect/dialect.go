// Package dialect converts a tool's JSON Schema to the form that a provider accepts. Each provider
// accepts a different subset of JSON Schema, and refuses the whole request with all its tools for a
// single unsupported keyword.
//
//	                    ┌─ Schema   the output, always the same bytes
//	schema ─▶ Compile ──┼─ Losses   what the output does not express, with path and reason
//	                    └─ Restore  converts arguments back to the original schema
//
// The original is never changed, and calls are still validated against it: a limit lost in the
// output is enforced locally, and a description states it for the model. A dialect is data in
// rules.json, each rule with the page or the error message that is its source. compile.go applies
// the rules, with light.go for dialects that accept almost all of JSON Schema, and typed.go for
// dialects that accept little. If a schema cannot be expressed at all (a free-form object in
// OpenAI's strict form), Compile returns an *Error, so that only this tool is left out or sent in
// another form.
//
// Normalize converts common tool descriptions that are not JSON Schema (type "dict", "float",
// "ArrayList", required: true) to JSON Schema. Lint does all of this for a list of tools, and also
// checks their names and descriptions.
//
// All functions are safe for concurrent use. Call Compile once for each tool and provider.
package dialect

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// Dialect describes, as data, what one provider accepts.
type Dialect struct {
	Name  string // name on the command line, such as openai-strict
	Title string // name for people
	Rules []Rule
}

// Rule is one requirement of a provider.
type Rule struct {
	Trait   Trait
	Words   []string       // the keywords or formats that it concerns
	Pattern *regexp.Regexp // what names must match
	Limit   int            // the number that it concerns
	Says    string         // the rule as a sentence
	Source  string         // a page, or a report that quotes the error
}

// Trait is the kind of a Rule's requirement.
type Trait string

// The traits.
const (
	RootObject  Trait = "root-object"  // the root has type object, and properties
	RootWithout Trait = "root-without" // keywords that the root must not have
	// Keywords lists the only accepted keywords; without this rule, all of JSON Schema is accepted.
	Keywords         Trait = "keywords"
	Formats          Trait = "formats"           // the only accepted formats, as type:format
	TypeNeeded       Trait = "type-needed"       // every schema states one type, or is an anyOf
	PropertiesNeeded Trait = "properties-needed" // every object has properties
	ItemsNeeded      Trait = "items-needed"      // every array has items, and they are a schema
	AllRequired      Trait = "all-required"      // every property is required
	Closed           Trait = "closed"            // every object forbids additional properties
	RequiredDefined  Trait = "required-defined"  // required properties are in properties
	PropertyNames    Trait = "property-names"    // a pattern for the names of properties
	RefsTop          Trait = "refs-top"          // $ref points only to $defs at the root
	RefAlone         Trait = "ref-alone"         // a $ref has no siblings
	// RefsInlined: non-recursive schemas are preferably sent without $ref.
	RefsInlined Trait = "refs-inlined"
	// $ref is not supported: recursion ends after some levels
	RecursionCut  Trait = "recursion-cut"
	AnyOfAlone    Trait = "any-of-alone"   // anyOf has no siblings
	NullableFlag  Trait = "nullable-flag"  // nullable: true permits null, not a type
	UpperTypes    Trait = "upper-types"    // types are OBJECT, STRING …
	StringEnums   Trait = "string-enums"   // enum contains strings only
	FilledEnums   Trait = "filled-enums"   // no string of an enum is empty
	PlainPatterns Trait = "plain-patterns" // a pattern has no lookaround
	MaxMinItems   Trait = "max-min-items"  // maximum of minItems
	MaxDepth      Trait = "max-depth"      // levels of objects and arrays
	MaxProperties Trait = "max-properties" // properties of all objects together
	MaxEnum       Trait = "max-enum"       // values of all enums together
	// MaxText is the number of characters of all names, enum values and constants together.
	MaxText Trait = "max-text"
	// MaxEnumText is the number of characters of the values of one enum of more than 250 strings.
	MaxEnumText Trait = "max-enum-text"
)

// All returns the dialects, in a fixed order.
func All() []*Dialect {
	load()
	return slices.Clone(all)
}

// ByName returns the dialect with that name. Nil means that there is none.
func ByName(name string) *Dialect {
	load()
	i := slices.IndexFunc(all, func(d *Dialect) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

func (d *Dialect) rule(t Trait) *Rule {
	i := slices.IndexFunc(d.Rules, func(r Rule) bool { return r.Trait == t })
	if i < 0 {
		return nil
	}
	return &d.Rules[i]
}

func (d *Dialect) has(t Trait) bool { return d.rule(t) != nil }

func (d *Dialect) source(t Trait) string {
	if r := d.rule(t); r != nil {
		return r.Source
	}
	return ""
}

// takes reports whether a keyword may be sent.
func (d *Dialect) takes(keyword string) bool {
	r := d.rule(Keywords)
	return r == nil || slices.Contains(r.Words, keyword)
}

// Compiled is a schema in the form of one dialect.
type Compiled struct {
	// Schema is the output on one line, in the order of the original. Equal schemas give equal
	// bytes.
	Schema json.RawMessage
	Losses []Loss // in the order of the schema; nil means no losses

	back *back
	defs map[string]*back
}

// Kind is the effect of a loss on the calls that a model makes.
type Kind string

// The kinds of losses.
const (
	// Looser: the provider accepts values that the original refuses; such a call is refused
	// locally.
	Looser   Kind = "looser"
	Stricter Kind = "stricter" // the model cannot express a value that the original accepts
	Reshaped Kind = "reshaped" // the model expresses it in another form; Restore converts it back
	Note     Kind = "note"     // explanatory text is not sent, or sent as part of a description
)

// Loss is a part of the schema that the output does not express, or expresses in another form.
type Loss struct {
	Path    string `json:"path"` // JSON Pointer of its schema in the original; empty means the root
	Keyword string `json:"keyword"`
	Kind    Kind   `json:"kind"`
	Means   string `json:"means"`            // a sentence without a full stop
	Source  string `json:"source,omitempty"` // source of the rule that causes it
}

// String returns "path: keyword: means".
func (l Loss) String() string {
	return fmt.Sprintf("%s: %s: %s", cmp.Or(l.Path, "/"), l.Keyword, l.Means)
}

// Error is the reason why a schema cannot be expressed in a dialect. Every error of Compile is one.
type Error struct {
	Dialect string
	Path    string // JSON Pointer into the original; empty means the root
	Keyword string // empty if it concerns no keyword
	Why     string
	Source  string // source of the rule that requires it; empty if the input is not a schema
}

// Error returns "dialect: path: keyword: why".
func (e *Error) Error() string {
	s := e.Dialect + ": "
	if e.Path != "" {
		s += e.Path + ": "
	}
	if e.Keyword != "" {
		s += e.Keyword + ": "
	}
	return s + e.Why
}

// rulesJSON has the dialects, and the sources of their rules with a summary. Pages change; these
// were read in 2026. A report is an issue or a pull request that quotes the provider's error
// message.
//
//go:embed rules.json
var rulesJSON []byte

// all are the dialects, in a fixed order. Their rules are empty until load is called.
var all = []*Dialect{OpenAI, OpenAIStrict, Anthropic, AnthropicStrict, Gemini, GeminiJSON}

// OpenAI is the form of function tools that are not strict, in Responses and Chat Completions.
// OpenAI accepts almost all of JSON Schema. Compatible servers accept less, so simplifications
// without a cost (inlining, items) are made for them.
var OpenAI = &Dialect{Name: "openai"}

// OpenAIStrict is the form of function tools with strict: true, and of structured output. The
// provider enforces the output while the model writes.
var OpenAIStrict = &Dialect{Name: "openai-strict"}

// Anthropic is the form of input_schema in Messages: JSON Schema 2020-12 with restrictions for the
// root and the names of properties.
var Anthropic = &Dialect{Name: "anthropic"}

// AnthropicStrict is the form of tools with strict: true, and of structured output. The provider
// enforces the output while the model writes. A request may contain 20 such tools, and 24 optional
// properties in total; the sender must count them.
var AnthropicStrict = &Dialect{Name: "anthropic-strict"}

// Gemini is the form of a function declaration's parameters: a subset of OpenAPI 3.0, read as a
// protocol buffer without other names. GeminiJSON accepts more, but not in every version of the
// API.
var Gemini = &Dialect{Name: "gemini"}

// GeminiJSON is the form of parametersJsonSchema and responseJsonSchema, which accept JSON Schema.
// Recursion is not changed; the provider follows it for some levels.
var GeminiJSON = &Dialect{Name: "gemini-json"}

// load reads the rules of all dialects, once. The file is embedded, so an invalid one causes a
// panic.
var load = sync.OnceFunc(func() {
	var file struct {
		Sources  map[string]struct{ URL string }
		Dialects []Dialect
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		panic(err)
	}
	for i, d := range file.Dialects {
		for i, r := range d.Rules {
			d.Rules[i].Source = file.Sources[r.Source].URL
		}
		if d.Name != all[i].Name {
			panic("rules.json has the dialects in another order: " + d.Name)
		}
		*all[i] = d
	}
})
