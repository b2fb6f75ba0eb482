package core_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// All arguments that pawl passes to a tool fit the tool's own schema by the verdict of another
// validator. The schemas are from real tools. The arguments are made to fit, made almost to fit,
// and written in the style of models. The other validator judges the arguments that the tool runs
// with.
func TestWhatRunsFitsTheOriginal(t *testing.T) {
	soak.Sequential(t)
	schemas, refused, unread, ran, mended, invalid := 0, map[string]int{}, 0, 0, 0, 0
	for i, r := range corpora.Lines[struct {
		ID     string
		Schema json.RawMessage
	}](t, "tool-schemas/dev.jsonl.gz") {
		var args []string
		tool := probe(string(r.Schema), &args)
		if err := tool.Check(); err != nil {
			why := strings.Split(strings.TrimPrefix(err.Error(), "tool probe: input schema: "), "\n")
			refused[strings.TrimLeft(why[len(why)-1], " -")]++
			continue
		}
		judge, err := judge(r.Schema)
		if err != nil {
			unread++
			continue
		}
		schemas++
		var doc map[string]any
		json.Unmarshal(r.Schema, &doc)
		m := guesser{Rand: rand.New(rand.NewPCG(uint64(i), 7)), root: doc}
		for n := range 12 {
			m.wild = n % 4
			v, _ := json.Marshal(m.object(doc, 0))
			args = nil
			x := execute(t, tool, string(v))
			if x.Outcome != pawl.OutcomeOK {
				if invalid++; x.Outcome != pawl.OutcomeInvalid || len(args) > 0 {
					t.Errorf("%s: %s: %s, ran with %q", r.ID, v, x.Outcome, args)
				}
				continue
			}
			if ran++; len(x.Repairs) > 0 {
				mended++
			}
			var got any
			if err := json.Unmarshal([]byte(args[0]), &got); err != nil {
				t.Fatal(err)
			}
			if err := judge.Validate(got); err != nil {
				t.Errorf("%s: %s\nran with %s (%q), which does not fit: %v", r.ID, r.Schema, args[0], x.Repairs, err)
			}
		}
	}
	t.Logf("%d schemas, and %d that the other validator cannot read; refused: %v; calls: %d ran, %d of them mended, %d were refused", schemas, unread, refused, ran, mended, invalid)
	if schemas < 2000 || ran < 5*schemas || mended < schemas/2 || invalid < schemas/2 {
		t.Error("too little was looked at to show anything")
	}
}

// A judge that accepts everything would prove nothing.
func TestTheJudgeRefuses(t *testing.T) {
	j, err := judge(json.RawMessage(`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"],"$defs":{"n":{"type":"integer","minimum":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Validate(map[string]any{"n": 2.0}); err != nil {
		t.Error(err)
	}
	for _, v := range []any{map[string]any{}, map[string]any{"n": 0.0}, map[string]any{"n": "2"}} {
		if j.Validate(v) == nil {
			t.Errorf("%v passes", v)
		}
	}
}

// judge is a schema for an independent validator, which core does not use.
func judge(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// guesser makes arguments for a schema. The level is their distance from it: 0 fits, 1 is the style
// of models, 2 and 3 have faults.
type guesser struct {
	*rand.Rand
	root map[string]any
	wild int
}

func (m *guesser) value(v any, depth int) any {
	s, ok := v.(map[string]any)
	if !ok || depth > 8 || m.wild > 1 && m.IntN(12) == 0 {
		return m.anything()
	}
	if ref, ok := s["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		var at any = m.root
		for name := range strings.SplitSeq(ref[2:], "/") {
			o, _ := at.(map[string]any)
			at = o[name]
		}
		return m.value(at, depth+1)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		x := list[m.IntN(len(list))]
		if word, ok := x.(string); ok && m.wild > 0 && m.IntN(3) == 0 {
			return strings.ToUpper(word)
		}
		return x
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if list, _ := s[k].([]any); len(list) > 0 {
			return m.value(list[m.IntN(len(list))], depth+1)
		}
	}
	kind, _ := s["type"].(string)
	if list, _ := s["type"].([]any); len(list) > 0 {
		kind, _ = list[m.IntN(len(list))].(string)
	}
	written := func(v any, text string) any { // numbers and words as text
		if m.wild > 0 && m.IntN(3) == 0 {
			return text
		}
		return v
	}
	switch kind {
	case "integer":
		low, _ := s["minimum"].(float64)
		n := int(low) + m.IntN(4)
		return written(n, strconv.Itoa(n))
	case "number":
		low, _ := s["minimum"].(float64)
		return written(low+0.5, strconv.FormatFloat(low+0.5, 'g', -1, 64))
	case "boolean":
		b := m.IntN(2) == 0
		return written(b, strconv.FormatBool(b))
	case "string":
		return m.text(s)
	case "array":
		if m.wild > 0 && m.IntN(4) == 0 {
			return m.value(s["items"], depth+1) // a lone value for a list
		}
		out := []any{}
		low, _ := s["minItems"].(float64)
		for range int(low) + m.IntN(2) {
			out = append(out, m.value(s["items"], depth+1))
		}
		return out
	case "object":
		return m.object(s, depth)
	case "null":
		return nil
	}
	return m.anything()
}

func (m *guesser) object(s map[string]any, depth int) any {
	out := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, k := range slices.Sorted(maps.Keys(props)) {
		if slices.Contains(required, any(k)) && (m.wild < 3 || m.IntN(8) > 0) || m.IntN(3) == 0 {
			out[k] = m.value(props[k], depth+1)
		}
	}
	if m.wild > 2 && m.IntN(4) == 0 {
		out["unasked"] = m.anything()
	}
	return out
}

func (m *guesser) text(s map[string]any) string {
	format, _ := s["format"].(string)
	if x := map[string]string{"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "email": "a@example.com", "uri": "https://example.com/a",
		"uuid": "123e4567-e89b-12d3-a456-426614174000", "ipv4": "10.0.0.1"}[format]; x != "" {
		return x
	}
	low, _ := s["minLength"].(float64)
	return strings.Repeat("a", max(int(low), 1+m.IntN(3)))
}

func (m *guesser) anything() any {
	return []any{"text", 7.0, 1.5, true, nil, []any{"x"}, map[string]any{"k": 1.0}}[m.IntN(7)]
}
