package assemble

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawl-go/pawl/redact"
)

// A recipe holds each flag of the agent and restores it, except the flags that select the run and
// its owner.
func TestNoteKeepsEachFlag(t *testing.T) {
	f, want := new(AgentFlags), new(AgentFlags)
	names := map[string]bool{}
	v := reflect.ValueOf(f).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		if names[field.Name] {
			t.Errorf("two flags are called %s: a note cannot tell them apart", field.Name)
		}
		names[field.Name] = true
		if !fill(v.FieldByIndex(field.Index)) {
			t.Errorf("the flag %s has the type %s, which this test cannot fill", field.Name, field.Type)
		}
	}
	s := &Setup{Secrets: new(redact.Redactor)}
	meta, err := NewRecipe("", f, s)
	must(t, err)
	n := ReadRecipe(meta)
	if n == nil {
		t.Fatalf("no note: %s", meta)
	}
	must(t, n.Over(want))
	want.DB, want.Tenant, want.User = f.DB, f.Tenant, f.User
	if diff := cmp.Diff(want, f, cmp.Exporter(func(reflect.Type) bool { return true }),
		cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("got -, want +: %s", diff)
	}
	if kept := string(meta); strings.Contains(kept, `"DB"`) || strings.Contains(kept, `"User"`) {
		t.Errorf("got %s", kept)
	}
	given := &AgentFlags{Model: "openai:other"}
	must(t, n.Over(given))
	if given.Model != "openai:other" || given.System != f.System {
		t.Errorf("a flag that was given: got %q, %q", given.Model, given.System)
	}
}

// fill sets a flag to a value other than its default.
func fill(v reflect.Value) bool {
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(time.Minute))
		return true
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0))
	default:
		return false
	}
	return true
}

// A recipe does not hold a secret of the command line. Resuming asks for it again.
func TestNoteKeepsNoSecrets(t *testing.T) {
	s := &Setup{Secrets: new(redact.Redactor)}
	must(t, s.Secrets.Add("sk-very-secret"))
	meta, err := NewRecipe("", &AgentFlags{Model: "openai:m", BaseURL: "https://proxy.test/sk-very-secret/v1"}, s)
	must(t, err)
	if bytes.Contains(meta, []byte("sk-very-secret")) {
		t.Errorf("kept: %s", meta)
	}
	n := ReadRecipe(meta)
	if err := n.Over(new(AgentFlags)); err == nil || !strings.Contains(err.Error(), "--base-url held a secret") {
		t.Errorf("got %v", err)
	}
	must(t, n.Over(&AgentFlags{BaseURL: "https://proxy.test/v1"}))
}

// A change of the agent's file is detected.
func TestNoteKnowsTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("agent.yaml", []byte("model: openai:m\n"), 0o600))
	meta, err := NewRecipe("agent.yaml", new(AgentFlags), &Setup{Secrets: new(redact.Redactor)})
	must(t, err)
	n := ReadRecipe(meta)
	if n.Changed("agent.yaml") {
		t.Error("the file is taken for changed")
	}
	must(t, os.WriteFile("agent.yaml", []byte("model: openai:n\n"), 0o600))
	if !n.Changed("agent.yaml") {
		t.Error("the change is not noticed")
	}
	if ReadRecipe(json.RawMessage(`{"of":"somebody"}`)) != nil || ReadRecipe(nil) != nil {
		t.Error("what another program kept is taken for a note")
	}
}
