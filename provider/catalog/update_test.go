package catalog_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/provider/catalog"
)

const before = `[
	{"provider":"openai","id":"a","aliases":["a-1"],"calling":true,"thinking":"level","window":10,"price":{"input":1,"output":2,"long":{"above":5,"input":2,"output":4}},"ends":"2027-01-01","date":"2026-06-01"},
	{"provider":"openai","id":"b","window":20,"date":"2026-06-01"},
	{"provider":"gemini","id":"g","window":30,"date":"2026-12-01"}
]`

// modelsDev is a part of https://models.dev/api.json, with a record that cannot be right.
const modelsDev = `{
	"openai": {"id":"openai","env":["OPENAI_API_KEY"],"models":{
		"a": {"id":"a","tool_call":true,"reasoning":false,"modalities":{"input":["text","image"],"output":["text"]},"cost":{"input":3,"output":6,"cache_read":0.5},"limit":{"context":100,"output":50}},
		"a-1": {"id":"a-1","tool_call":false},
		"new": {"id":"new","tool_call":true,"limit":{"context":7,"output":3}},
		"bad": {"id":"bad","cost":{"input":-1,"output":1}}}},
	"google": {"id":"google","models":{"g":{"id":"g","limit":{"context":1,"output":1}}}}
}`

// Of two records the later one counts. A list with only some of the facts leaves the others.
func TestMerge(t *testing.T) {
	old, err := catalog.Parse([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source string
		want   string // models of the result, by name
		fields map[string][]string
	}{
		"models.dev": {modelsDev, `[
			{"provider":"openai","id":"a","aliases":["a-1"],"calling":true,"vision":true,"reasoning":false,"thinking":"level","window":100,"max_output":50,"price":{"input":3,"output":6,"cached":0.5,"long":{"above":5,"input":2,"output":4}},"ends":"2027-01-01","source":"https://models.dev/api.json","date":"2026-11-29"},
			{"provider":"openai","id":"b","window":20,"date":"2026-06-01"},
			{"provider":"gemini","id":"g","window":30,"date":"2026-12-01"},
			{"provider":"openai","id":"new","calling":true,"window":7,"max_output":3,"source":"https://models.dev/api.json","date":"2026-11-29"}]`,
			map[string][]string{"openai:a": {"vision", "reasoning", "window", "max_output", "price", "source", "date"}, "openai:new": nil}},
		"a list of ours": {`[{"provider":"openai","id":"a","window":11,"date":"2026-07-01"},{"provider":"openai","id":"b","window":1,"date":"2026-05-01"}]`, `[
			{"provider":"openai","id":"a","window":11,"date":"2026-07-01"},
			{"provider":"openai","id":"b","window":20,"date":"2026-06-01"},
			{"provider":"gemini","id":"g","window":30,"date":"2026-12-01"}]`,
			map[string][]string{"openai:a": {"aliases", "calling", "thinking", "window", "price", "ends", "date"}}},
		"an alias becomes a model": {`[{"provider":"openai","id":"a","aliases":["b-1"],"date":"2026-07-01"},{"provider":"openai","id":"a-1","date":"2026-07-01"}]`, `[
			{"provider":"openai","id":"a","aliases":["b-1"],"date":"2026-07-01"},
			{"provider":"openai","id":"b","window":20,"date":"2026-06-01"},
			{"provider":"gemini","id":"g","window":30,"date":"2026-12-01"},
			{"provider":"openai","id":"a-1","date":"2026-07-01"}]`,
			map[string][]string{"openai:a": {"aliases", "calling", "thinking", "window", "price", "ends", "date"}, "openai:a-1": nil}},
	} {
		read, err := catalog.Read([]byte(test.source), "https://models.dev/api.json", time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := old.Merge(read)
		text, err := json.Marshal(got.Models(""))
		if err != nil {
			t.Fatal(err)
		}
		again, err := catalog.Parse(text)
		if err != nil {
			t.Fatalf("%s: the result is no catalogue: %v", name, err)
		}
		want, err := catalog.Parse([]byte(test.want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again.Models(""), want.Models("")); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
		fields := map[string][]string{}
		for _, change := range old.Changes(got) {
			fields[change.Model] = change.Fields
		}
		if diff := cmp.Diff(fields, test.fields); diff != "" {
			t.Errorf("%s: changes (-got +want):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(len(old.Models("")), 3); diff != "" {
		t.Error("Merge changed the catalogue that it began with")
	}
	for _, text := range []string{`{}`, `{"openai":{}}`, `{"openai":1}`, `x`, ``} {
		if _, err := catalog.Read([]byte(text), "", time.Now()); err == nil {
			t.Errorf("Read(%q) gives no error", text)
		}
	}
}
