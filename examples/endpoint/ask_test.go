package main

import (
	"bytes"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/obey"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/script"
)

// post asks the service and returns the status and the body.
func post(t *testing.T, model llm.Model, question string) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/ask", strings.NewReader(`{"question":"`+question+`"}`))
	routes(stock{"lamp": 7}, model).ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// lamps is a model that looks up lamps. The last turn fails unless the tool has returned 7.
var lamps = script.New(script.Call("stock", `{"article":"lamp"}`), script.Expect(script.Say("Yes, 7."), script.Returned("stock", "7")))

func TestScript(t *testing.T) {
	if code, body := post(t, lamps, "Lamps?"); code != 200 || body != `{"answer":"Yes, 7."}` {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := post(t, lamps, ""); code != 400 {
		t.Errorf("an empty question: %d", code)
	}
}

func TestProviderDown(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	model := openai.New("m", &openai.Options{BaseURL: gone.URL, Key: "none", Retries: -1})
	if code, body := post(t, model, "Lamps?"); code != 503 || strings.Contains(body, gone.URL) {
		t.Errorf("%d %s", code, body)
	}
}

func TestRecording(t *testing.T) {
	sim, err := pawltest.NewSimulator(obey.Model(lamps), nil) // in place of the provider
	if err != nil {
		t.Fatal(err)
	}
	rec := new(recording.Recorder)
	_, want := post(t, openai.New("m", &openai.Options{BaseURL: sim.URL, Key: "none", HTTP: rec}), "Lamps?")
	sim.Close()
	fixture := filepath.Join(t.TempDir(), "lamps.json") // a test of your own has it in testdata
	if file, err := rec.Recording().JSON(); err != nil || os.WriteFile(fixture, file, 0o600) != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	for question, code := range map[string]int{"Lamps?": 200, "Chairs?": 503} {
		file, _ := os.ReadFile(fixture)
		r, err := recording.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		play := recording.Play(r)
		model := openai.New("m", &openai.Options{BaseURL: "http://nowhere.test/v1", Key: "none", HTTP: play})
		if got, body := post(t, model, question); got != code || (code == 200) != (body == want && play.Left() == 0) {
			t.Errorf("%s: %d %s, %d left", question, got, body, play.Left())
		}
	} // A changed request was not recorded. The error has the difference.
	if s := logged.String(); !strings.Contains(s, `recorded "Lamps?", now "Chairs?"`) {
		t.Error(s)
	}
}
