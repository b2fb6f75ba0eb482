package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
)

// A keyword that cannot be sent becomes a hint, a text in the description: the provider does not
// enforce it, but the model knows it.

// lost reports those keywords of o that o has as not enforced, and returns hints about them for the
// model.
func (c *compiler) lost(o *object, keywords []string, t Trait) (hints []string) {
	for _, k := range slices.Clone(keywords) {
		isPartOfIf := k == "then" || k == "else"
		if !o.has(k) || isPartOfIf || !slices.Contains(vocabulary, k) {
			continue
		}
		if k == "uniqueItems" && o.get(k) == false {
			continue
		}

		h := hint(k, o.get(k))
		if h == "" {
			c.lose(o.ptr, k, Looser, t, "not enforced")
			continue
		}
		c.lose(o.ptr, k, Looser, t, "not enforced, but described: %s", h)
		hints = append(hints, h)
	}
	return hints
}

// limitWords are the words before and after the value of a keyword.
var limitWords = map[string][2]string{
	"minLength": {"at least ", "character"}, "maxLength": {"at most ", "character"},
	"minItems": {"at least ", "item"}, "maxItems": {"at most ", "item"},
	"minProperties": {"at least ", "field"},
	"minimum":       {"at least "}, "maximum": {"at most "},
	"exclusiveMinimum": {"more than "}, "exclusiveMaximum": {"less than "},
	"multipleOf": {"a multiple of "}, "const": {"always "},
}

// hint describes a keyword for the model. It returns "" if no short sentence can.
func hint(keyword string, v any) string {
	shown := clip(show(v), 120)
	if words, ok := limitWords[keyword]; ok {
		return words[0] + count(shown, words[1])
	}
	switch keyword {
	case "pattern":
		s, _ := v.(string)
		return "matches " + clip(s, 120)
	case "format":
		s, _ := v.(string)
		return "format: " + s
	case "uniqueItems":
		return "no item twice"
	case "enum":
		list, _ := v.([]any)
		words := make([]string, len(list))
		for i, x := range list {
			words[i] = clip(show(x), 60)
		}
		return "one of " + text.First(words, 20, ", or # more")
	}

	if o, ok := v.(*object); ok {
		return hintOfObject(keyword, o)
	}
	return ""
}

// hintOfObject is hint for a keyword whose value is a schema, or an object of schemas.
func hintOfObject(keyword string, o *object) string {
	switch keyword {
	case "not":
		if len(o.keys) != 1 {
			return ""
		}
		if h := hint(o.keys[0], o.vals[o.keys[0]]); h != "" {
			return "not: " + h
		}
		if list := o.words("required"); len(list) > 0 {
			return "not with " + strings.Join(list, " and ")
		}

	case "additionalProperties":
		if t := kind(o); t != "" {
			return "fields of any name, each " + t
		}
	case "patternProperties":
		return "fields whose names match " + clip(strings.Join(o.keys, " or "), 120)
	case "propertyNames":
		if pattern := o.text("pattern"); pattern != "" {
			return "field names match " + clip(pattern, 120)
		}
	case "contains":
		if t := kind(o); t != "" {
			return "with " + t + " among the items"
		}

	case "dependentRequired":
		const most = 5
		var parts []string
		for _, k := range o.keys {
			if list := o.words(k); len(list) > 0 && len(parts) < most {
				parts = append(parts, k+" needs "+strings.Join(list, " and "))
			}
		}
		return strings.Join(parts, ", ")
	}
	return ""
}

func count(n, what string) string {
	switch {
	case what == "":
		return n
	case n == "1":
		return n + " " + what
	}
	return n + " " + what + "s"
}

// kind describes a schema in two or three words. It returns "" if they cannot.
func kind(o *object) string {
	switch t := o.text("type"); t {
	case "integer", "array", "object":
		return "an " + t
	case "string", "number", "boolean":
		return "a " + t
	}
	if v, ok := o.vals["const"]; ok {
		return clip(show(v), 60)
	}
	return ""
}

// tuple describes the elements of a tuple.
func tuple(prefix []any) string {
	var parts []string
	for _, v := range prefix {
		o, _ := v.(*object)
		if o == nil {
			o = newObject("")
		}
		p := kind(o)
		if d := o.text("title") + o.text("description"); p == "" || d != "" && len(d) < 40 {
			p = strings.TrimSpace(p + " " + d)
		}
		p = cmp.Or(p, "anything")
		parts = append(parts, p)
	}
	return "items in this order: " + clip(strings.Join(parts, ", "), 200)
}

// annotate returns the description and the title to send, including hints about lost keywords.
func (c *compiler) annotate(w *object, hints []string) (text, title string) {
	text = w.text("description")
	title = w.text("title")
	if title != "" && !c.dialect.takes("title") {
		c.lose(w.ptr, "title", Note, Keywords, "not sent")
		if text == "" && !sameName(title, w.ptr) {
			text = title
		}
		title = ""
	}
	for _, k := range []string{"default", "examples", "example", "deprecated"} {
		v := w.get(k)
		if !w.has(k) || c.dialect.takes(k) {
			continue
		}
		if k == "deprecated" && v != true {
			continue
		}
		c.lose(w.ptr, k, Note, Keywords, "stated in the description")

		list, isList := v.([]any)
		switch {
		case k == "deprecated":
			hints = append(hints, k)
		case k == "default" && (v == nil || strings.Contains(strings.ToLower(text), k)):
			// The description says it already, or there is nothing to say.
		case k == "examples" && isList:
			if len(list) > 0 {
				hints = append(hints, "example: "+clip(show(list[0]), 80))
			}
		default:
			hints = append(hints, strings.TrimSuffix(k, "s")+": "+clip(show(v), 80))
		}
	}
	return withHints(text, hints), title
}

// sameName reports whether a title only repeats the name of its property: Max Results for
// max_results.
func sameName(title, ptr string) bool {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(s))
	}
	return fold(title) == fold(ptr[strings.LastIndexByte(ptr, '/')+1:])
}

func withHints(text string, hints []string) string {
	var fresh []string
	for _, h := range hints {
		if h != "" && !slices.Contains(fresh, h) && !strings.Contains(text, h) {
			fresh = append(fresh, h)
		}
	}
	add := strings.Join(fresh, "; ")
	switch {
	case add == "":
		return text
	case text == "":
		return add
	}
	return text + " (" + add + ")"
}

// describe adds hints to the description of out.
func describe(out *object, hints []string) {
	if out == nil {
		return
	}
	if text := withHints(out.text("description"), hints); text != "" {
		out.set("description", text)
	}
}

// finish adds the annotations of w to out. If anyOf must have no siblings, the first alternative
// gets them.
func (c *compiler) finish(out, w *object, hints []string) {
	text, title := c.annotate(w, hints)
	at := out
	if list := out.list("anyOf"); list != nil && c.dialect.has(AnyOfAlone) {
		first := list[0].(*object).clone()
		list = slices.Clone(list)
		list[0] = first
		out.set("anyOf", list)
		if own := first.text("description"); own != "" && text != "" {
			text += " Here: " + own
		}
		at = first
	}

	if title != "" {
		at.set("title", title)
	}
	if text != "" {
		if own := at.text("description"); own != "" && at == out && own != text {
			text = withHints(text, []string{own})
		}
		at.set("description", text)
	}
}
