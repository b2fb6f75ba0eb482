package file_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/file"
)

// A preview equals the effect of the call and changes nothing itself.
func TestPreview(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("a.txt", "one\r\ntwo\r\n")
	put("b.bin", "\x00\x01")
	put("tokens.json", "secret")
	put("agent.yaml", "agent: a")
	set, err := file.New(dir, &file.Options{
		Protect: []string{filepath.Join(dir, "agent.yaml")},
		Hide:    []string{filepath.Join(dir, "tokens.json")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, tt := range []struct {
		tool, args string
		want       *file.Preview // nil means an error or no preview
		fails      bool
	}{
		{"file_write", `{"path":"./a.txt","content":"new"}`, &file.Preview{Path: "a.txt", Before: "one\r\ntwo\r\n", After: "new", Exists: true}, false},
		{"file_write", `{"path":"d/new.txt","content":"new"}`, &file.Preview{Path: "d/new.txt", After: "new"}, false},
		{"file_edit", `{"path":"a.txt","edits":[{"old":"one\ntwo","new":"1"}]}`, &file.Preview{Path: "a.txt", Before: "one\r\ntwo\r\n", After: "1\r\n", Exists: true}, false},
		{"file_delete", `{"path":"a.txt"}`, &file.Preview{Path: "a.txt", Before: "one\r\ntwo\r\n", Exists: true}, false},
		{"file_edit", `{"path":"a.txt","edits":[{"old":"three","new":"3"}]}`, nil, true},
		{"file_write", `{"path":"b.bin","content":""}`, nil, true},
		{"file_write", `{"path":"../x","content":""}`, nil, true},
		{"file_write", `{"path":"tokens.json","content":""}`, nil, true},
		{"file_delete", `{"path":"tokens.json"}`, nil, true},
		{"file_write", `{"path":"agent.yaml","content":""}`, nil, true},
		{"file_write", `[]`, nil, true},
		{"file_read", `{"path":"a.txt"}`, nil, false},
		{"other", `{}`, nil, false},
	} {
		call := llm.ToolCall{ID: "c", Name: tt.tool, Args: json.RawMessage(tt.args)}
		got, err := set.Preview(t.Context(), call)
		if (err != nil) != tt.fails {
			t.Errorf("%s %s: got %v", tt.tool, tt.args, err)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s: want -, got +\n%s", tt.tool, tt.args, diff)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "one\r\ntwo\r\n" {
		t.Errorf("the file is %q now, %v", b, err)
	}
	if _, err := set.Edit.Run(t.Context(), llm.ToolCall{Name: "file_edit", Args: json.RawMessage(`{"path":"a.txt","edits":[{"old":"one\ntwo","new":"1"}]}`)}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "1\r\n" {
		t.Errorf("the call made it %q, the preview said otherwise", b)
	}
}
