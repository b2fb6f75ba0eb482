package agentfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/tools/outside"
)

// current compares a file of the project with text made from the code, or updates the file.
func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("%s is not what the code says; make docs writes it again (-in the file +from the code):\n%s", path, diff)
	}
}

// docs/agent.schema.json is the output of pawl check --schema. The keys in docs/yaml.md come from
// the types and from keys.txt.
func TestPage(t *testing.T) {
	current(t, "../../docs/agent.schema.json", agentfile.Schema())
	page, err := os.ReadFile("../../docs/yaml.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), "<!-- keys: made from the types of package config; make docs -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- keys end -->\n")
	if !ok || !ok2 {
		t.Fatal("docs/yaml.md has no place for the keys")
	}
	var b strings.Builder
	b.WriteString(head + "<!-- keys: made from the types of package config; make docs -->\n")
	for _, s := range []struct {
		title string
		of    reflect.Type
	}{{"An agent", reflect.TypeFor[agentfile.Agent]()}, {"model", reflect.TypeFor[agentfile.Model]()},
		{"An entry of tools", reflect.TypeFor[agentfile.Tool]()},
		{"A server in mcp_servers", reflect.TypeFor[mcp.Server]()}, {"oauth of a server", reflect.TypeFor[mcp.OAuth]()},
		{"identity of oauth", reflect.TypeFor[mcp.Identity]()}, {"react", reflect.TypeFor[agentfile.React]()},
		{"limits", reflect.TypeFor[agentfile.Limits]()}, {"approve", reflect.TypeFor[agentfile.Approve]()},
		{"settings", reflect.TypeFor[agentfile.Settings]()}, {"history", reflect.TypeFor[agentfile.History]()},
		{"team", reflect.TypeFor[agentfile.Team]()}, {"sandbox_limits", reflect.TypeFor[agentfile.SandboxLimits]()},
		{"An entry of schedules", reflect.TypeFor[agentfile.Schedule]()},
		{"A call of a schedule", reflect.TypeFor[agentfile.ScheduledCall]()},
		{"A worker of a team", reflect.TypeFor[agentfile.Worker]()}, {"An entry of rules", reflect.TypeFor[agentfile.Rule]()},
		{"store", reflect.TypeFor[agentfile.Store]()},
		{"embed", reflect.TypeFor[agentfile.Embed]()},
		{"An entry of rates", reflect.TypeFor[agentfile.Rate]()},
		{"breaker", reflect.TypeFor[agentfile.Breaker]()}, {"cache", reflect.TypeFor[agentfile.Cache]()}} {
		fmt.Fprintf(&b, "\n### %s\n\n| key | value | meaning |\n|---|---|---|\n", s.title)
		for i := range s.of.NumField() {
			f := s.of.Field(i)
			if key := f.Tag.Get("yaml"); key != "" && key != "-" {
				doc := agentfile.Meaning(s.of, f)
				if doc == "" {
					t.Errorf("%s.%s says nothing of its key: give it a line in keys.txt", s.of, f.Name)
				}
				if f.Tag.Get("required") != "" {
					doc += " Required."
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, kind(f.Type, f.Tag), strings.ReplaceAll(doc, "|", `\|`))
			}
		}
	}
	b.WriteString("\n[outside.md](outside.md) describes the keys of `command`, `http` and `openapi`.\n<!-- keys end -->\n" + tail)
	current(t, "../../docs/yaml.md", []byte(b.String()))
}

// kind returns the JSON type of a value, for the page.
func kind(of reflect.Type, tag reflect.StructTag) string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if list := tag.Get("enum"); list != "" {
		return strings.ReplaceAll(list, ",", ", ")
	}
	bounds := ""
	for _, b := range []struct{ name, word string }{{"min", "≥ "}, {"above", "> "}, {"max", "≤ "}} {
		if v := tag.Get(b.name); v != "" {
			bounds += " " + b.word + v
		}
	}
	switch of {
	case reflect.TypeFor[agentfile.Models]():
		return "name, object or list"
	case reflect.TypeFor[agentfile.Choice]():
		return "text or list"
	case reflect.TypeFor[agentfile.Output]():
		return "object or file"
	case reflect.TypeFor[agentfile.History]():
		return "word or object"
	case reflect.TypeFor[outside.Duration]():
		return "time" + bounds
	case reflect.TypeFor[outside.JSON]():
		return "any"
	}
	switch of.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true, false"
	case reflect.Int:
		return "whole number" + bounds
	case reflect.Float64:
		return "number" + bounds
	case reflect.Slice:
		return "list"
	}
	return "object"
}

// The schema accepts every valid file of the project, and rejects the broken files with a fault of
// form.
func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(agentfile.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("agent.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("agent.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text []byte) error {
		d := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var v any
			if err := d.Decode(&v); err != nil {
				return nil
			}
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				return err
			}
			if err := schema.Validate(value); err != nil {
				return err
			}
		}
	}
	good := map[string][]byte{}
	for _, kind := range []string{"minimal", "coding", "research", "support", "extraction"} {
		good[kind] = template(t, kind)
	}
	err = filepath.WalkDir("../../examples", func(path string, e fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
			good[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range good {
		if err := valid(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	form := map[string]bool{"unknown_key": true, "missing_key": true, "wrong_type": true}
	refused := 0
	paths, _ := filepath.Glob("testdata/broken/*.txtar")
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code, _, _ := strings.Cut(string(ar.Comment), " ")
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if !form[code] || name == "no_model" || name == "wrong_type_variable" || name == "merge_key" || name == "framework_worker" || name == "team_worker_model" {
			// A schema cannot see these: a flag may give the model, a variable its value; keys are
			// merged before; the worker is another file.
			continue
		}
		refused++
		if valid(ar.Files[0].Data) == nil {
			t.Errorf("%s: the schema takes it", path)
		}
	}
	if refused < 3 {
		t.Errorf("%d broken files were tried", refused)
	}
}
