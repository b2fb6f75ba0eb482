package core_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// suiteGroup is a schema of the official suite, with values that fit it and values that do not.
type suiteGroup struct {
	File, Description string
	Optional          bool
	Schema            json.RawMessage
	Tests             []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suiteMisses are the required cases with another verdict than the suite: file, prefix of the group
// or case, count and reason. A miss that is not listed fails the test, and so does a listed miss
// that now agrees.
var suiteMisses = map[string][]suiteMiss{
	"draft7": nil,
	"draft2020-12": {
		{"format.json", "invalid ", 17, "formats are checked: an annotation would let a model write any text for a date"},
		{"refRemote.json", "remote HTTP ref with different ", 4, "a document that is known by another name than its address would have to be loaded, and nothing is"},
		{"vocabulary.json", "schema that uses custom metaschema", 3, "a metaschema of one's own would have to be loaded, and nothing is"},
		{"vocabulary.json", "ignore unrecognized optional vocabulary", 2, "a metaschema of one's own would have to be loaded, and nothing is"},
	},
}

type suiteMiss struct {
	file, begins string
	cases        int
	why          string
}

// All required cases of the official suite go through the check of a tool's arguments: the schema
// applies to the field v of a tool, and the value is the argument v.
func TestJSONSchemaSuite(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "json-schema-suite")
	for _, d := range []struct {
		draft, uri string
		total      int
	}{{"draft7", "http://json-schema.org/draft-07/schema#", 927}, {"draft2020-12", "https://json-schema.org/draft/2020-12/schema", 1299}} {
		t.Run(d.draft, func(t *testing.T) {
			remotes := suiteRemotes(t)
			left := slices.Clone(suiteMisses[d.draft])
			total, agreed := 0, 0
			for _, g := range suite(t, d.draft) {
				if g.Optional {
					continue
				}
				tool, err := suiteTool(g.Schema, d.uri, remotes)
				for _, test := range g.Tests {
					total++
					got := err
					if err == nil {
						got = tool.Validate(json.RawMessage(`{"v":` + string(test.Data) + `}`))
					}
					if err == nil && (got == nil) == test.Valid {
						agreed++
						continue
					}
					i := slices.IndexFunc(left, func(m suiteMiss) bool {
						return m.file == g.File && (strings.HasPrefix(g.Description, m.begins) ||
							strings.HasPrefix(test.Description, m.begins))
					})
					if i < 0 || left[i].cases == 0 {
						t.Errorf("%s: %s: %s: got %v, want valid %t", g.File, g.Description, test.Description, got, test.Valid)
						continue
					}
					left[i].cases--
				}
			}
			t.Logf("%s: %d of %d required cases agree (%.1f %%)", d.draft, agreed, total, 100*float64(agreed)/float64(total))
			for i, m := range left {
				t.Logf("%d of %s do not: %s", suiteMisses[d.draft][i].cases, m.file, m.why)
				if m.cases != 0 {
					t.Errorf("%s, %s: %d cases that are named as misses agree", m.file, m.begins, m.cases)
				}
			}
			if total != d.total {
				t.Errorf("%d cases were looked at, the suite has %d", total, d.total)
			}
		})
	}
}

// suite reads the groups of a draft.
func suite(t *testing.T, draft string) []suiteGroup {
	t.Helper()
	return corpora.Lines[suiteGroup](t, "json-schema-suite/"+draft+".jsonl.gz")
}

// suiteRemotes are the documents that schemas of the suite refer to, by address.
func suiteRemotes(t *testing.T) (out map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(corpora.Read(t, "json-schema-suite/remotes.json.gz"), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// suiteTool returns a tool with the schema for its field v. The schema keeps its own name, so that
// its references keep their meaning. A tool loads no documents: referenced documents are bundled
// with the schema, as the standard describes.
func suiteTool(schema json.RawMessage, draft string, remotes map[string]json.RawMessage) (*pawl.Tool, error) {
	root := map[string]any{"type": "object", "required": []string{"v"}, "$schema": draft}
	bundle := map[string]any{}
	var doc any
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, err
	}
	if s, ok := doc.(map[string]any); ok {
		if uri, ok := s["$schema"].(string); ok {
			root["$schema"] = uri
		}
		doc = identified(s, "https://example.com/suite", draft)
	}
	root["properties"] = map[string]any{"v": doc}
	for {
		if len(bundle) > 0 {
			root["definitions"] = bundle
			if strings.Contains(draft, "2020") {
				root["$defs"] = bundle
				delete(root, "definitions")
			}
		}
		b, err := json.Marshal(root)
		if err != nil {
			return nil, err
		}
		tool := &pawl.Tool{Name: "suite", Input: b, NoRepair: true, Passive: true}
		err = tool.Check()
		if err == nil {
			return tool, nil
		}
		_, rest, found := strings.Cut(err.Error(), "a tool's schema stands alone; ")
		url, _, _ := strings.Cut(rest, " is not loaded")
		var other map[string]any
		if !found || bundle[url] != nil || json.Unmarshal(remotes[url], &other) != nil {
			return nil, err
		}
		bundle[url] = identified(other, url, draft)
	}
}

// identified gives a schema a name if it has none. In draft 7 a $ref has no siblings.
func identified(s map[string]any, id, draft string) map[string]any {
	if s["$id"] != nil {
		return s
	}
	if s["$ref"] != nil && strings.Contains(draft, "draft-07") {
		s["allOf"] = []any{map[string]any{"$ref": s["$ref"]}}
		for k := range s {
			if k != "allOf" && k != "definitions" {
				delete(s, k)
			}
		}
	}
	s["$id"] = id
	return s
}
