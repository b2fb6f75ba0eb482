package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/eval/internal/match"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/tools/outside"
)

// said.go: the checks of what a run said, and why it stopped: answer, output, stop.

// shown cuts a text for a reason.
func shown(s string) string { return strconv.Quote(text.Clip(s, 80)) }

// demand is one demand on a text. It returns why the text does not fulfil it.
type demand func(answer string) string

func (c *Compiler) answer(d *Definition, path string) func(*trial.Record) verdict {
	demands := c.demands(d.Answer, path)
	if len(demands) == 0 {
		c.report(path, "contains, equals, regex, number, …", "nothing is said of the answer, so that this cannot fail")
	}
	return func(r *trial.Record) verdict {
		for _, unmet := range demands {
			if reason := unmet(r.Answer); reason != "" {
				return verdict{reason: reason}
			}
		}
		return verdict{}
	}
}

func (c *Compiler) demands(a *Answer, path string) (all []demand) {
	form := func(s string) string { return s }
	if a.Fold {
		form = folded
	}
	add := func(text string, words string, has func(s, part string) bool) {
		all = append(all, func(answer string) string {
			if has(form(answer), form(text)) {
				return ""
			}
			return fmt.Sprintf("the answer %s %s %s", shown(answer), words, shown(text))
		})
	}

	for _, text := range c.texts(a.Contains, path+".contains") {
		add(text, "does not contain", strings.Contains)
	}
	for _, text := range c.texts(a.Excludes, path+".excludes") {
		add(text, "contains", func(s, part string) bool { return !strings.Contains(s, part) })
	}
	if a.Equals != "" {
		add(a.Equals, "is not", func(s, whole string) bool { return s == whole })
	}
	if a.Starts != "" {
		add(a.Starts, "does not start with", strings.HasPrefix)
	}
	if a.Ends != "" {
		add(a.Ends, "does not end with", strings.HasSuffix)
	}
	return append(all, c.otherDemands(a, form, path)...)
}

func (c *Compiler) otherDemands(a *Answer, form func(string) string, path string) (all []demand) {
	if a.ContainsAny != nil {
		all = append(all, c.containsAny(a.ContainsAny, form, path+".contains_any"))
	}
	if a.Regex != "" {
		expression, err := match.Regexp(a.Regex)
		if err != nil {
			c.report(path+".regex", "", "%v", err)
		}
		all = append(all, func(answer string) string {
			if expression.MatchString(answer) {
				return ""
			}
			return fmt.Sprintf("nothing in the answer %s matches %s", shown(answer), a.Regex)
		})
	}
	if a.Number != nil {
		all = append(all, a.Number.misses)
	}
	if a.JSON != nil {
		inner := c.value(a.JSON, path+".json")
		all = append(all, func(answer string) string { return inner(json.RawMessage(answer)) })
	}
	return all
}

func (c *Compiler) containsAny(texts []string, form func(string) string, path string) demand {
	if len(texts) == 0 || slices.Contains(texts, "") {
		c.report(path, "remove it", "every text contains an empty one, so that this cannot fail")
	}
	return func(answer string) string {
		for _, text := range texts {
			if strings.Contains(form(answer), form(text)) {
				return ""
			}
		}
		return fmt.Sprintf("the answer %s contains none of %q", shown(answer), texts)
	}
}

// folded is a text in lower case, without spaces.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

var numbers = regexp.MustCompile(`[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?`)

// misses says how the number of a text is another one.
func (n *Number) misses(answer string) string {
	found := numbers.FindAllString(answer, -1)
	switch {
	case len(found) == 0:
		return fmt.Sprintf("the answer %s has no number", shown(answer))
	case len(found) > 1 && n.Pick != "last":
		return fmt.Sprintf("the answer %s has %d numbers, want one", shown(answer), len(found))
	}

	last := found[len(found)-1]
	got, err := strconv.ParseFloat(strings.ReplaceAll(last, ",", ""), 64)
	within := max(n.Within, math.Abs(*n.Value)*n.Percent/100)
	// The distance of two decimal fractions has the error of their binary forms.
	slack := 1e-12 * max(math.Abs(got), math.Abs(*n.Value))
	if err != nil || math.Abs(got-*n.Value) > within+slack {
		return fmt.Sprintf("the number of the answer is %s, want %g", last, *n.Value)
	}
	return ""
}

func (c *Compiler) output(d *Definition, path string) func(*trial.Record) verdict {
	inner := c.value(d.Output, path)
	return func(r *trial.Record) verdict {
		if r.Output == nil {
			return verdict{reason: "the run has no output"}
		}
		return verdict{reason: inner(r.Output)}
	}
}

// value compiles what is said of a JSON value. The function returns why a value is not that.
func (c *Compiler) value(o *Output, path string) func(json.RawMessage) string {
	if o.Schema == nil && len(o.At) == 0 {
		c.report(path, "schema, or at", "nothing is said of the value, so that this cannot fail")
	}
	matchers := map[string]*match.Matcher{}
	for _, pointer := range slices.Sorted(maps.Keys(o.At)) {
		if pointer != "" && !strings.HasPrefix(pointer, "/") {
			c.report(path+".at", "/"+pointer, "%q is no JSON Pointer", pointer)
		}
		matchers[pointer] = c.Matcher(o.At[pointer], path+".at."+pointer)
	}

	var fits *match.Matcher
	if o.Schema != nil {
		fits = c.Matcher(outside.JSON(`{"$schema":`+string(o.Schema)+`}`), path+".schema")
	}
	return func(text json.RawMessage) string {
		root, err := jsonform.Value(text)
		switch {
		case err != nil:
			return fmt.Sprintf("%s is no JSON", shown(string(text)))
		case fits != nil && !fits.Fits(text):
			return fmt.Sprintf("%s does not fit the schema", shown(string(text)))
		}
		for _, pointer := range slices.Sorted(maps.Keys(matchers)) {
			if reason := mismatch(root, pointer, matchers[pointer]); reason != "" {
				return reason
			}
		}
		return ""
	}
}

// Matcher compiles a matcher at a path. Nothing is no matcher: nil, which stands for any value.
func (c *Compiler) Matcher(text outside.JSON, path string) *match.Matcher {
	if text == nil {
		return nil
	}
	m, err := match.Parse(json.RawMessage(text))
	if err != nil {
		c.report(path, "docs/eval.md has the matchers", "%v", err)
	}
	return m
}

// mismatch says which value at a pointer does not fit.
func mismatch(root any, pointer string, m *match.Matcher) string {
	values := selected([]any{root}, strings.Split(pointer, "/")[1:])
	if pointer == "" {
		values = []any{root}
	}
	if len(values) == 0 {
		if m.Fits(nil) {
			return ""
		}
		return fmt.Sprintf("there is no value at %s", pointer)
	}
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil || !m.Fits(text) {
			return fmt.Sprintf("%s at %s does not fit", text, pointer)
		}
	}
	return ""
}

// selected returns the values below values at the segments of a pointer.
func selected(values []any, segments []string) []any {
	for _, segment := range segments {
		var next []any
		for _, v := range values {
			next = append(next, members(v, segment)...)
		}
		values = next
	}
	return values
}

// members returns the member of v with a name, or all for *.
func members(v any, segment string) []any {
	name := strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
	switch v := v.(type) {
	case map[string]any:
		if segment == "*" {
			return slices.Collect(maps.Values(v))
		}
		if one, has := v[name]; has {
			return []any{one}
		}
	case []any:
		if segment == "*" {
			return v
		}
		i, err := strconv.Atoi(segment)
		if err == nil && i >= 0 && i < len(v) {
			return v[i : i+1]
		}
	}
	return nil
}

// stops are the causes with which a run ends.
var stops = []string{"answer", "finished", "pending", "limit", "stalled", "cancelled", "failed"}

func (c *Compiler) stop(d *Definition, path string) func(*trial.Record) verdict {
	wanted := c.texts(d.Stop, path)
	for _, word := range wanted {
		if !slices.Contains(stops, word) {
			c.report(path, nearest.Hint(word, stops), "no run stops with %q", word)
		}
	}
	if len(wanted) >= len(stops) {
		c.report(path, "", "every run stops with one of these, so that this cannot fail")
	}
	return func(r *trial.Record) verdict {
		if slices.Contains(wanted, r.Stop) {
			return verdict{}
		}
		reason := fmt.Sprintf("the run stopped with %s, want %s", r.Stop, strings.Join(wanted, " or "))
		if r.Cause != "" {
			reason += ": " + text.Clip(r.Cause, 120)
		}
		return verdict{reason: reason}
	}
}
