package vcr_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/recording/vcr"
)

// The same exchange, as each recorder writes it, comes to the same: and can be played.
func TestParse(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := vcr.Parse(text, nil)
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
			if strings.Contains(string(text), "sk-very-secret") != true {
				t.Fatal("the fixture has no key to scrub")
			}
			file, err := r.JSON()
			if err != nil || strings.Contains(string(file), "very-secret") {
				t.Errorf("%v: %s", err, file)
			}
			m := openai.NewChat("m", &openai.Options{BaseURL: "http://nowhere.test/v1", Key: "none", HTTP: recording.Play(r)})
			res, err := (&pawl.Agent{Model: m}).Run(t.Context(), llm.User("Høy?"))
			if err != nil || res.Text() != "Ja." {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

// What cannot be read is told with its place.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "it has neither interactions",
		"interactions: [a":                     "did not find expected",
		"interactions: [{}]":                   "interaction 1: the request has no address",
		"interactions: [{request: {url: /x}}]": "interaction 1: the response has no status",
		"interactions: [{request: {url: /x, body: [1]}, response: {code: 200}}]":                                          "neither text nor an object",
		"interactions: [{request: {url: /x}, response: {code: 200, headers: {Content-Encoding: [br]}, body: \"\\x01\"}}]": "compressed as br",
		"interactions: [{request: {url: /x}, response: {code: 200, body: !!binary \"%%\"}}]":                              "base64",
	} {
		if _, err := vcr.Parse([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := vcr.Parse(text, nil)
		if err != nil {
			return
		}
		if _, err := r.JSON(); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
