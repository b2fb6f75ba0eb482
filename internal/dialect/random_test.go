package dialect_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// draw creates a random schema from all of JSON Schema, deep enough for combinations and small
// enough to read.
type draw struct {
	r    *rand.Rand
	defs int
}

func (d *draw) one(words ...string) string { return words[d.r.IntN(len(words))] }

func (d *draw) few(depth int) []any {
	out := make([]any, 1+d.r.IntN(3))
	for i := range out {
		out[i] = d.schema(depth + 1)
	}
	return out
}

func (d *draw) scalar() any {
	return []any{"a", "", "b7", 1.0, 2.0, 2.5, true, false, nil}[d.r.IntN(9)]
}

func (d *draw) schema(depth int) any {
	if d.r.IntN(14) == 0 {
		return d.r.IntN(3) > 0
	}
	s := node{}
	if d.defs > 0 && d.r.IntN(8) == 0 {
		s["$ref"] = fmt.Sprintf("#/$defs/d%d", d.r.IntN(d.defs))
		if d.r.IntN(2) == 0 {
			return s
		}
	}
	types := []string{"string", "integer", "number", "boolean", "null"}
	if depth < 4 {
		types = append(types, "object", "object", "array")
	}
	if t := d.one(types...); d.r.IntN(8) > 0 {
		s["type"] = t
		if u := d.one(types...); d.r.IntN(5) == 0 && u != t {
			s["type"] = []any{t, u}
		}
	}
	for range d.r.IntN(3) {
		d.keyword(s, depth)
	}
	if t, _ := s["type"].(string); t == "object" && s["properties"] == nil && d.r.IntN(6) > 0 {
		d.properties(s, depth)
	}
	return s
}

func (d *draw) properties(s node, depth int) {
	props, need := node{}, []any{}
	for _, k := range []string{"a", "b", "c"}[:1+d.r.IntN(3)] {
		props[k] = d.schema(depth + 1)
		if d.r.IntN(2) == 0 {
			need = append(need, k)
		}
	}
	s["properties"] = props
	if len(need) > 0 {
		s["required"] = need
	}
	if d.r.IntN(2) == 0 {
		s["additionalProperties"] = false
	}
}

func (d *draw) keyword(s node, depth int) {
	n := float64(d.r.IntN(4))
	if depth > 4 {
		s["description"] = "D"
		return
	}
	switch d.r.IntN(26) {
	case 0:
		s["minLength"] = n
	case 1:
		s["maxLength"] = n + 2
	case 2:
		s["pattern"] = d.one("^a", "7", "a|b")
	case 3:
		s["format"] = d.one("date", "uri", "int32", "uuid", "whatever")
	case 4:
		s["minimum"] = n - 1
	case 5:
		s["maximum"] = n + 0.5
	case 6:
		s["exclusiveMinimum"] = n - 2
	case 7:
		s["exclusiveMaximum"] = n + 3
	case 8:
		s["multipleOf"] = []any{1.0, 2.0, 0.5}[d.r.IntN(3)]
	case 9:
		s["enum"] = []any{d.scalar(), d.scalar(), "z"}
	case 10:
		s["const"] = d.scalar()
	case 11, 12:
		s["anyOf"] = d.few(depth)
	case 13:
		s["oneOf"] = d.few(depth)
	case 14, 15:
		s["allOf"] = d.few(depth)
	case 16:
		s["not"] = d.schema(depth + 1)
	case 17:
		s["if"], s["then"] = d.schema(depth+1), d.schema(depth+1)
	case 18:
		s["items"] = d.schema(depth + 1)
	case 19:
		s["prefixItems"] = d.few(depth)
	case 20:
		s["minItems"], s["uniqueItems"] = n/2-0.5*float64(int(n)%2), d.r.IntN(2) == 0
	case 21:
		s["maxItems"] = n
	case 22:
		d.properties(s, depth)
	case 23:
		s["additionalProperties"] = d.schema(depth + 1)
	case 24:
		s["required"] = []any{d.one("a", "b", "q")}
	case 25:
		switch d.r.IntN(6) {
		case 0:
			s["patternProperties"] = node{"^x": d.schema(depth + 1)}
		case 1:
			s["unevaluatedProperties"] = false
		case 2:
			s["dependentRequired"] = node{"a": []any{"b"}}
		case 3:
			s["contains"] = d.schema(depth + 1)
		case 4:
			s["minProperties"] = 1.0
		case 5:
			s["propertyNames"] = node{"maxLength": 1.0}
		}
	}
}

// TestRandomSchemas compiles random schemas: the provider accepts the output, and it means the same
// as the original except for the reported losses. The counts show that the comparison can fail:
// without the losses, it does.
func TestRandomSchemas(t *testing.T) {
	soak.Sequential(t)
	n := soak.N(400, 1500)
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) {
			var sum tally
			failed := 0
			for i := range n {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				g := &draw{r: r, defs: r.IntN(3)}
				root := node{"type": "object", "properties": node{"v": g.schema(0)}, "required": []any{"v"}}
				if i%4 == 0 {
					root = node{"type": "object"}
					for range 1 + r.IntN(3) {
						g.keyword(root, 0)
					}
				}
				if g.defs > 0 {
					defs := node{}
					for j := range g.defs {
						defs[fmt.Sprintf("d%d", j)] = g.schema(1)
					}
					root["$defs"] = defs
				}
				schema, err := json.Marshal(root)
				if err != nil {
					t.Fatal(err)
				}
				c, err := d.Compile(schema)
				if err != nil {
					failed++
					continue
				}
				if bad := refused(d.Name, c.Schema); bad != nil {
					t.Errorf("%s\nis refused for %q\n%s", schema, bad, c.Schema)
				}
				compare(t, d, schema, c, 3, uint64(i), &sum)
				if t.Failed() {
					t.Fatalf("seed %d", i)
				}
			}
			t.Logf("%d schemas, %d cannot be said; meaning: %d schemas, %d values, %d fit one side, %d only what is sent, %d only the original", n, failed, sum.schemas, sum.values, sum.fit, sum.looser, sum.stricter)
			if enforced(d.Name) && (sum.looser == 0 || sum.stricter == 0) {
				t.Error("no loss was ever met: the comparison shows nothing")
			}
		})
	}
}
