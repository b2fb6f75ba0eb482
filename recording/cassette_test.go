package recording_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/recording"
)

// TestCassettes converts a cassette of each other recorder with the script in docs/recordings.md.
// The same exchange, as each recorder writes it, becomes a recording that can be played, without
// the headers' keys.
func TestCassettes(t *testing.T) {
	page, err := os.ReadFile("../docs/recordings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "```python\n")
	script, _, ends := strings.Cut(rest, "```\n")
	if !begins || !ends {
		t.Fatal("docs/recordings.md has no script")
	}
	files, err := filepath.Glob("testdata/cassettes/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := exec.Command("python3", "-c", "import yaml").Run(); err != nil {
		t.Skip("needs python3 with PyYAML: ", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "sk-very-secret") {
				t.Fatal("the fixture has no key")
			}
			var errs bytes.Buffer
			c := exec.Command("python3", "-c", script, name)
			c.Stderr = &errs
			file, err := c.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, errs.String())
			}
			r, err := recording.Parse(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Exchanges) != 1 {
				t.Fatalf("%d exchanges", len(r.Exchanges))
			}
			e := r.Exchanges[0]
			if e.Request.Method != "POST" || e.Request.URL != "https://api.openai.com/v1/chat/completions" || e.Response.Status != 200 || e.Response.Header["content-type"] != "application/json" {
				t.Errorf("got %+v", e)
			}
			if strings.Contains(string(file), "very-secret") {
				t.Errorf("the recording has the key: %s", file)
			}
			m := openai.NewChat("m", &openai.Options{BaseURL: "http://nowhere.test/v1", Key: "none", HTTP: recording.Play(r)})
			res, err := (&pawl.Agent{Model: m}).Run(t.Context(), llm.User("Høy?"))
			if err != nil || res.Text() != "Ja." {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}
