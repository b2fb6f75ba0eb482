package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/script"
)

// The set todo brings the tool and what recites its list.
func TestTodoSet(t *testing.T) {
	dir := t.TempDir()
	text := "agent: a\nmodel: openai:sim\ntools: [todo, {command: {name: look, description: Looks., run: [cat], effect: read, " +
		"input: {type: object, properties: {n: {type: integer}}}}}]\n"
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	turns := []script.Turn{script.Call("todo", `{"items":[{"text":"write the test","state":"open"}]}`)}
	for i := range 10 {
		turns = append(turns, script.Call("look", fmt.Sprintf(`{"n":%d}`, i)))
	}
	_, _, received := played(t, dir, script.New(append(turns, script.Say("Done."))...), "Go.")
	bodies := strings.Split(strings.TrimSpace(received), "\n")
	for i, b := range bodies {
		if want := i == len(bodies)-1; strings.Contains(b, "Open: write the test") != want {
			t.Errorf("request %d recites the list: %v, want %v", i+1, !want, want)
		}
	}
}
