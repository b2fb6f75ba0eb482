package catalog_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/provider/catalog"
)

const ending = `[
	{"provider":"openai","id":"old","aliases":["old-latest"],"ends":"2026-12-11","successor":"middle"},
	{"provider":"openai","id":"middle","ends":"2027-01-31","successor":"new"},
	{"provider":"openai","id":"new"},
	{"provider":"openai","id":"alone","ends":"2026-12-11"},
	{"provider":"openai","id":"circle","ends":"2026-12-11","successor":"circle"},
	{"provider":"anthropic","id":"c-4-5","ends":"2026-12-11","successor":"c-5-5"},
	{"provider":"openrouter","id":"own/model","ends":"2026-12-11","successor":"own/next"}
]`

// The warning begins 90 days before the end, to the hour, and names a successor that does not end
// itself within that time.
func TestEnding(t *testing.T) {
	c, err := catalog.Parse([]byte(ending))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, now, text, hint string }{
		{"openai:old", "2026-09-11T23:59:59Z", "", ""},
		{"openai:old", "2026-09-12T00:00:01Z", "openai:old ends on 2026-12-11, in 90 days", "its provider recommends openai:middle"},
		{"openai:old", "2026-11-29T12:00:00Z", "openai:old ends on 2026-12-11, in 12 days", "its provider recommends openai:new"},
		{"openai:old", "2026-12-10T00:00:00Z", "openai:old ends on 2026-12-11, tomorrow", "its provider recommends openai:new"},
		{"openai:old", "2026-12-10T23:59:59Z", "openai:old ends on 2026-12-11, tomorrow", "its provider recommends openai:new"},
		{"openai:old", "2026-12-11T00:00:00Z", "openai:old ended on 2026-12-11: its provider does not serve it any more", "its provider recommends openai:new"},
		{"openai:old", "2027-12-11T00:00:00Z", "openai:old ended on 2026-12-11: its provider does not serve it any more", "its provider recommends openai:new"},
		{"openai:old-latest", "2026-11-29T12:00:00Z", "openai:old-latest ends on 2026-12-11, in 12 days", "its provider recommends openai:new"},
		{"openai:old-2025-08-07", "2026-11-29T12:00:00Z", "openai:old-2025-08-07 ends on 2026-12-11, in 12 days", "its provider recommends openai:new"},
		{"openai-chat:old", "2026-11-29T12:00:00Z", "openai-chat:old ends on 2026-12-11, in 12 days", "its provider recommends openai-chat:new"},
		{"openai:alone", "2026-11-29T12:00:00Z", "openai:alone ends on 2026-12-11, in 12 days", "pawl models list --provider openai has others"},
		{"openai:circle", "2026-11-29T12:00:00Z", "openai:circle ends on 2026-12-11, in 12 days", "its provider recommends openai:circle"},
		{"openai:new", "2026-11-29T12:00:00Z", "", ""},
		{"openai:unknown", "2026-11-29T12:00:00Z", "", ""},
		{"groq:old", "2026-11-29T12:00:00Z", "", ""},
		{"openrouter:anthropic/c-4.5", "2026-11-29T12:00:00Z", "openrouter:anthropic/c-4.5 ends on 2026-12-11, in 12 days", "pawl models list --provider openrouter has others"},
		{"openrouter:own/model", "2026-11-29T12:00:00Z", "openrouter:own/model ends on 2026-12-11, in 12 days", "its provider recommends openrouter:own/next"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := c.Ending(test.name, now)
		if ok != (test.text != "") {
			t.Errorf("%s at %s: %v, %v", test.name, test.now, e, ok)
		}
		if ok && (e.Text() != test.text || e.Hint() != test.hint) {
			t.Errorf("%s at %s:\ngot  %s (%s)\nwant %s (%s)", test.name, test.now, e.Text(), e.Hint(), test.text, test.hint)
		}
	}
}

// What vendors had announced on 2026-11-29: openai-go 3.99, anthropic-sdk-go 1.84, and the pages of
// Gemini and Groq. A successor is a model of the catalogue.
func TestAnnouncedEnds(t *testing.T) {
	c := catalog.Default()
	for name, ends := range map[string]string{
		"openai:gpt-5": "2026-12-11", "openai:gpt-5-mini": "2026-12-11", "openai:gpt-5-nano": "2026-12-11", "openai:gpt-5-pro": "2026-12-11",
		"openai:o3": "2026-12-11", "openai:o3-pro": "2026-12-11",
		"openai:gpt-4.1": "2027-01-14", "openai:gpt-4.1-mini": "2027-01-14", "openai:gpt-4o": "2027-01-14", "openai:gpt-4o-mini": "2027-01-14",
		"openai:gpt-5.1": "2027-04-01", "openai:gpt-5.3-codex": "2027-04-01", "openai:gpt-5.4-nano": "2027-04-01",
		"openai:gpt-4": "2026-10-23", "openai:gpt-4-turbo": "2026-10-23", "openai:gpt-4.1-nano": "2026-10-23", "openai:o1": "2026-10-23",
		"openai:o3-mini": "2026-10-23", "openai:o4-mini": "2026-10-23", "openai:gpt-4o-2024-05-13": "2026-10-23",
		"anthropic:claude-sonnet-4-5": "2026-11-30",
		"gemini:gemini-2.5-pro":       "2026-12-01", "gemini:gemini-2.5-flash": "2026-12-01",
		"groq:llama-3.3-70b-versatile": "2026-08-16", "groq:llama-3.1-8b-instant": "2026-08-16",
	} {
		if m, _ := c.Lookup(name); m.Ends != ends {
			t.Errorf("%s ends on %q, want %q", name, m.Ends, ends)
		}
	}
	for _, m := range c.Models("") {
		if m.Successor == "" {
			continue
		}
		if _, ok := c.Find(m.Provider, m.Successor); !ok {
			t.Errorf("%s: the catalogue has no successor %s", m.Name(), m.Successor)
		}
	}
}
