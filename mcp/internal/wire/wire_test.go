package wire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/mcp/internal/wire"
)

const (
	ok3   = `{"jsonrpc":"2.0","id":3,"result":{}}`
	ok4   = `{"jsonrpc":"2.0","id":4,"result":{}}`
	ping  = `{"jsonrpc":"2.0","method":"ping","id":"a"}`
	noted = `{"jsonrpc":"2.0","method":"notifications/x"}`
)

// open returns requests with the IDs.
func open(ids ...int) *wire.Requests {
	q := new(wire.Requests)
	for _, id := range ids {
		q.Sent(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"prompts/get"}`, id))
	}
	return q
}

// A result of a call without content has what the program returned in its place. Control: the
// results of the protocol, and of other requests, stay.
func TestResultsOfCalls(t *testing.T) {
	for _, c := range []struct{ method, result, want string }{
		{"tools/call", `"words"`, `{"content":"words"}`},
		{"tools/call", `[{"type":"text"}]`, `{"content":[{"type":"text"}]}`},
		{"tools/call", `7`, `{"content":7}`},
		{"tools/call", `{"took":3}`, `{"structuredContent":{"took":3}}`},
		{"tools/call", `{"_meta":{},"isError":true,"why":"late"}`, `{"_meta":{},"isError":true,"structuredContent":{"why":"late"}}`},
		{"tools/call", `{"content":[],"took":3}`, `{"content":[],"took":3}`},
		{"tools/call", `{"structuredContent":{},"took":3}`, `{"structuredContent":{},"took":3}`},
		{"tools/call", `{"task":{"taskId":"1"}}`, `{"task":{"taskId":"1"}}`},
		{"tools/call", `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"input_required","inputRequests":{}}`},
		{"tools/call", `{"isError":true}`, `{"isError":true}`},
		{"tools/call", `{}`, `{}`},
		{"tools/list", `"words"`, `"words"`},
		{"tools/list", `{"took":3}`, `{"took":3}`},
	} {
		q := new(wire.Requests)
		q.Sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + c.method + `"}`))
		out, err := q.Repair([]byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`), wire.Source{})
		var m struct{ Result json.RawMessage }
		if err == nil {
			err = json.Unmarshal(out, &m)
		}
		if err != nil || string(m.Result) != c.want {
			t.Errorf("%s: %s: got %s, %v; want %s", c.method, c.result, m.Result, err, c.want)
		}
	}
}

// deep returns a reply with n lists in one another, around a value.
func deep(n int, value ...string) string {
	lists := strings.Repeat("[", n) + strings.Join(value, "") + strings.Repeat("]", n)
	return `{"jsonrpc":"2.0","id":3,"result":{"a":` + lists + `}}`
}

// What a program writes to its standard output, and the messages in it.
func TestLines(t *testing.T) {
	fails := func(id int, code int, text string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q},"id":%d,"jsonrpc":"2.0"}`, code, text, id)
	}
	tests := []struct {
		name, in string
		want     []string
	}{
		{"one message", ok3, []string{ok3}},
		{"white space", " \t" + ok3 + " \r\n\r\n", []string{ok3}},
		{"a byte order mark", "\ufeff" + ok3, []string{ok3}},
		{"a mark at each line", "\ufeff" + noted + "\n\ufeff" + ok3, []string{noted, ok3}},
		{"a greeting", "Server is up\n" + ok3, []string{ok3}},
		{"a log in JSON", `{"level":"info","msg":"up","id":3}` + "\n" + ok3, []string{ok3}},
		{"a log with a method", `{"method":"GET","id":3,"result":200}` + "\n" + ok3, []string{ok3}},
		{"a log that begins like JSON", "[INFO] up\n{ starting }\n[1/3] step\n" + ok3, []string{ok3}},
		{"a cut log", `{"level":"info","msg":"u` + "\n" + ok3, []string{ok3}},
		{"other JSON", "null\n17\n\"x\"\n[]\n{}\n[[" + ok3 + "]]\n" + ok3, []string{ok3}},
		{"an array", "[" + noted + "," + ok3 + "," + ok4 + "]", []string{noted, ok3, ok4}},
		{"an array with a log in it", `[{"level":"info"},` + ok3 + "]", []string{ok3}},
		{"two in a line", ok3 + ok4, []string{ok3, ok4}},
		{"text after a message", ok3 + " sent\n" + ok4, []string{ok3, ok4}},
		{"a message on several lines", "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 3,\n  \"result\": {\"a\": \"}{\\\"\"}\n}\n" + ok4,
			[]string{"{\n\"jsonrpc\": \"2.0\",\n\"id\": 3,\n\"result\": {\"a\": \"}{\\\"\"}\n}", ok4}},
		{"bytes that are no text", "\xff\xfe\x00\n" + ok3, []string{ok3}},
		{"the ID as text", `{"jsonrpc":"2.0","id":"3","result":{}}`, []string{`{"id":3,"jsonrpc":"2.0","result":{}}`}},
		{"the ID as a fraction", `{"jsonrpc":"2.0","id":3.0,"result":{}}`, []string{`{"id":3,"jsonrpc":"2.0","result":{}}`}},
		{"another version", `{"jsonrpc":2.0,"id":3,"result":{}}`, []string{`{"id":3,"jsonrpc":"2.0","result":{}}`}},
		{"a null method", `{"jsonrpc":"2.0","id":3,"method":null,"result":{}}`, []string{`{"id":3,"jsonrpc":"2.0","result":{}}`}},
		{"an unknown ID", `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" + ok3, []string{ok3}},
		{"the same reply twice", ok3 + "\n" + ok3, []string{ok3}},
		{"an ID that is an object", `{"jsonrpc":"2.0","id":{},"method":"x"}` + "\n" + ok3, []string{ok3}},
		{"a request with a null ID", `{"jsonrpc":"2.0","id":null,"method":"notifications/x"}`, []string{`{"jsonrpc":"2.0","method":"notifications/x"}`}},
		{"an error as text", `{"jsonrpc":"2.0","id":3,"error":"full"}`, []string{fails(3, -32603, "full")}},
		{"an error without a code", `{"jsonrpc":"2.0","id":3,"error":{"message":"full"}}`, []string{fails(3, -32603, "full")}},
		{"an error with a code as text", `{"jsonrpc":"2.0","id":3,"error":{"code":"E_FULL","message":"full"}}`, []string{fails(3, -32603, "full")}},
		{"an error next to a result", `{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"full"},"result":{}}`, []string{fails(3, 1, "full")}},
		{"a null error", `{"jsonrpc":"2.0","id":3,"error":null,"result":{}}`, []string{`{"id":3,"jsonrpc":"2.0","result":{}}`}},
		{"one of pawl's own codes", `{"jsonrpc":"2.0","id":3,"error":{"code":-39001,"message":"again"}}`, []string{fails(3, -32603, "again")}},
		{"neither result nor error", `{"jsonrpc":"2.0","id":3}`, []string{fails(3, -32603, "the reply has neither a result nor an error")}},
		{"values in one another", deep(3000), []string{deep(898, `"[nested too deeply to be read]"`)}},
		{"more of them than a decoder reads", deep(20_000), []string{deep(898, `"[nested too deeply to be read]"`)}},
		{"a cut message of them", deep(3000)[:4000] + "\n" + ok3, []string{ok3}},
		{"requests stay as they are", ping + "\n" + noted, []string{ping, noted}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := open(3, 4)
			repair := func(b []byte) ([]byte, error) { return q.Repair(b, wire.Source{}) }
			r := wire.Reader{Most: 100_000, Repair: repair}
			got, err := io.ReadAll(r.Lines(io.NopCloser(strings.NewReader(test.in))))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(test.want, "\n") + "\n"
			if d := cmp.Diff(want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// An error without an ID belongs to the only open request, and to none of several.
func TestErrorWithoutID(t *testing.T) {
	const failed = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`
	if got, err := open(3).Repair([]byte(failed), wire.Source{}); err != nil || !strings.Contains(string(got), `"id":3`) {
		t.Errorf("one: got %s, %v", got, err)
	}
	if got, err := open(3, 4).Repair([]byte(failed), wire.Source{}); err == nil {
		t.Errorf("two: got %s", got)
	}
	got, err := open(3, 4).Repair([]byte(failed), wire.Source{For: []byte("4")})
	if err != nil || !strings.Contains(string(got), `"id":4`) {
		t.Errorf("in the response to one: got %s, %v", got, err)
	}
}

// A part that is no message is answered, and the next message is delivered.
func TestBadLines(t *testing.T) {
	q := open()
	var bad []string
	r := wire.Reader{
		Most:   100,
		Repair: func(b []byte) ([]byte, error) { return q.Repair(b, wire.Source{}) },
		Bad: func(code int, text string) []byte {
			bad = append(bad, fmt.Sprint(code, " ", text))
			return nil
		},
	}
	in := "hello\n{}\n[]\n{\"jsonrpc\"\n" + ping + "\n" + strings.Repeat("x", 200_000) + "\n{" + strings.Repeat("x", 200_000) + "\n" + ping
	got, err := io.ReadAll(r.Lines(io.NopCloser(strings.NewReader(in))))
	if want := ping + "\n" + ping + "\n"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	want := []string{
		"-32700 it is not JSON",
		"-32600 it is no message of JSON-RPC 2.0",
		"-32600 it is no message of JSON-RPC 2.0",
		"-32700 it is not JSON",
		"-32700 it is not JSON",
		"-32600 " + wire.TooLong,
	}
	if d := cmp.Diff(want, bad); d != "" {
		t.Error(d)
	}
}

// What a server writes as server-sent events, and what is read.
func TestEvents(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"one message", "data: " + ok3 + "\n\n", "data: " + ok3 + "\n\n"},
		{"CRLF, a mark and a name", "\ufeffevent: message\r\ndata:" + ok3 + "\r\n\r\n", "event: message\ndata: " + ok3 + "\n\n"},
		{"a heartbeat", ": ping\n\ndata:\n\ndata: {}\n\ndata: ping\n\ndata: " + ok3 + "\n\n", "data: " + ok3 + "\n\n"},
		{"several lines", "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":3,\ndata: \"result\":{}}\n\n", "data: " + ok3 + "\n\n"},
		{"an array", "id: 7\ndata: [" + noted + "," + ok3 + "]\n\n", "data: " + noted + "\n\nid: 7\ndata: " + ok3 + "\n\n"},
		{"an end without an empty line", "data: " + ok3, "data: " + ok3 + "\n\n"},
		{"a cut message", "data: " + ok3[:20] + "\n\ndata: " + ok4 + "\n\n", "data: " + ok4 + "\n\n"},
		{"a priming event", "id: 1\nretry: 10\ndata: \n\n", "id: 1\nretry: 10\n\n"},
		{"another name", "event: endpoint\ndata: /messages\n\n", "event: endpoint\ndata: /messages\n\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := open(3, 4)
			repair := func(b []byte) ([]byte, error) { return q.Repair(b, wire.Source{}) }
			r := wire.Reader{Most: 100_000, Repair: repair}
			got, err := io.ReadAll(r.Events(io.NopCloser(strings.NewReader(test.in))))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// The body of a response is the reply to its request, with any ID.
func TestBody(t *testing.T) {
	for in, want := range map[string]string{
		ok3:                                      ok3,
		"\ufeff " + ok3:                          ok3,
		"[" + noted + "," + ok3 + "]":            ok3,
		`{"jsonrpc":"2.0","id":"x","result":{}}`: `{"id":3,"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`: `{"id":3,"jsonrpc":"2.0","result":{}}`,
		"<html>":                 "",
		"":                       "",
		`{"detail":"Not Found"}`: "",
	} {
		q := open(3)
		from := wire.Source{For: []byte("3"), Sole: true}
		r := wire.Reader{Most: 1000, Repair: func(b []byte) ([]byte, error) { return q.Repair(b, from) }}
		if got := string(r.Body([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
