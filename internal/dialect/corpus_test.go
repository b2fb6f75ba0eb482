package dialect_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

type record struct {
	ID     string
	Names  []string
	Schema json.RawMessage
}

// TestCorpusToolSchemas compiles every tool schema to every dialect. The output must be accepted by
// the provider, must mean the same as the original except for the reported losses, and must be
// deterministic.
func TestCorpusToolSchemas(t *testing.T) {
	soak.Sequential(t)
	records := corpora.Lines[record](t, "tool-schemas/dev.jsonl.gz")
	for _, d := range dialect.All() {
		t.Run(d.Name, func(t *testing.T) {
			var sum tally
			kinds := map[dialect.Kind]int{}
			exact, lossy, failed := 0, 0, map[string]int{}
			for i, r := range records {
				c, err := d.Compile(r.Schema)
				if err != nil {
					var e *dialect.Error
					if !errors.As(err, &e) {
						t.Fatalf("%s: %v is no *dialect.Error", r.ID, err)
					}
					failed[e.Why]++
					continue
				}
				if bad := refused(d.Name, c.Schema); bad != nil {
					t.Errorf("%s: refused for %q\n%s\n%s", r.ID, bad, r.Schema, c.Schema)
				}
				if again, _ := d.Compile(r.Schema); string(again.Schema) != string(c.Schema) {
					t.Errorf("%s: not the same bytes twice\n%s\n%s", r.ID, c.Schema, again.Schema)
				}
				seen := map[dialect.Kind]bool{}
				for _, l := range c.Losses {
					seen[l.Kind] = true
				}
				for k := range seen {
					kinds[k]++
				}
				if seen[dialect.Looser] || seen[dialect.Stricter] {
					lossy++
				} else {
					exact++
				}
				compare(t, d, r.Schema, c, 2, uint64(i), &sum)
			}
			t.Logf("%d schemas: %d say the same, %d with losses, cannot be expressed: %v; schemas with a loss of a kind: %v", len(records), exact, lossy, failed, kinds)
			t.Logf("meaning: %d schemas, %d values, %d fit one side, %d only what is sent, %d only the original", sum.schemas, sum.values, sum.fit, sum.looser, sum.stricter)
		})
	}
}

// TestCorpusSuite uses the schemas of the JSON Schema test suite as the schemas of a field, with
// the suite's own values.
func TestCorpusSuite(t *testing.T) {
	soak.Sequential(t)
	type group struct {
		File, Description string
		Optional          bool
		Schema            json.RawMessage
		Tests             []struct{ Data any }
	}
	for _, draft := range []string{"draft7", "draft2020-12"} {
		groups := corpora.Lines[group](t, "json-schema-suite/"+draft+".jsonl.gz")
		for _, d := range dialect.All() {
			t.Run(draft+"/"+d.Name, func(t *testing.T) {
				var sum tally
				exact, lossy, skipped, failed := 0, 0, 0, map[string]int{}
				for i, g := range groups {
					if g.Optional {
						continue
					}
					schema, ok := asField(decode(g.Schema))
					if !ok {
						skipped++
						continue
					}
					c, err := d.Compile(schema)
					var e *dialect.Error
					switch {
					case errors.As(err, &e):
						failed[e.Why]++
						continue
					case err != nil:
						t.Fatal(err)
					}
					if slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind != dialect.Note }) {
						lossy++
					} else {
						exact++
					}
					if bad := refused(d.Name, c.Schema); bad != nil {
						t.Errorf("%s, %s: refused for %q\n%s\n%s", g.File, g.Description, bad, schema, c.Schema)
					}
					var given []any
					for _, x := range g.Tests {
						given = append(given, node{"v": x.Data})
					}
					compare(t, d, schema, c, 4, uint64(i), &sum, given...)
				}
				t.Logf("%d say the same, %d with losses, %d not of one piece, cannot be expressed: %v", exact, lossy, skipped, failed)
				t.Logf("meaning: %d schemas, %d values, %d fit one side, %d only what is sent, %d only the original", sum.schemas, sum.values, sum.fit, sum.looser, sum.stricter)
			})
		}
	}
}

// asField converts a schema to the schema of an object whose field v has it. References are
// adapted. Schemas with names of their own or references to other documents are left out.
func asField(v any) ([]byte, bool) {
	ok := true
	var move func(v any) any
	move = func(v any) any {
		switch v := v.(type) {
		case node:
			for k, x := range v {
				if s, isText := x.(string); isText && k == "$ref" {
					if !strings.HasPrefix(s, "#") {
						ok = false
					}
					v[k] = "#/properties/v" + strings.TrimPrefix(s, "#")
					continue
				}
				if strings.Contains(" $id id $anchor $dynamicRef $dynamicAnchor $recursiveRef ", " "+k+" ") {
					if _, isText := x.(string); isText {
						ok = false
					}
				}
				if k != "enum" && k != "const" {
					v[k] = move(x)
				}
			}
		case []any:
			for i := range v {
				v[i] = move(v[i])
			}
		}
		return v
	}
	v = move(v)
	root := node{"type": "object", "properties": node{"v": v}, "required": []any{"v"}, "additionalProperties": false}
	if s, isObject := v.(node); isObject {
		if draft := s["$schema"]; draft != nil {
			delete(s, "$schema")
			root["$schema"] = draft
		}
	}
	b, err := json.Marshal(root)
	return b, ok && err == nil
}

// TestCorpusGroundTruth sends the correct calls of the function-calling leaderboard through each
// dialect: arguments converted to the provider's form and restored are unchanged.
func TestCorpusGroundTruth(t *testing.T) {
	soak.Sequential(t)
	type entry struct {
		ID        string
		Functions []struct {
			Name       string
			Parameters json.RawMessage
		}
		Truth []struct {
			Name string
			Args map[string][]any `json:"args_allowed"`
		} `json:"ground_truth"`
	}
	calls, same, lost, unsaid, misfit := 0, map[string]int{}, map[string]int{}, map[string]int{}, 0
	for _, file := range []string{"simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"} {
		for _, e := range corpora.Lines[entry](t, "bfcl/dev/"+file+".jsonl.gz") {
			for _, f := range e.Functions {
				schema, _, err := dialect.Normalize(f.Parameters)
				if err != nil {
					t.Fatalf("%s: %v", e.ID, err)
				}
				original, err := validator(schema)
				if err != nil {
					t.Errorf("%s: %s: %v", e.ID, f.Name, err)
					continue
				}
				// nil means that the dialect cannot express the tool
				sent := map[*dialect.Dialect]*dialect.Compiled{}
				for _, d := range dialect.All() {
					sent[d], _ = d.Compile(schema)
				}
				for _, call := range e.Truth {
					if call.Name != f.Name {
						continue
					}
					args := node{}
					for name, allowed := range call.Args {
						if len(allowed) > 0 && allowed[0] != "" {
							args[name] = allowed[0]
						}
					}
					if original.Validate(args) != nil {
						// nested values have lists of their own, which the core would refuse
						misfit++
						continue
					}
					calls++
					for d, c := range sent {
						if c == nil {
							unsaid[d.Name]++
							continue
						}
						root := decode(c.Schema).(node)
						say := any(args)
						if enforced(d.Name) {
							if say = spellOut(root, root, args); !takes(root, root, say) {
								lost[d.Name]++
								continue
							}
						}
						b, err := json.Marshal(say)
						if err != nil {
							t.Fatal(err)
						}
						back := decode(c.Restore(b))
						switch {
						case reflect.DeepEqual(back, any(args)):
							same[d.Name]++
						case len(c.Losses) == 0:
							t.Errorf("%s: %s: %v is said as %s and comes back as %v", e.ID, d.Name, args, b, back)
						}
					}
				}
			}
		}
	}
	t.Logf("%d calls (%d more do not fit their own schema); the same again: %v; cannot be sent: %v; the tool cannot be expressed: %v", calls, misfit, same, lost, unsaid)
	for _, d := range dialect.All() {
		if said := calls - unsaid[d.Name]; said == 0 || same[d.Name] < said*99/100 {
			t.Errorf("%s: of %d calls only %d come back the same", d.Name, said, same[d.Name])
		}
	}
}
