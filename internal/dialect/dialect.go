// Package dialect says a tool's JSON Schema in the form that a provider accepts. Providers take subsets of JSON Schema, each
// another one, and refuse the whole request, all its tools included, for one keyword too many.
//
//	                    ┌─ Schema   what to send, the same bytes every time
//	schema ─▶ Compile ──┼─ Losses   what the sent form does not say, with its place and why
//	                    └─ Restore  turns arguments back into what the original asks for
//
// The original is never changed, and calls are still checked against it: a lost limit is caught locally, and the model is told of
// it in a description. What a dialect is stands in rules.go as data, each rule with the page or the error message that it was
// learned from. compile.go carries the rules out, with light.go for dialects that take nearly all of JSON Schema, and typed.go for
// those that take little. Where a schema cannot be said at all (a free-form object in OpenAI's strict form), Compile returns an
// *Error, so that this tool alone is left out or sent in another form.
//
// Normalize turns the documents that circulate as tool descriptions without being JSON Schema (type "dict", "float", "ArrayList",
// required: true) into JSON Schema. Lint does all of it for a list of tools and looks at their names and descriptions, too.
//
// Everything here is safe for concurrent use, and meant to be called once for a tool and a provider.
package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Dialect is what one provider accepts, as data.
type Dialect struct {
	Name  string // as on the command line: openai-strict
	Title string // for people
	Rules []Rule
}

// Rule is one thing that a provider asks of a schema.
type Rule struct {
	Trait   Trait
	Words   []string       // the keywords or formats that it is about
	Pattern *regexp.Regexp // what names must match
	Limit   int            // the number that it is about
	Says    string         // the rule, in a sentence
	Source  string         // where it was learned: a page, or a report that quotes the error
}

// Trait names what a Rule asks for.
type Trait string

// The traits. Those without a remark ask for what they are called.
const (
	RootObject       Trait = "root-object"       // the root has type object, and properties
	RootWithout      Trait = "root-without"      // keywords that the root must not have
	Keywords         Trait = "keywords"          // the only keywords that are taken; without this rule: all of JSON Schema
	Formats          Trait = "formats"           // the only formats that are taken, as type:format
	TypeNeeded       Trait = "type-needed"       // every schema states one type, or is an anyOf
	PropertiesNeeded Trait = "properties-needed" // every object has properties
	ItemsNeeded      Trait = "items-needed"      // every array has items that are a schema
	AllRequired      Trait = "all-required"      // every property is required
	Closed           Trait = "closed"            // every object refuses further properties
	RequiredDefined  Trait = "required-defined"  // what is required is among the properties
	PropertyNames    Trait = "property-names"    // a pattern for the names of properties
	RefsTop          Trait = "refs-top"          // $ref points to $defs at the root, nowhere else
	RefAlone         Trait = "ref-alone"         // nothing stands beside $ref
	RefsInlined      Trait = "refs-inlined"      // what is not recursive is better sent without $ref
	RecursionCut     Trait = "recursion-cut"     // there is no $ref at all: recursion ends after some levels
	AnyOfAlone       Trait = "any-of-alone"      // nothing stands beside anyOf
	NullableFlag     Trait = "nullable-flag"     // null is allowed by nullable: true, not by a type
	UpperTypes       Trait = "upper-types"       // types are OBJECT, STRING …
	StringEnums      Trait = "string-enums"      // enum is for strings alone
	FilledEnums      Trait = "filled-enums"      // none of the strings of an enum is empty
	PlainPatterns    Trait = "plain-patterns"    // a pattern does not look around
	MaxMinItems      Trait = "max-min-items"     // minItems is at most this
	MaxDepth         Trait = "max-depth"         // levels of objects and arrays
	MaxProperties    Trait = "max-properties"    // properties of all objects together
	MaxEnum          Trait = "max-enum"          // values of all enums together
	MaxText          Trait = "max-text"          // characters of all names, enum values and constants together
	MaxEnumText      Trait = "max-enum-text"     // characters of the values of one enum of more than 250 strings
)

// All returns the dialects, in a fixed order.
func All() []*Dialect {
	return []*Dialect{OpenAI, OpenAIStrict, Anthropic, AnthropicStrict, Gemini, GeminiJSON}
}

// ByName returns the dialect of that name; nil when there is none.
func ByName(name string) *Dialect {
	for _, d := range All() {
		if d.Name == name {
			return d
		}
	}
	return nil
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

// Compiled is a schema as one dialect says it.
type Compiled struct {
	Schema json.RawMessage // on one line, in the order of the original; equal schemas give equal bytes
	Losses []Loss          // in the order of the schema; nil: nothing is lost

	back *back
	defs map[string]*back
}

// Kind says what a loss means for the calls that come back.
type Kind string

// The kinds of losses.
const (
	Looser   Kind = "looser"   // the provider lets pass what the original refuses; such a call is refused locally
	Stricter Kind = "stricter" // the model cannot say something that the original would take
	Reshaped Kind = "reshaped" // the model says it in another way; Restore turns it back
	Note     Kind = "note"     // what only explains is not sent, or sent as part of a description
)

// Loss is something that the sent form does not say, or says in another way.
type Loss struct {
	Path    string `json:"path"` // JSON Pointer of the schema that has it, in the original; "" is the root
	Keyword string `json:"keyword"`
	Kind    Kind   `json:"kind"`
	Means   string `json:"means"`            // a sentence without a full stop
	Source  string `json:"source,omitempty"` // of the rule that asks for it
}

// String returns "path: keyword: means".
func (l Loss) String() string {
	return fmt.Sprintf("%s: %s: %s", cmp.Or(l.Path, "/"), l.Keyword, l.Means)
}

// Error says why a schema cannot be said in a dialect. Every error of Compile is one.
type Error struct {
	Dialect string
	Path    string // JSON Pointer into the original; "" is the root
	Keyword string // "" where it is about no keyword
	Why     string
	Source  string // of the rule that asks for it; "" where there is no schema
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
