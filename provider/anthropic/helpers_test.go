package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/provider/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// render writes a reply on one line: its parts, its finish and its usage.
func render(r *pawl.Response) string {
	var b strings.Builder
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case pawl.Text:
			fmt.Fprintf(&b, "text %q%s; ", p.Text, opaque(p.Opaque))
		case pawl.Reasoning:
			fmt.Fprintf(&b, "reasoning %q%s; ", p.Text, opaque(p.Opaque))
		case pawl.ToolCall:
			fmt.Fprintf(&b, "call %s %s %s%s; ", p.ID, p.Name, p.Args, opaque(p.Opaque))
		default:
			fmt.Fprintf(&b, "%T; ", p)
		}
	}
	b.WriteString(string(r.Finish))
	if u := r.Usage; u.Total() > 0 {
		fmt.Fprintf(&b, "; in %d out %d", u.Input, u.Output)
		for _, n := range []struct {
			name string
			n    int
		}{{"reasoning", u.Reasoning}, {"read", u.CacheRead}, {"write", u.CacheWrite}} {
			if n.n > 0 {
				fmt.Fprintf(&b, " %s %d", n.name, n.n)
			}
		}
	}
	return b.String()
}

func opaque(o *pawl.Opaque) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" [%s %s]", o.Provider, o.Data)
}

// outcome is render, or the code and text of the error.
func outcome(r *pawl.Response, err error) string {
	if err == nil {
		return render(r)
	}
	var e *pawl.ProviderError
	if !errors.As(err, &e) {
		return "not a ProviderError: " + err.Error()
	}
	s := "error " + string(e.Code)
	if e.Status != 0 {
		s += fmt.Sprintf(" %d", e.Status)
	}
	if e.Retryable {
		s += " retryable"
	}
	if e.RetryAfter > 0 {
		s += " after " + e.RetryAfter.String()
	}
	return s + ": " + e.Message
}

// events frames each text as an event, named after its type.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		json.Unmarshal([]byte(d), &e)
		b.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
)

func opens(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func adds(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func closes(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func ends(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}}`, reason)
}

// stream makes a stream of events between the start of a message and its end.
func stream(reason string, data ...string) string {
	return events(append(append([]string{begin}, data...), ends(reason), stop)...)
}

// whole makes a whole body of content blocks.
func whole(reason string, blocks ...string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[%s],"stop_reason":%q,"stop_sequence":null,
		"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`, strings.Join(blocks, ","), reason)
}

const used = "; in 15 out 7 read 3 write 2"

// transport answers requests from a function, without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f(r)
	if r.Body != nil {
		r.Body.Close()
	}
	return res, err
}

func reply(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func tool(name string) *pawl.Tool {
	return &pawl.Tool{Name: name, Description: "Does " + name + ".", Input: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`), Passive: true}
}

func user(text string) *pawl.Request {
	return &pawl.Request{Model: "claude-sonnet-4-5", Messages: []pawl.Message{pawl.User(text)}}
}

// encode returns the body of req, or its error.
func encode(t *testing.T, req *pawl.Request) string {
	t.Helper()
	b, err := anthropic.EncodeMessages(req)
	if err != nil {
		return outcome(nil, err)
	}
	if !json.Valid(b) {
		t.Errorf("not valid JSON: %s", b)
	}
	if again, _ := anthropic.EncodeMessages(req); string(again) != string(b) {
		t.Error("the same request gave other bytes")
	}
	return string(b)
}

// unmarked is the body without cache marks.
func unmarked(body string) string {
	return strings.ReplaceAll(strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, ""), `"cache_control":{"type":"ephemeral"},`, "")
}
