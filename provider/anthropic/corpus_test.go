package anthropic_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// corpus loads the recordings, or skips.
func corpus(t *testing.T) []pawltest.Cassette {
	t.Helper()
	root := os.Getenv("PAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	all, err := pawltest.LoadCassettes(filepath.Join(root, "provider-traffic", "dev"), "anthropic-messages")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("corpora absent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// excluded says why an exchange is no matter of the adapter; "" if it is.
func excluded(e *pawltest.Exchange) string {
	switch {
	case strings.HasSuffix(e.Path, "/count_tokens"):
		return "another endpoint: counts tokens"
	case e.Streaming && strings.HasPrefix(e.Path, "/model/"):
		return "frames of Bedrock's event stream"
	}
	return ""
}

// known are the misses we know of, by exchange, with the reason.
var known = map[string]string{
	"vercel/ai/packages/anthropic/src/__fixtures__/anthropic-programmatic-tool-calling.1.json#0": "the recorder lists calls that code in the server's container made, and whose results it has",
}

// Every recorded answer decodes to what an independent reader finds in it.
func TestRecordedAnswers(t *testing.T) {
	total, misses, errs, out := 0, 0, 0, map[string]int{}
	vertex, seen, listed := 0, map[string]bool{}, []string(nil)
	for _, c := range corpus(t) {
		for _, e := range c.Exchanges {
			total++
			if known[e.Name()] != "" {
				listed = append(listed, e.Name())
			}
			if why := excluded(&e); why != "" {
				out[why]++
				continue
			}
			if strings.Contains(e.Path, "/publishers/anthropic/models/") {
				vertex++
			}
			body, err := e.Body()
			if err != nil {
				t.Fatal(err)
			}
			resp, err := anthropic.DecodeMessages(e.Response.Status, e.Streaming, body)
			if err != nil {
				errs++
			}
			if why := compare(&e, body, resp, err); why != "" {
				misses++
				seen[e.Name()] = true
				if known[e.Name()] == "" {
					t.Errorf("%s: %s", e.Name(), why)
				} else {
					t.Logf("known miss: %s: %s: %s", e.Name(), known[e.Name()], why)
				}
			}
		}
	}
	for _, name := range listed {
		if !seen[name] {
			t.Errorf("%s is no miss any more: take it off the list", name)
		}
	}
	gone := 0
	for _, n := range out {
		gone += n
	}
	t.Logf("%d exchanges: %d excluded %v, %d compared, %d of them of Vertex AI, %d errors, %d misses", total, gone, out, total-gone, vertex, errs, misses)
	if gone*100 > total*5 {
		t.Errorf("%d of %d are excluded, more than 5 %%", gone, total)
	}
	if misses*100 > total-gone {
		t.Errorf("%d of %d are missed, more than 1 %%", misses, total-gone)
	}
	if total < 300 {
		t.Errorf("only %d exchanges were found", total)
	}
}

// compare returns how the adapter differs from the independent reader and from the recorder; "" if it does not.
func compare(e *pawltest.Exchange, body []byte, resp *pawl.Response, err error) string {
	if e.Response.Status >= 300 {
		return compareError(e.Response.Status, errorText(body), err)
	}
	streaming := e.Streaming && !strings.HasPrefix(strings.TrimSpace(string(body)), "{")
	want, readErr := read(streaming, string(body))
	switch {
	case readErr != nil:
		return "the independent reader cannot read it: " + readErr.Error()
	case want.err != "":
		return compareError(0, want.err, err)
	case want.broken && err == nil:
		return "it has no end, but was taken for a reply"
	case want.broken:
		return ""
	case err != nil:
		return "not decoded: " + err.Error()
	}
	var diffs []string
	differ := func(what string, got, want any) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		if string(g) != string(w) {
			diffs = append(diffs, what+": got "+string(g)+", want "+string(w))
		}
	}
	differ("text", resp.Message.Text(), want.text)
	differ("finish", string(resp.Finish), want.finish)
	u := resp.Usage
	differ("usage", counts{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite}, want.usage)
	var calls, byRecorder, recorded, kept []string
	reasoning := ""
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case pawl.ToolCall:
			calls = append(calls, p.ID+" "+p.Name+" "+canonical(p.Args))
			byRecorder = append(byRecorder, p.ID+" "+p.Name+" "+canonical(p.Args))
		case pawl.Reasoning:
			reasoning += p.Text
			if p.Opaque == nil {
				continue
			}
			var b struct{ Type, Container string }
			if err := json.Unmarshal(p.Opaque.Data, &b); err != nil {
				return "kept, but no JSON: " + string(p.Opaque.Data)
			}
			if b.Container != "" {
				b.Type = "container " + b.Container
			}
			kept = append(kept, b.Type)
		}
	}
	differ("reasoning", reasoning, want.reasoning)
	differ("blocks that are kept", kept, want.opaque)
	differ("calls by the reader", calls, want.calls)
	for _, c := range e.Info.ToolCalls {
		recorded = append(recorded, c.ID+" "+c.Name+" "+canonical(c.Args))
	}
	differ("calls by the recorder", byRecorder, recorded)
	return strings.Join(diffs, "; ")
}

func compareError(status int, text string, err error) string {
	var p *pawl.ProviderError
	switch {
	case !errors.As(err, &p):
		return "an error was not taken for one: " + text
	case status != 0 && p.Status != status:
		return "the error has lost its status"
	case p.Code == "" || !strings.Contains(p.Message, text):
		return "the error says " + p.Error() + ", not " + text
	}
	return ""
}

// The comparison finds what is wrong: the negative control of TestRecordedAnswers.
func TestComparisonFindsDifferences(t *testing.T) {
	body := `{"type":"message","id":"m","model":"c","stop_reason":"tool_use","content":[
		{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"look","input":{"at": 1}}],
		"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"output_tokens_details":{"thinking_tokens":2}}}`
	e := &pawltest.Exchange{}
	e.Response.Status = 200
	e.Info.ToolCalls = []pawltest.RecordedCall{{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}}
	decode := func() *pawl.Response {
		resp, err := anthropic.DecodeMessages(200, false, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if why := compare(e, []byte(body), decode(), nil); why != "" {
		t.Fatalf("the right reading differs: %s", why)
	}
	for name, spoil := range map[string]func(*pawl.Response){
		"reasoning":     func(r *pawl.Response) { r.Message.Parts[0] = pawl.Reasoning{Text: "Hm!"} },
		"signature":     func(r *pawl.Response) { r.Message.Parts[0] = pawl.Reasoning{Text: "Hm."} },
		"text":          func(r *pawl.Response) { r.Message.Parts[1] = pawl.Text{Text: "I look!"} },
		"finish":        func(r *pawl.Response) { r.Finish = pawl.FinishStop },
		"input":         func(r *pawl.Response) { r.Usage.Input++ },
		"cache read":    func(r *pawl.Response) { r.Usage.CacheRead = 0 },
		"cache write":   func(r *pawl.Response) { r.Usage.CacheWrite = 0 },
		"reasoning use": func(r *pawl.Response) { r.Usage.Reasoning = 0 },
		"arguments": func(r *pawl.Response) {
			r.Message.Parts[2] = pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":2}`)}
		},
		"id": func(r *pawl.Response) {
			r.Message.Parts[2] = pawl.ToolCall{ID: "b", Name: "look", Args: []byte(`{"at":1}`)}
		},
		"a call is lost": func(r *pawl.Response) { r.Message.Parts = r.Message.Parts[:2] },
	} {
		resp := decode()
		spoil(resp)
		if compare(e, []byte(body), resp, nil) == "" {
			t.Errorf("%s: the comparison finds nothing", name)
		}
	}
}
