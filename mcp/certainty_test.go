package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/mcp"
)

// callServer is a server with one tool that writes. do answers its calls.
func callServer(t *testing.T, do http.HandlerFunc) (mcp.Server, *httptest.Server) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &q)
		w.Header().Set("Connection", "close") // a later request needs a connection of its own
		answers := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"act","description":"Acts.","inputSchema":{"type":"object"}}]}`,
		}
		answer, ok := answers[q.Method]
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case ok:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer)
		case q.Method == "tools/call":
			do(w, r)
		case len(q.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(web.Close)
	return mcp.Server{Name: "test", URL: web.URL, Trust: true}, web
}

// A call over HTTP has the certainty of its request, as the calls of other transports have. Only
// what is unknown may have happened.
func TestCertaintyOverHTTP(t *testing.T) {
	code := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name string
		do   http.HandlerFunc // nil means that the server is gone
		want delivery.Certainty
	}{
		{"gone", nil, delivery.NotSent},
		{"401", code(401, ""), delivery.Refused},
		{"403", code(403, "no"), delivery.Refused},
		{"429", code(429, ""), delivery.Refused},
		{"503 without a body", code(503, ""), delivery.Refused},
		{"502", code(502, "bad gateway"), delivery.Unknown},
		{"the connection breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, delivery.Unknown},
	} {
		s, web := callServer(t, c.do)
		client := open(t, s, nil)
		if _, err := client.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.do == nil {
			web.CloseClientConnections()
			web.Close()
		}
		x := call(t, client, "test_act", `{}`)
		said := strings.Contains(x.Result.Text(), "may have happened")
		if x.Outcome != pawl.OutcomeError || x.Certainty != c.want || said != (c.want == delivery.Unknown) {
			t.Errorf("%s: %s, certainty %q, %q; want %q", c.name, x.Outcome, x.Certainty, x.Result.Text(), c.want)
		}
	}
}

// A program that ends during a call leaves it open whether the call happened.
func TestCertaintyOfProcess(t *testing.T) {
	s := stdio("normal")
	s.Trust = true
	c := open(t, s, nil)
	x := call(t, c, "test_die", `{"text":`+strconv.Quote(filepath.Join(t.TempDir(), "f"))+`}`)
	if x.Certainty != delivery.Unknown || !strings.Contains(x.Result.Text(), "may have happened") {
		t.Errorf("%s, certainty %q, %q", x.Outcome, x.Certainty, x.Result.Text())
	}
}
