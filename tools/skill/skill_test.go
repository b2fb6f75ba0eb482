package skill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/tools/skill"
)

// folder writes files, given by name, and returns their directory.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func call(ctx context.Context, set pawl.Toolset, name, args string) pawl.Execution {
	return pawl.Toolsets{set}.Execute(ctx, llm.ToolCall{ID: "c", Name: name, Args: json.RawMessage(args)})
}

func TestSkills(t *testing.T) {
	dir := folder(t, map[string]string{
		"release/SKILL.md":       "---\nname: release\ndescription: Writes release notes.\ntags: [git]\n---\nRead the log first.\n",
		"release/forms/notes.md": "# {{version}}",
		"release/logo.bin":       "\x00\x01",
		"other/README.md":        "no skill",
		"stray.txt":              "no skill",
	})
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "release", "leak")); err != nil {
		t.Fatal(err)
	}
	set, err := skill.New(tooltest.DB(t, nil), &skill.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	alice := store.WithScope(t.Context(), store.Scope{User: "alice"})
	bob := store.WithScope(t.Context(), store.Scope{User: "bob"})
	for _, step := range []struct {
		ctx        context.Context
		name, args string
		outcome    pawl.Outcome
		text       string
	}{
		{alice, "skill_search", `{"query":"brewing coffee"}`, pawl.OutcomeOK, `No skill has words of "brewing coffee".`},
		{alice, "skill_create", `{"name":"brew","description":"Makes coffee.","instructions":"Grind, pour, wait.","tags":["kitchen"],"tools":["kettle"],"references":["tea"]}`, pawl.OutcomeOK, "Stored as the skill brew, version 1."},
		{alice, "skill_create", `{"name":"brew","description":"x","instructions":"x"}`, pawl.OutcomeError, "improve it with skill_update"},
		{alice, "skill_create", `{"name":"release","description":"x","instructions":"x"}`, pawl.OutcomeError, "There is a skill release already"},
		{alice, "skill_create", `{"name":"a/b","description":"x","instructions":"x"}`, pawl.OutcomeInvalid, "name"},
		{alice, "skill_create", `{"name":"x","description":"x"}`, pawl.OutcomeInvalid, "instructions"},
		{alice, "skill_search", `{"query":"coffee"}`, pawl.OutcomeOK, "brew: Makes coffee. [kitchen]"},
		{bob, "skill_search", `{"query":"coffee"}`, pawl.OutcomeOK, "No skill"},
		{bob, "skill_load", `{"name":"brew"}`, pawl.OutcomeError, `There is no skill "brew"`},
		{bob, "skill_update", `{"id":"brew","description":"x"}`, pawl.OutcomeError, `There is no skill "brew"`},
		{alice, "skill_load", `{"name":"brew"}`, pawl.OutcomeOK, "brew, version 1\n\nGrind, pour, wait.\n\nIt needs the tools: kettle\n\nSee also the skills: tea"},
		{alice, "skill_load", `{"name":"brew","file":"x"}`, pawl.OutcomeError, "has no files"},
		{alice, "skill_update", `{"id":"brew","instructions":"Grind finely.","tags":[]}`, pawl.OutcomeOK, "Changed instructions, tags. The skill brew has version 2 now."},
		{alice, "skill_update", `{"id":"brew"}`, pawl.OutcomeError, "Nothing would change"},
		{alice, "skill_update", `{"id":"brew","instructions":"Grind finely."}`, pawl.OutcomeError, "Nothing would change"},
		{alice, "skill_update", `{"id":"brew","name":"release"}`, pawl.OutcomeError, "There is a skill release already"},
		{alice, "skill_update", `{"id":"brew","name":"espresso"}`, pawl.OutcomeOK, "The skill is now called espresso, version 2."},
		{alice, "skill_load", `{"name":"brew"}`, pawl.OutcomeError, "skill_search finds what there is"},
		{alice, "skill_update", `{"id":"release","description":"x"}`, pawl.OutcomeError, "cannot be changed"},
		{bob, "skill_search", `{"query":"release notes"}`, pawl.OutcomeOK, "release: Writes release notes. [git]"},
		{t.Context(), "skill_search", `{"query":"release"}`, pawl.OutcomeOK, "release: Writes release notes."},
		{t.Context(), "skill_load", `{"name":"release"}`, pawl.OutcomeOK, "release\n\nRead the log first.\n\nFiles: forms/notes.md, logo.bin"},
		{t.Context(), "skill_load", `{"name":"release","file":"forms/notes.md"}`, pawl.OutcomeOK, "# {{version}}"},
		{t.Context(), "skill_load", `{"name":"release","file":"logo.bin"}`, pawl.OutcomeError, "is not text"},
		{t.Context(), "skill_load", `{"name":"release","file":"../stray.txt"}`, pawl.OutcomeError, "has no file"},
		{t.Context(), "skill_load", `{"name":"release","file":"leak"}`, pawl.OutcomeError, "has no file"},
		{t.Context(), "skill_create", `{"name":"x","description":"x","instructions":"x"}`, pawl.OutcomeError, "did not say whose they are"},
	} {
		x := call(step.ctx, set, step.name, step.args)
		if text := x.Result.Text(); x.Outcome != step.outcome || !strings.Contains(text, step.text) {
			t.Errorf("%s %s: %s, %q; want %s, %q", step.name, step.args, x.Outcome, text, step.outcome, step.text)
		}
	}
}

func TestBadFolders(t *testing.T) {
	for text, want := range map[string]string{"no head": "front matter is missing", "---\nname: x\n---\nbody": "has no description", "---\n\tname: [\n---\nbody": "is not YAML",
		"---\ndescription: x\n---\n" + strings.Repeat("x", 70_000): "more than 65536 bytes"} {
		_, err := skill.New(nil, &skill.Options{Dirs: []string{folder(t, map[string]string{"a/SKILL.md": text})}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if _, err := skill.New(nil, &skill.Options{Dirs: []string{"/no/such/folder"}}); err == nil {
		t.Error("a folder that is not there was taken")
	}
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "pawl.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	skills, err := skill.New(db, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := store.WithScope(context.Background(), store.Scope{User: "alice"})
	call(ctx, skills, "skill_create", `{"name":"brew","description":"Makes coffee.","instructions":"Grind, pour, wait."}`)
	fmt.Println(call(ctx, skills, "skill_search", `{"query":"coffee"}`).Result.Text())
	// Output: brew: Makes coffee.
}
