package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/provider/catalog"
)

// Every record of the program states its source and date. Parse checks the rest.
func TestDefault(t *testing.T) {
	models := catalog.Default().Models("")
	if len(models) < 100 {
		t.Fatalf("the catalogue has %d models", len(models))
	}
	for _, m := range models {
		if !strings.HasPrefix(m.Source, "https://") || m.Date == "" {
			t.Errorf("%s: source %q, date %q; want both", m.Name(), m.Source, m.Date)
		}
		if m.Price != nil && m.Price.Input > m.Price.Output {
			t.Errorf("%s: input at $%v costs more than output at $%v; are they swapped?", m.Name(), m.Price.Input, m.Price.Output)
		}
		if got, _ := catalog.Default().Lookup(m.Name()); got.Window != m.Window || got.Source != m.Source {
			t.Errorf("%s is not found by its name", m.Name())
		}
	}
}

const small = `[
	{"provider":"openai","id":"a","aliases":["a-latest"],"calling":true,"window":10,"price":{"input":1,"output":2},"source":"https://example.com","date":"2026-01-02"},
	{"provider":"openai","id":"b","calling":false},
	{"provider":"gemini","id":"a","window":20},
	{"provider":"anthropic","id":"c-4-5","calling":true,"window":30},
	{"provider":"ollama","id":"small","calling":false}
]`

func TestLookup(t *testing.T) {
	c, err := catalog.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		window  int
		calling bool
		priced  bool
		assumed []string
	}{
		{"openai:a", 10, true, true, nil},
		{"openai-chat:a", 10, true, true, nil},
		{"openai:a-latest", 10, true, true, nil},
		{"openai:b", 0, false, false, nil},
		{"openai:a-2026-01-02", 10, true, true, []string{"it is assumed to be like openai:a, because its name is a snapshot of it"}},
		{"openai:a-20260102", 10, true, true, []string{"it is assumed to be like openai:a, because its name is a snapshot of it"}},
		{"openai:a-mini", 0, true, false, []string{"the catalogue does not know it", "it is assumed to call tools"}},
		{"gemini:a", 20, true, false, []string{"it is assumed to call tools"}},
		{"openrouter:openai/a", 10, true, false, []string{"it is assumed to be like openai:a; its price here is not known"}},
		{"groq:openai/a", 0, true, false, []string{"the catalogue does not know it", "it is assumed to call tools"}},
		{"openrouter:google/a", 20, true, false, []string{"it is assumed to be like gemini:a; its price here is not known", "it is assumed to call tools"}},
		{"openrouter:anthropic/c-4.5", 30, true, false, []string{"it is assumed to be like anthropic:c-4-5; its price here is not known"}},
		{"ollama:small:1b", 0, false, false, []string{"it is assumed to be like the others of ollama:small"}},
		{"ollama:large:4b", 0, true, false, []string{"the catalogue does not know it", "it is assumed to call tools"}},
	} {
		m, assumed := c.Lookup(test.name)
		if m.Name() != test.name || m.Window != test.window || *m.Calling != test.calling ||
			(m.Price != nil) != test.priced {
			t.Errorf("Lookup(%q) = %+v", test.name, m)
		}
		if diff := cmp.Diff(assumed, test.assumed); diff != "" {
			t.Errorf("Lookup(%q), assumptions got -, want +\n%s", test.name, diff)
		}
	}
	if m, _ := c.Lookup("openai:a"); m.Price == nil {
		t.Error("a lookup took the price away from the catalogue")
	}
	if got := len(c.Models("openai-chat")); got != 2 {
		t.Errorf("got %d models of openai-chat, want 2", got)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for data, want := range map[string]string{
		`{}`:                                "want a JSON list",
		`[] []`:                             "nothing after it",
		`[{"provider":"p"}]`:                "an id",
		`[{"provider":"p:q","id":"a"}]`:     "without a colon",
		`[{"provider":"p","id":"a","x":1}]`: `unknown field "x"`,
		`[{"provider":"p","id":"a"},{"provider":"p","id":"b","aliases":["a"]}]`:                                                  "p:a is a duplicate",
		`[{"provider":"p","id":"a","window":1,"max_output":2}]`:                                                                  "max_output is more than window",
		`[{"provider":"p","id":"a","window":-1}]`:                                                                                "not less than 0",
		`[{"provider":"p","id":"a","thinking":"hard"}]`:                                                                          "want adaptive, level or budget",
		`[{"provider":"p","id":"a","price":{"input":1,"output":1,"write":-1}}]`:                                                  "less than 0",
		`[{"provider":"p","id":"a","price":{"input":1,"output":1,"long":{"input":2,"output":2}}}]`:                               "above which it holds",
		`[{"provider":"p","id":"a","price":{"input":1,"output":1,"long":{"above":9,"input":2,"output":-2}}}]`:                    "less than 0",
		`[{"provider":"p","id":"a","price":{"input":1,"output":1,"long":{"above":9,"input":2,"output":2,"long":{"above":10}}}}]`: "no other long price",
		`[{"provider":"p","id":"a","price":{"input":-1,"output":1}}]`:                                                            "less than 0",
		`[{"provider":"p","id":"a","date":"today"}]`:                                                                             "2006-01-02",
		`[{"provider":"p","id":"a","source":"hearsay"}]`:                                                                         "want an address",
		`[{"provider":"p","id":"a","calling":false,"parallel":true}]`:                                                            "in parallel",
	} {
		if _, err := catalog.Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s): %v; want an error with %q", data, err, want)
		}
	}
}

// Parse rejects a file, or finds each of its models by all its names.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(`[{"provider":"openrouter","id":"openai/a","efforts":["low"],"price":{"input":1,"output":2,"long":{"above":3,"input":4,"output":5}}}]`))
	f.Add([]byte(`[{"provider":"openai-chat","id":"a"},{"provider":"p","id":"a:b/c","aliases":["d"]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := catalog.Parse(data)
		if err != nil {
			return
		}
		for _, m := range c.Models("") {
			for _, id := range append([]string{m.ID}, m.Aliases...) {
				got, ok := c.Find(m.Provider, id)
				if diff := cmp.Diff(got, m); !ok || diff != "" {
					t.Errorf("%s by the name %s, got -, want +\n%s", m.Name(), id, diff)
				}
				if _, assumed := c.Lookup(m.Provider + ":" + id); len(assumed) > 1 || m.Calling != nil && assumed != nil {
					t.Errorf("%s by the name %s: assumes %q", m.Name(), id, assumed)
				}
			}
		}
	})
}

func Example() {
	m, assumed := catalog.Default().Lookup("openai:gpt-5-mini")
	fmt.Println(m.Window, *m.Calling, assumed)
	_, assumed = catalog.Default().Lookup("vllm:my-own")
	fmt.Println(strings.Join(assumed, "; "))
	// Output:
	// 400000 true []
	// the catalogue does not know it; it is assumed to call tools
}
