package load_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/load"
)

// TestServer asks for the rounds of a job over each API: calls, and the answer
// once the results of all rounds are there.
func TestServer(t *testing.T) {
	at := httptest.NewServer(new(load.Server))
	defer at.Close()
	ask := func(path, body string) (string, string) {
		t.Helper()
		res, err := http.Post(at.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Status, string(text)
	}
	const model = `{"model":"load-1x2-64-4"`
	for _, api := range []struct{ path, head, stream, result string }{
		{"/v1/chat/completions", model, `,"stream":true`, `"tool_call_id":`},
		{"/v1/responses", model, `,"stream":true`, `"function_call_output"`},
		{"/v1/messages", model, `,"stream":true`, `"tool_result"`},
		{"/v1/models/load-1x2-64-4:generateContent", "{", "", `"functionResponse"`},
		{"/v1/models/load-1x2-64-4:streamGenerateContent", "{", "", `"functionResponse"`},
	} {
		for _, head := range []string{api.head, api.head + api.stream} {
			status, first := ask(api.path, head+"}")
			if status != "200 OK" || !strings.Contains(first, "tool_0") || !strings.Contains(first, "tool_1") {
				t.Errorf("%s: got %s %s, want two calls", api.path, status, first)
			}
			status, last := ask(api.path, head+`,"results":[`+api.result+`"",`+api.result+`""]}`)
			if status != "200 OK" || strings.Contains(last, "tool_0") || !strings.Contains(last, "DONE") {
				t.Errorf("%s: got %s %s, want the answer", api.path, status, last)
			}
			if status, text := ask(api.path, head+`,"results":[`+api.result+`""]}`); status != "400 Bad Request" {
				t.Errorf("%s: got %s %s for one result of two, want 400", api.path, status, text)
			}
		}
	}
	for _, bad := range [][2]string{
		{"/v1/chat/completions", "{}"},
		{"/v1/chat/completions", `{"model":"gpt-5"}`},
		{"/v1/nothing", model + "}"},
	} {
		if status, text := ask(bad[0], bad[1]); status != "400 Bad Request" {
			t.Errorf("%s %s: got %s %s, want 400", bad[0], bad[1], status, text)
		}
	}
}
