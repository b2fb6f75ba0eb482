package toolrun_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func TestDefine(t *testing.T) {
	files := fstest.MapFS{
		"look.md":     {Data: []byte("Looks for {most} seconds.\n")},
		"look.json":   {Data: []byte("{\n  \"input\": {\"at\": \"{at}\", \"maximum\": \"{most}\", \"other\": \"{other}\", \"text\": \"{most} s\"}\n}\n")},
		"shared.json": {Data: []byte(`{"at": {"type": "string"}}`)},
		"bad.md":      {Data: []byte("Bad.")},
		"bad.json":    {Data: []byte(`{`)},
	}
	tool := toolrun.Define(files, "look", &pawl.Tool{Name: "look", Output: json.RawMessage(`{}`)}, "most", "30")
	if got, want := tool.Description, "Looks for 30 seconds."; got != want {
		t.Errorf("description %q, want %q", got, want)
	}
	const input = `{"at":{"type":"string"},"maximum":30,"other":"{other}","text":"30 s"}`
	if got := string(tool.Input); got != input {
		t.Errorf("input %s, want %s", got, input)
	}
	if got := string(tool.Output); got != `{}` || tool.Name != "look" {
		t.Errorf("name %s, output %s", tool.Name, got)
	}
	for _, name := range []string{"missing", "bad"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			toolrun.Define(files, name, new(pawl.Tool))
		}()
	}
}
