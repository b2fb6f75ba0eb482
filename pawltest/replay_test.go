package pawltest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
)

func exchanges(t *testing.T, lines string) []pawltest.Exchange {
	t.Helper()
	var all []pawltest.Exchange
	if err := json.Unmarshal([]byte(lines), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplayServesInOrder(t *testing.T) {
	r, err := pawltest.NewReplay(exchanges(t, `[
		{"cassette":"c","seq":0,"response":{"status":429,"headers":{"content-type":"application/json","retry-after":"2"},"body":"{\"error\":{}}"}},
		{"cassette":"c","seq":1,"response":{"status":200,"headers":{"content-type":"text/event-stream; charset=utf-8"},"body":"data: {}\n\n"}},
		{"cassette":"c","seq":2,"response":{"status":200,"headers":{},"body_b64":"AAEC"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, want := range []struct {
		status                   int
		contentType, retry, body string
	}{
		{429, "application/json", "2", `{"error":{}}`},
		{200, "text/event-stream; charset=utf-8", "", "data: {}\n\n"},
		{200, "", "", "\x00\x01\x02"},
		{410, "application/json", "", ""},
	} {
		path, body := "/chat/completions", `{"model":"m","messages":[`+user+`]}`
		if i == 1 {
			path, body = "/responses", `{"model":"m","input":[`+outputA+`]}`
		}
		if got := r.Left(); got != max(0, 3-i) {
			t.Errorf("before request %d %d responses are left", i+1, got)
		}
		res, got, err := post(t, r.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want.status || want.contentType != "" && res.Header.Get("Content-Type") != want.contentType ||
			res.Header.Get("Retry-After") != want.retry || want.body != "" && got != want.body {
			t.Errorf("request %d: got %d %q %v", i+1, res.StatusCode, got, res.Header)
		}
	}
	log := r.Received()
	if len(log) != 4 || len(log[0].Violations) != 0 || len(log[1].Violations) != 1 ||
		!strings.Contains(log[1].Violations[0].Text, "a result for") {
		t.Errorf("the checker's findings are not in the log: %+v", log)
	}
	if log[0].Request == nil || log[0].Request.Messages[0].Text() != "hi" {
		t.Errorf("the request is not in the log: %+v", log[0])
	}
}
