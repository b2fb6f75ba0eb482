package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// goldenForm compares a form from the code with a golden file, or updates the file with -update.
func goldenForm(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "forms", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: scripts and files of users depend on this (-golden +now):\n%s", path, diff)
	}
}

// commandForms returns each command with its aliases, arguments and flags, without its help text.
func commandForms(root *kong.Node) string {
	var b strings.Builder
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		fmt.Fprintf(&b, "%s", path)
		for _, a := range n.Aliases {
			fmt.Fprintf(&b, " alias=%s", a)
		}
		if n.Hidden {
			b.WriteString(" hidden")
		}
		b.WriteByte('\n')
		for _, p := range n.Positional {
			fmt.Fprintf(&b, "  <%s>%s\n", p.Name, valueForm(p))
		}
		var flags []string
		for _, f := range n.Flags {
			line := "  --" + f.Name
			if f.Short != 0 {
				line += " -" + string(f.Short)
			}
			for _, a := range f.Aliases {
				line += " alias=" + a
			}
			for _, e := range f.Envs {
				line += " env=" + e
			}
			if f.Hidden {
				line += " hidden"
			}
			flags = append(flags, line+valueForm(f.Value)+"\n")
		}
		slices.Sort(flags)
		b.WriteString(strings.Join(flags, ""))
		for _, below := range n.Children {
			if below.Type == kong.CommandNode {
				walk(below, path+" "+below.Name)
			}
		}
	}
	walk(root, "pawl")
	return b.String()
}

func valueForm(v *kong.Value) (s string) {
	if v.IsSlice() || v.IsCumulative() {
		s += " several"
	}
	if v.IsBool() {
		s += " bool"
	}
	if v.Required {
		s += " required"
	}
	if v.Enum != "" {
		s += " enum=" + v.Enum
	}
	if v.HasDefault && len(v.Default) < 100 {
		s += " default=" + v.Default
	}
	return s
}

// Commands, arguments and flags keep their names, defaults and variables. docs/cli.md holds the
// help texts, whose wording may change.
func TestCommandForms(t *testing.T) {
	soak.Sequential(t)
	k, err := parser(&cli.System{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	form := commandForms(k.Model.Node)
	goldenForm(t, "commands.txt", form)
	flag := k.Model.Node.Children[0].Flags[0] // a flag that is renamed changes the form
	flag.Name += "-renamed"
	if commandForms(k.Model.Node) == form {
		t.Error("a flag was renamed, and the form is the same")
	}
}

// Scripts that call pawl depend on its exit statuses.
func TestExitStatuses(t *testing.T) {
	got := []int{0, cli.StatusFailed, cli.StatusUsage, cli.StatusPending, cli.StatusLimit, cli.StatusInterrupted}
	if want := []int{0, 1, 2, 3, 4, 130}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The keys of an agent's file keep their names, kinds and values. The wording of their descriptions
// may change.
func TestAgentFileForms(t *testing.T) {
	soak.Sequential(t)
	var out, failed bytes.Buffer
	sys := &cli.System{Out: &out, Err: &failed, Env: func(string) string { return "" }}
	if status := execute([]string{"check", "--schema"}, sys); status != 0 {
		t.Fatalf("status %d: %s", status, failed.String())
	}
	goldenForm(t, "agent.schema.json", withoutWords(t, out.Bytes()))
	one, other := withoutWords(t, []byte(`{"properties":{"model":{"description":"a"}}}`)), withoutWords(t, []byte(`{"properties":{"model":{"description":"b"}}}`))
	if renamed := withoutWords(t, []byte(`{"properties":{"models":{"description":"a"}}}`)); one != other || one == renamed {
		t.Errorf("got %s, %s and %s: want the first two equal, and the third not", one, other, renamed)
	}
}

// withoutWords returns a schema without its descriptions.
func withoutWords(t *testing.T, schema []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		t.Fatal(err)
	}
	dropWords(v)
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func dropWords(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"description", "summary", "title"} {
			if _, ok := v[name].(string); ok {
				delete(v, name)
			}
		}
		for _, below := range v {
			dropWords(below)
		}
	case []any:
		for _, below := range v {
			dropWords(below)
		}
	}
}
