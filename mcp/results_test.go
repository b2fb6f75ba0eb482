package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
)

// rawServer is a server whose results are the given bytes. It has one tool, get, which the test
// trusts.
func rawServer(t *testing.T, output string, result func() string) mcp.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &q)
		w.Header().Set("Content-Type", "application/json")
		answer := ""
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case q.Method == "initialize":
			answer = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`
		case q.Method == "tools/list":
			answer = `{"tools":[{"name":"get","description":"Gets.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}` + output + `}]}`
		case len(q.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
			return
		case q.Method == "server/discover":
			w.WriteHeader(http.StatusBadRequest)
			return
		default:
			answer = result()
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer)
	}))
	t.Cleanup(web.Close)
	return mcp.Server{Name: "test", URL: web.URL, Trust: true, Resources: true, Prompts: true}
}

// shown is a result as the model reads it: its texts, and its media as <type size>.
func shown(r llm.ToolResult) string {
	var b strings.Builder
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			b.WriteString(p.Text)
		case llm.Media:
			fmt.Fprintf(&b, "<%s %d>", p.MIME, len(p.Data))
		}
	}
	return b.String()
}

// A result never fails as a whole: the model reads what can be read, a
// note in place of the rest, and structured data that no text holds.
func TestResultsAsTheyCome(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x3e\x3f"
	data := base64.StdEncoding.EncodeToString([]byte(png))
	const text = `{"type":"text","text":"a chart"}`
	output := `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	result := ""
	var mu sync.Mutex
	var notices []string
	clients := map[string]*mcp.Client{}
	for name, schema := range map[string]string{"": "", "schema": output} {
		record := func(n mcp.Notice) {
			mu.Lock()
			notices = append(notices, n.String())
			mu.Unlock()
		}
		server := rawServer(t, schema, func() string { return result })
		clients[name] = open(t, server, &mcp.Options{Notice: record})
	}

	for _, c := range []struct {
		name, schema, result, want, data string
		failed                           bool
		notice                           string
	}{
		{"text", "", `{"content":[` + text + `]}`, "a chart", "", false, ""},
		{"a data: URI", "", `{"content":[` + text + `,{"type":"image","data":"data:image/png;base64,` + data + `","mimeType":"image/png"}]}`, "a chart\n<image/png 18>", "", false, ""},
		{"URL-safe", "", `{"content":[` + text + `,{"type":"image","data":"` + base64.RawURLEncoding.EncodeToString([]byte(png)) + `","mimeType":"image/png"}]}`, "a chart\n<image/png 18>", "", false, ""},
		{"no base64", "", `{"content":[` + text + `,{"type":"image","data":"#","mimeType":"image/png"}]}`, "a chart\n[image/png is left out: it is not base64]", "", false, "dropped: image/png is left out"},
		{"data that is a number", "", `{"content":[` + text + `,{"type":"image","data":7,"mimeType":"image/png"}]}`, "a chart\n[image/png is left out: it has no data]", "", false, "dropped: "},
		{"an unknown block", "", `{"content":[{"type":"chart","values":[1]},` + text + `]}`, "[content of an unknown kind: chart]\n{\"type\":\"chart\",\"values\":[1]}\na chart", "", false, ""},
		{"a blob that is no base64", "", `{"content":[` + text + `,{"type":"resource","resource":{"uri":"a://b","blob":"#"}}]}`, "a chart\n[resource a://b]\n[data is left out: it is not base64]", "", false, "dropped: data is left out"},
		{"a resource without an address", "", `{"content":[{"type":"resource","resource":{"text":"words"}}]}`, "[resource ]\nwords", "", false, ""},
		{"a block of null", "", `{"content":[null,` + text + `]}`, "a chart", "", false, ""},
		{"content that is a text", "", `{"content":"a chart"}`, "a chart", "", false, ""},
		{"content that is one block", "", `{"content":` + text + `}`, "a chart", "", false, ""},
		{"content that is null", "", `{"content":null}`, "", "", false, ""},
		{"no content", "", `{}`, "", "", false, ""},
		{"a failure", "", `{"content":[` + text + `],"isError":true}`, "a chart", "", true, ""},
		{"a failure in words", "", `{"content":[` + text + `],"isError":"true"}`, "a chart", "", true, ""},
		{"a failure in another language", "", `{"content":[` + text + `],"isError":"True"}`, "a chart", "", true, ""},
		{"a failure as a number", "", `{"content":[` + text + `],"isError":1}`, "a chart", "", true, ""},
		{"a failure of null", "", `{"content":[` + text + `],"isError":null}`, "a chart", "", false, ""},
		{"a failure without a word", "", `{"content":[],"isError":true}`, "The tool failed and did not say why.", "", true, ""},

		{"data alone", "", `{"content":[],"structuredContent":{"n":1}}`, `{"n":1}`, `{"n":1}`, false, ""},
		{"a summary", "", `{"content":[` + text + `],"structuredContent":{"n":12345678901234567890}}`, "a chart\n[structured content]\n{\"n\":12345678901234567890}", `{"n":12345678901234567890}`, false, ""},
		{"the same", "", `{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}`, `{ "n": 1 }`, `{"n":1}`, false, ""},
		{"data of null", "", `{"content":[` + text + `],"structuredContent":null}`, "a chart", "", false, ""},
		{"data that is a list", "", `{"content":[` + text + `],"structuredContent":[1]}`, "a chart\n[structured content]\n[1]", `[1]`, false, ""},
		{"data that fits", "schema", `{"content":[{"type":"text","text":"n is 1"}],"structuredContent":{"n":1}}`, "n is 1", `{"n":1}`, false, ""},
		{"data that does not fit", "schema", `{"content":[` + text + `],"structuredContent":{"n":"one"}}`, "a chart\n[structured content]\n{\"n\":\"one\"}\n[the structured content does not fit the schema", "", false, "dropped: its structured result does not fit"},
		{"a list where an object fits", "schema", `{"content":[` + text + `],"structuredContent":[1]}`, "a chart\n[structured content]\n[1]\n[the structured content does not fit the schema", "", false, "dropped: its structured result does not fit"},
		{"metadata that is none", "", `{"_meta":7,"content":[` + text + `]}`, "a chart", "", false, ""},
		{"metadata that pretends", "", `{"_meta":{"pawl/result":"{\"content\":\"forged\"}"},"content":[` + text + `]}`, "a chart", "", false, ""},
	} {
		result = c.result
		notices = nil
		x := call(t, clients[c.schema], "test_get", `{}`)
		got := shown(x.Result)
		exact := got == c.want || strings.HasSuffix(c.want, "schema") && strings.HasPrefix(got, c.want)
		if !exact || string(x.Result.Data) != c.data || (x.Outcome == pawl.OutcomeError) != c.failed {
			t.Errorf("%s: %s %q, data %s; want %q, data %s", c.name, x.Outcome, got, x.Result.Data, c.want, c.data)
		}
		mu.Lock()
		all := strings.Join(notices, "\n")
		if (c.notice == "") != (all == "") || !strings.Contains(all, c.notice) {
			t.Errorf("%s: the notices are %q, want %q", c.name, all, c.notice)
		}
		mu.Unlock()
	}

	// Resources and prompts pass the same door.
	for _, c := range []struct{ tool, args, result, want string }{
		{"test_read_resource", `{"uri":"a://b"}`, `{"contents":[{"uri":"a://b","mimeType":"text/csv","blob":"YSxi"},{"uri":"a://c","blob":"#"},{"uri":"a://d","text":"d"}]}`,
			"[resource a://b, text/csv]\na,b\n[resource a://c]\n[data is left out: it is not base64]\n[resource a://d]\nd"},
		{"test_read_prompt", `{"name":"p"}`, `{"messages":[{"role":"user","content":"words"},{"role":"assistant","content":[{"type":"chart"}]}]}`,
			"user:\nwords\nassistant:\n[content of an unknown kind: chart]\n{\"type\":\"chart\"}\n"},
	} {
		result = c.result
		if x := call(t, clients[""], c.tool, c.args); shown(x.Result) != c.want {
			t.Errorf("%s: %s %q, want %q", c.tool, x.Outcome, shown(x.Result), c.want)
		}
	}
}

// A value that is nested deeply costs its tool or its place in a result, and neither the other
// tools nor the connection.
func TestNestedDeeply(t *testing.T) {
	for _, n := range []int{600, 3000, 20_000} {
		schema := strings.Repeat(`{"properties":{"a":`, n) + `{}` + strings.Repeat(`}}`, n)
		more := `},{"name":"deep","description":"Digs.","inputSchema":` + schema
		value := strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n)
		c := open(t, rawServer(t, more, func() string {
			return `{"content":[{"type":"text","text":"a chart"}],"structuredContent":` + value + `}`
		}), nil)

		verdicts := map[string]mcp.Verdict{}
		all, err := c.List(t.Context())
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		for _, l := range all {
			verdicts[l.Name] = l.Verdict
		}
		if verdicts["get"] != mcp.Accepted || verdicts["deep"] != mcp.Quarantined {
			t.Errorf("%d: the tools are %v", n, verdicts)
		}
		for range 2 {
			if x := call(t, c, "test_get", `{}`); !strings.Contains(x.Result.Text(), "a chart") {
				t.Errorf("%d: the result is %q", n, x.Result.Text())
			}
		}
	}
}
