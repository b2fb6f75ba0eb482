package core_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// The calls are real and broke their tool's schema. Each is repaired to fit, or answered with the
// name of the wrong field.
func TestCallsThatBreakTheSchema(t *testing.T) {
	mended, answered := 0, 0
	for _, c := range corpora.Lines[struct {
		Arguments  map[string]json.RawMessage
		Schema     json.RawMessage
		FirstError string `json:"first_error"`
	}](t, "malformed-json/schema-violating-calls.dev.jsonl") {
		args, _ := json.Marshal(c.Arguments)
		var ran []string
		x := execute(t, probe(string(c.Schema), &ran), string(args))
		switch {
		case x.Outcome == pawl.OutcomeOK && len(x.Repairs) > 0:
			mended++
		case x.Outcome != pawl.OutcomeInvalid || len(ran) > 0:
			t.Errorf("%s: %s, ran with %q", args, x.Outcome, ran)
		default:
			answered++
			if !slices.ContainsFunc(slices.Collect(maps.Keys(c.Arguments)), func(name string) bool {
				return strings.Contains(x.Result.Text(), strconv.Quote(name)) ||
					strings.Contains(x.Result.Text(), "\n- field "+name)
			}) {
				t.Errorf("%s: %q names no field of it", args, x.Result.Text())
			}
		}
	}
	t.Logf("%d calls mended, %d answered with the field", mended, answered)
}

// knownCall is a correct call with its tool's schema.
type knownCall struct {
	schema map[string]any
	args   map[string]any
}

func knownCalls(t *testing.T) (out []knownCall) {
	t.Helper()
	for _, name := range corpora.Glob(t, "bfcl/dev/*.jsonl.gz") {
		for line := range bytes.Lines(corpora.Read(t, name)) {
			var c struct {
				Functions []struct {
					Name       string
					Parameters map[string]any
				}
				Truth []struct {
					Name string
					Args map[string][]any `json:"args_allowed"`
				} `json:"ground_truth"`
			}
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			for _, truth := range c.Truth {
				for _, f := range c.Functions {
					if f.Name == truth.Name {
						args := map[string]any{}
						for name, allowed := range truth.Args {
							if len(allowed) > 0 && allowed[0] != "" {
								args[name] = first(allowed[0])
							}
						}
						// so that an additional field is a fault
						f.Parameters["additionalProperties"] = false
						out = append(out, knownCall{f.Parameters, args})
					}
				}
			}
		}
	}
	return out
}

// first selects the first allowed value, also in objects whose fields are lists of allowed values.
func first(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, v := range m {
		if list, ok := v.([]any); ok && len(list) > 0 {
			if list[0] != "" {
				out[k] = first(list[0])
			}
			continue
		}
		out[k] = v
	}
	return out
}

// faultKind breaks the text of correct arguments in one way. break returns the broken text and its
// field; ok is false if the fault does not apply.
type faultKind struct {
	name  string
	must  string // the verdict: repaired, rejected, or either
	broke func(text string, c knownCall) (broken, field string, ok bool)
}

func swap(old, new string, last bool) func(string, knownCall) (string, string, bool) {
	return func(text string, _ knownCall) (string, string, bool) {
		at := strings.Index(text, old)
		if last {
			at = strings.LastIndex(text, old)
		}
		if at < 0 {
			return "", "", false
		}
		return text[:at] + new + text[at+len(old):], "", true
	}
}

// field breaks the first argument that change changes.
func field(change func(name string, v any, schema map[string]any, args map[string]any) bool) func(string,
	knownCall) (string, string, bool) {
	return func(_ string, c knownCall) (string, string, bool) {
		args := maps.Clone(c.args)
		props, _ := c.schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(args)) {
			s, _ := props[name].(map[string]any)
			if change(name, args[name], s, args) {
				return python(args), name, true
			}
		}
		return "", "", false
	}
}

// python writes JSON as Python does, with spaces after commas and colons.
func python(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, python(k)+": "+python(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, python(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSpace(b.String())
}

// repr writes v in the form of Python's repr, for strings and literals.
func repr(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, repr(k)+": "+repr(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, repr(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
			return python(v)
		}
		s := python(v)
		return "'" + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`), "'", `\'`) + "'"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case nil:
		return "None"
	}
	return python(v)
}

func isType(s map[string]any, types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool { return s["type"] == t })
}

var faultKinds = []faultKind{
	{"trailing comma", "mended", func(s string, c knownCall) (string, string, bool) { return s[:len(s)-1] + ",}", "", len(c.args) > 0 }},
	{"missing comma", "mended", func(s string, c knownCall) (string, string, bool) {
		names := slices.Sorted(maps.Keys(c.args))
		if len(names) < 2 {
			return "", "", false
		}
		return swap(", "+python(names[1])+": ", " "+python(names[1])+": ", true)(s, c)
	}},
	{"single quotes", "mended", func(_ string, c knownCall) (string, string, bool) {
		return strings.NewReplacer("True", "true", "False", "false", "None", "null").Replace(repr(c.args)), "", len(c.args) > 0
	}},
	{"unquoted key", "mended", func(s string, c knownCall) (string, string, bool) {
		for name := range c.args {
			return strings.Replace(s, python(name)+": ", name+": ", 1), "", true
		}
		return "", "", false
	}},
	{"fence", "mended", func(s string, _ knownCall) (string, string, bool) { return "```json\n" + s + "\n```", "", true }},
	{"prose before", "mended", func(s string, _ knownCall) (string, string, bool) {
		return "Here are the arguments for the call: " + s, "", true
	}},
	{"prose after", "mended", func(s string, _ knownCall) (string, string, bool) {
		return s + "\n\nLet me know if you need anything else!", "", true
	}},
	{"Python literals", "mended", func(s string, c knownCall) (string, string, bool) {
		text := strings.NewReplacer(": true", ": True", ": false", ": False", ": null", ": None").Replace(s)
		return text, "", text != s
	}},
	{"NaN", "refused", func(s string, c knownCall) (string, string, bool) {
		for _, name := range slices.Sorted(maps.Keys(c.args)) {
			if n, ok := c.args[name].(json.Number); ok {
				return strings.Replace(s, python(name)+": "+string(n), python(name)+": NaN", 1), "", true
			}
		}
		return "", "", false
	}},
	{"comment", "mended", func(s string, c knownCall) (string, string, bool) { return "{ // as asked\n" + s[1:], "", true }},
	{"cut at 1/3", "refused", func(s string, c knownCall) (string, string, bool) { return s[:len(s)/3], "", len(c.args) > 0 }},
	{"cut at 2/3", "refused", func(s string, c knownCall) (string, string, bool) { return s[:len(s)*2/3], "", len(c.args) > 0 }},
	{"double-encoded", "mended", func(s string, c knownCall) (string, string, bool) { return python(s), "", true }},
	{"number as string", "mended", field(func(name string, v any, s, args map[string]any) bool {
		n, ok := v.(json.Number)
		args[name] = v
		if ok && isType(s, "integer", "number") {
			args[name] = string(n)
			return true
		}
		return false
	})},
	{"bool as string", "mended", field(func(name string, v any, s, args map[string]any) bool {
		b, ok := v.(bool)
		if ok && isType(s, "boolean") {
			args[name] = strconv.FormatBool(b)
		}
		return ok && isType(s, "boolean")
	})},
	{"scalar for array", "mended", field(func(name string, v any, s, args map[string]any) bool {
		list, ok := v.([]any)
		if ok = ok && len(list) == 1 && isType(s, "array"); ok {
			args[name] = list[0]
		}
		return ok
	})},
	{"wrong key case", "mended", field(func(name string, v any, s, args map[string]any) bool {
		other := strings.ToUpper(name[:1]) + name[1:]
		if other == name {
			other = strings.ToLower(name[:1]) + name[1:]
		}
		if _, there := args[other]; there || other == name {
			return false
		}
		delete(args, name)
		args[other] = v
		return true
	})},
	{"extra key", "refused", func(_ string, c knownCall) (string, string, bool) {
		args := maps.Clone(c.args)
		args["zz_extra"] = 1
		return python(args), "zz_extra", true
	}},
	{"missing required", "refused", func(_ string, c knownCall) (string, string, bool) {
		required, _ := c.schema["required"].([]any)
		for _, r := range required {
			if _, there := c.args[r.(string)]; there {
				args := maps.Clone(c.args)
				delete(args, r.(string))
				return python(args), r.(string), true
			}
		}
		return "", "", false
	}},
	{"enum near-miss", "either", field(func(name string, v any, s, args map[string]any) bool {
		word, ok := v.(string)
		allowed, _ := s["enum"].([]any)
		if ok = ok && len(allowed) > 0 && len(word) > 1; ok {
			args[name] = word[:len(word)-1]
			if len(word)%2 == 0 {
				args[name] = strings.ToUpper(word)
			}
		}
		return ok && !slices.Contains(allowed, args[name])
	})},
}

// Correct calls are broken in twenty ways. Each ends with the correct arguments or is rejected with
// the name of the field, and never runs with other arguments.
func TestBrokenCalls(t *testing.T) {
	soak.Sequential(t)
	type count struct{ tried, mended, refused int }
	counts := make([]count, len(faultKinds))
	skipped, wrong := 0, 0
	calls := knownCalls(t)
	for _, c := range calls {
		schema, _ := json.Marshal(c.schema)
		var ran []string
		tool := probe(string(schema), &ran)
		whole := python(c.args)
		if x := execute(t, tool, whole); x.Outcome != pawl.OutcomeOK || len(x.Repairs) > 0 {
			skipped++ // the corpus' own schema rejects its correct call
			continue
		}
		for i, kind := range faultKinds {
			broken, field, ok := kind.broke(whole, c)
			if !ok {
				continue
			}
			ran = nil
			counts[i].tried++
			x := execute(t, tool, broken)
			switch {
			case len(ran) > 0:
				counts[i].mended++
				var got, want any
				_ = json.Unmarshal([]byte(ran[0]), &got)
				_ = json.Unmarshal([]byte(whole), &want)
				if diff := cmp.Diff(got, want); diff != "" || len(x.Repairs) == 0 || kind.must == "refused" {
					wrong++
					t.Errorf("%s: %s ran with %s, repairs %q", kind.name, broken, ran[0], x.Repairs)
				}
			case x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), field):
				t.Errorf("%s: %s: %s, %q does not name %s", kind.name, broken, x.Outcome, x.Result.Text(), field)
			default:
				if counts[i].refused++; kind.must == "mended" && counts[i].refused <= 3 {
					t.Logf("%s refused: %s: %s", kind.name, broken, x.Result.Text())
				}
			}
		}
	}
	for i, kind := range faultKinds {
		n := counts[i]
		t.Logf("%-17s %5d tried %5d mended %5d refused", kind.name, n.tried, n.mended, n.refused)
		if n.tried == 0 || kind.must == "mended" && n.mended*100 < n.tried*95 {
			t.Errorf("%s: %d of %d mended, want 95 %%", kind.name, n.mended, n.tried)
		}
	}
	t.Logf("%d calls, %d left out since they do not fit their own schema, %d wrong values", len(calls), skipped, wrong)
}
