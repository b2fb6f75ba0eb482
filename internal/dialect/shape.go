package dialect

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The keywords, by what their values can be.
var (
	anyValue   = []string{"default", "const", "example"}
	olderForms = []string{"items", "type", "required", "dependencies", "exclusiveMinimum", "exclusiveMaximum"}
	flags      = []string{"uniqueItems", "deprecated", "readOnly", "writeOnly"}
	texts      = []string{
		"title", "description", "pattern", "format", "$ref", "$dynamicRef", "$recursiveRef", "$schema",
		"contentEncoding", "contentMediaType", "$comment",
	}
)

// shaped reports whether v has the kind that the keyword requires.
func shaped(keyword string, v any) bool {
	_, isObject := v.(*object)
	_, isList := v.([]any)
	_, isNumber := v.(json.Number)
	_, isBool := v.(bool)
	switch {
	case slices.Contains(mapSchemas, keyword), keyword == "dependentRequired":
		return isObject
	case slices.Contains(listSchemas, keyword), keyword == "enum", keyword == "required":
		return isList
	case keyword == "items":
		return true // also a list, in older drafts
	case slices.Contains(oneSchema, keyword):
		return isObject || isBool || isText(v)
	case slices.Contains(counts, keyword):
		return isNumber && isCount(v)
	case keyword == "multipleOf":
		r, ok := rat(v)
		return isNumber && (!ok || r.Sign() > 0)
	case strings.HasPrefix(keyword, "min"), strings.HasPrefix(keyword, "max"), strings.HasPrefix(keyword, "exclusiveM"):
		return isNumber || !slices.Contains(vocabulary, keyword)

	case slices.Contains(flags, keyword):
		return isBool
	case slices.Contains(texts, keyword):
		return isText(v)
	case keyword == "$anchor", keyword == "$dynamicAnchor":
		name, _ := v.(string)
		return anchorName.MatchString(name)
	case keyword == "$id":
		address, _ := v.(string)
		u, err := url.Parse(address)
		isAddress := isText(v) && err == nil && !strings.Contains(address, " ")
		return isAddress && u.Fragment == "" // older generators write the place of the schema
	case keyword == "examples":
		return isList
	}
	return true
}

// anchorName matches the values of $anchor.
var anchorName = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`)

// counts are the keywords whose value is a number of things.
var counts = strings.Fields("minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties")

// isCount reports whether v is a whole number that is not negative.
func isCount(v any) bool {
	r, ok := rat(v)
	return !ok || r.IsInt() && r.Sign() >= 0
}

func isList(v any) bool { _, ok := v.([]any); return ok }

func isSchema(v any) bool {
	switch v.(type) {
	case *object, bool, string:
		return true
	}
	return false
}

func isText(v any) bool { _, ok := v.(string); return ok }

// senseless reports whether v, the value of a keyword that has been converted from its older and
// foreign forms, still has no form of JSON Schema.
func senseless(k string, v any) bool {
	switch k {
	case "type":
		list, isList := v.([]any)
		return !isText(v) && (!isList || len(list) == 0)
	case "items":
		return !isSchema(v)
	case "exclusiveMinimum", "exclusiveMaximum":
		return !shaped(k, v)
	}
	return k == "dependencies"
}
