// Package match compares what a run did with what a suite expects: JSON values with matchers, and
// the calls of a run with expected calls.
//
//	Parse({"path":"a.txt","text":{"$regex":"\\b70\\b"}}) ─▶ Matcher
//	Plan{Expect: calls, Order: …, Extra: …}.Compare(calls of the run) ─▶ Outcome
//
// A literal is equality as JSON: numbers by value, names in any order. An object with a name that
// begins with $ is an operator. What is expected and absent never matches. What is present and not
// expected matches in $subset alone.
package match

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/schema"
)

// Matcher decides about a value. It is safe for concurrent use.
type Matcher struct{ root node }

// node matches a value. present is false for a value that is not there.
type node interface {
	fits(value any, present bool) bool
}

// Parse reads a matcher. The error says where it is wrong, and reports a matcher that every value
// fits, or none.
func Parse(text json.RawMessage) (*Matcher, error) {
	value, err := jsonform.Value(text)
	if err != nil {
		return nil, err
	}
	root, err := parse(value, "", false)
	if err != nil {
		return nil, err
	}
	return &Matcher{root}, nil
}

// Fits reports whether a JSON value fits. An empty value is an absent one.
func (m *Matcher) Fits(text json.RawMessage) bool {
	if len(text) == 0 {
		return m.root.fits(nil, false)
	}
	value, err := jsonform.Value(text)
	if err != nil {
		return false
	}
	return m.root.fits(value, true)
}

// fault returns the error about a place in a matcher.
func fault(at, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if at == "" {
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("%s: %s", at, text)
}

// parse reads a matcher. Objects within $subset are subsets, too.
func parse(value any, at string, subset bool) (node, error) {
	switch value := value.(type) {
	case map[string]any:
		if name := operatorOf(value); name != "" {
			return parseOperator(name, value, at)
		}
		return parseObject(value, at, subset)
	case []any:
		list, err := parseList(value, at, subset)
		return sequence(list), err
	}
	return literal{value}, nil
}

func parseList(values []any, at string, subset bool) (list []node, err error) {
	for i, v := range values {
		n, err := parse(v, fmt.Sprintf("%s/%d", at, i), subset)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// operatorOf returns the operator of an object: "" means that it is a literal.
func operatorOf(object map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "$$") {
			return name
		}
	}
	return ""
}

func parseObject(value map[string]any, at string, subset bool) (node, error) {
	o := object{fields: map[string]node{}, open: subset}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		n, err := parse(value[name], at+"/"+name, subset)
		if err != nil {
			return nil, err
		}
		o.fields[strings.TrimPrefix(name, escape(name))] = n
	}
	return o, nil
}

// escape is the first $ of a name that begins with two.
func escape(name string) string {
	if strings.HasPrefix(name, "$$") {
		return "$"
	}
	return ""
}

// Literal returns the matcher that a JSON value alone fits. The error says that it is no JSON.
func Literal(value json.RawMessage) (json.RawMessage, error) {
	read, err := jsonform.Value(value)
	if err != nil {
		return nil, err
	}
	return jsonform.Marshal(escaped(read))
}

// escaped returns a value in which each name that begins with $ begins with two.
func escaped(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, v := range value {
			if strings.HasPrefix(name, "$") {
				name = "$" + name
			}
			out[name] = escaped(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = escaped(v)
		}
		return out
	}
	return value
}

// operators are what a name that begins with $ means.
func operators() map[string]func(argument any, at string) (node, error) {
	return map[string]func(argument any, at string) (node, error){
		"$regex":     parseRegex,
		"$contains":  parseContains,
		"$one_of":    parseOneOf,
		"$near":      parseNear,
		"$any":       func(any, string) (node, error) { return present{}, nil },
		"$absent":    func(any, string) (node, error) { return absent{}, nil },
		"$optional":  wrapped(func(n node) node { return optional{n} }),
		"$not":       wrapped(func(n node) node { return negated{n} }),
		"$subset":    parseSubset,
		"$unordered": parseUnordered,
		"$schema":    parseSchema,
		"$loose":     parseLoose,
	}
}

// Operators returns the names of all operators, sorted.
func Operators() []string { return slices.Sorted(maps.Keys(operators())) }

func parseOperator(name string, object map[string]any, at string) (node, error) {
	read := operators()[name]
	switch {
	case read == nil:
		hint := nearest.Hint(name, Operators())
		return nil, fault(at, "there is no operator %s (%s)", name, hint)
	case len(object) > 1:
		return nil, fault(at, "%s stands alone in its object", name)
	}
	return read(object[name], at+"/"+name)
}

func wrapped(wrap func(node) node) func(any, string) (node, error) {
	return func(argument any, at string) (node, error) {
		n, err := parse(argument, at, false)
		if err != nil {
			return nil, err
		}
		return wrap(n), nil
	}
}

func parseRegex(argument any, at string) (node, error) {
	text, ok := argument.(string)
	if !ok {
		return nil, fault(at, "want a text")
	}
	expression, err := Regexp(text)
	if err != nil {
		return nil, fault(at, "%v", err)
	}
	return matching{expression}, nil
}

// Regexp compiles an expression of a suite. An expression that matches the empty text is an error,
// because it matches in every text.
func Regexp(text string) (*regexp.Regexp, error) {
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if expression.MatchString("") {
		return nil, fmt.Errorf("the expression %q matches an empty text, so that it cannot fail", text)
	}
	return expression, nil
}

func parseContains(argument any, at string) (node, error) {
	if argument == "" {
		return nil, fault(at, "every text contains the empty one, so that this cannot fail")
	}
	inner, err := parse(argument, at, false)
	if err != nil {
		return nil, err
	}
	text, _ := argument.(string)
	return containing{text, inner}, nil
}

func parseOneOf(argument any, at string) (node, error) {
	values, ok := argument.([]any)
	if !ok || len(values) == 0 {
		return nil, fault(at, "want a list of values; no value fits an empty one")
	}
	list, err := parseList(values, at, false)
	return either(list), err
}

func parseNear(argument any, at string) (node, error) {
	fields, _ := argument.(map[string]any)
	value, hasValue := rational(fields["value"])
	within, hasWithin := rational(fields["within"])
	if !hasValue || !hasWithin || len(fields) != 2 || within.Sign() < 0 {
		return nil, fault(at, "want {value: NUMBER, within: NUMBER}")
	}
	return near{value, within}, nil
}

func parseSubset(argument any, at string) (node, error) {
	fields, ok := argument.(map[string]any)
	if !ok || len(fields) == 0 {
		return nil, fault(at, "want an object with a name; every object fits an empty one")
	}
	return parse(argument, at, true)
}

func parseUnordered(argument any, at string) (node, error) {
	values, ok := argument.([]any)
	if !ok {
		return nil, fault(at, "want a list")
	}
	list, err := parseList(values, at, false)
	return unordered(list), err
}

func parseSchema(argument any, at string) (node, error) {
	fields, isObject := argument.(map[string]any)
	if argument == true || isObject && len(fields) == 0 {
		return nil, fault(at, "every value fits this schema, so that it cannot fail")
	}
	text, err := json.Marshal(argument)
	if err != nil {
		return nil, fault(at, "%v", err)
	}
	compiled, _, err := schema.CompileOutput(text)
	if err != nil {
		return nil, fault(at, "%v", err)
	}
	return conforming{compiled}, nil
}

func parseLoose(argument any, at string) (node, error) {
	text, ok := argument.(string)
	if !ok {
		return nil, fault(at, "want a text")
	}
	return loose(Loose(text)), nil
}
