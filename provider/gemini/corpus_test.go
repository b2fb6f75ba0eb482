package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/gemini"
)

// corpora is where the recordings are.
func corpora() string {
	if root := os.Getenv("PAWL_CORPORA"); root != "" {
		return root
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}

// corpus loads the recordings of the API, or skips.
func corpus(t *testing.T) []pawltest.Cassette {
	t.Helper()
	all, err := pawltest.LoadCassettes(filepath.Join(corpora(), "provider-traffic", "dev"), "gemini")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("corpora absent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// known are the misses we know of, by exchange, with the reason.
var known = map[string]string{}

// Every recorded answer decodes to what an independent reader finds in it, and goes back as it came.
func TestRecordedAnswers(t *testing.T) {
	total, out, misses, errs, streams, calls, returned := 0, 0, 0, 0, 0, 0, 0
	seen, listed := map[string]bool{}, []string(nil)
	for _, c := range corpus(t) {
		for _, e := range c.Exchanges {
			total++
			if known[e.Name()] != "" {
				listed = append(listed, e.Name())
			}
			if strings.HasSuffix(e.Path, ":countTokens") {
				out++ // another endpoint
				continue
			}
			body, err := e.Body()
			if err != nil {
				t.Fatal(err)
			}
			resp, err := gemini.DecodeGenerate(e.Response.Status, e.Streaming, body)
			if err != nil {
				errs++
			} else {
				calls += len(resp.Message.Calls())
			}
			if e.Streaming {
				streams++
			}
			why := compare(&e, body, resp, err)
			if why == "" && err == nil {
				why = goesBack(body, resp)
				returned++
			}
			if why != "" {
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
	t.Logf("%d exchanges: %d countTokens excluded, %d compared (%d streamed, %d errors, %d calls, %d replies sent back), %d misses",
		total, out, total-out, streams, errs, calls, returned, misses)
	if out*100 > total*5 {
		t.Errorf("%d of %d are excluded, more than 5 %%", out, total)
	}
	if misses*100 > total-out {
		t.Errorf("%d of %d are missed, more than 1 %%", misses, total-out)
	}
	if total < 400 {
		t.Errorf("only %d exchanges were found", total)
	}
}

// compare returns how the adapter differs from the independent reader and from the recorder; "" if it does not.
func compare(e *pawltest.Exchange, body []byte, resp *pawl.Response, err error) string {
	if e.Response.Status >= 300 {
		return compareError(e.Response.Status, errorText(body), err)
	}
	want, readErr := readAnswer(string(body))
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
	differ("usage", figures{u.Input, u.Output, u.Reasoning, u.CacheRead}, want.usage)
	var calls, signatures, recorded []string
	thoughts := ""
	for i, p := range resp.Message.Parts {
		var o *pawl.Opaque
		switch p := p.(type) {
		case pawl.Text:
			o = p.Opaque
		case pawl.Reasoning:
			thoughts += p.Text
			o = p.Opaque
		case pawl.ToolCall:
			o = p.Opaque
			id := p.ID
			if strings.HasPrefix(id, "call_") && len(id) < 9 {
				id = "" // made by Response.Add
			}
			calls = append(calls, id+" "+p.Name+" "+canonical(p.Args))
		}
		if o == nil {
			continue
		}
		var kept struct {
			Signature string `json:"thoughtSignature"`
			Media     struct {
				Signature string `json:"thoughtSignature"`
			} `json:"ofMedia"`
		}
		if err := json.Unmarshal(o.Data, &kept); err != nil || o.Provider != "gemini" {
			diffs = append(diffs, "part "+string(rune('0'+i))+" keeps what is no object of gemini's")
		}
		if s := kept.Signature + kept.Media.Signature; s != "" {
			signatures = append(signatures, s)
		}
	}
	differ("reasoning", thoughts, want.thoughts)
	differ("signatures", signatures, want.signatures)
	differ("calls by the reader", calls, want.calls)
	for _, c := range e.Info.ToolCalls {
		recorded = append(recorded, c.ID+" "+c.Name+" "+recordedArgs(c.Args))
	}
	differ("calls by the recorder", calls, recorded)
	return strings.Join(diffs, "; ")
}

// recordedArgs are the arguments as the recorder has them: an object, nothing, or, where they came in parts, by path.
func recordedArgs(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "{}"
	}
	var flat map[string]json.RawMessage
	if json.Unmarshal(raw, &flat) != nil {
		return canonical(raw)
	}
	for path := range flat {
		if !strings.HasPrefix(path, "$.") {
			return canonical(raw)
		}
	}
	root := map[string]any{}
	for path, value := range flat {
		var text string
		if json.Unmarshal(value, &text) == nil {
			set(root, path, text)
		} else {
			set(root, path, json.Number(value))
		}
	}
	b, _ := json.Marshal(root)
	return canonical(b)
}

// goesBack reports how the parts of a whole reply differ when they are sent back; "" where they do not. Empty texts without
// anything else are left out, and arguments that were left out are an empty object.
func goesBack(body []byte, resp *pawl.Response) string {
	want, err := readAnswer(string(body))
	if err != nil || want.parts == nil {
		return ""
	}
	var kept []string
	for _, p := range want.parts {
		if p == `{"text":""}` || p == `{}` {
			continue
		}
		kept = append(kept, p)
	}
	b, err := gemini.EncodeGenerate(&pawl.Request{Model: "gemini-2.5-flash", Messages: []pawl.Message{resp.Message, pawl.User("go on")}})
	if err != nil {
		return "it cannot be sent back: " + err.Error()
	}
	var sent struct {
		Contents []struct {
			Role  string
			Parts []json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &sent); err != nil {
		return err.Error()
	}
	var got []string
	if sent.Contents[0].Role == "model" {
		for _, p := range sent.Contents[0].Parts {
			got = append(got, canonical(p))
		}
	}
	if g, w := strings.Join(got, "\n"), strings.Join(kept, "\n"); g != w {
		return "sent back as\n" + g + "\nwant\n" + w
	}
	return ""
}

func compareError(status int, text string, err error) string {
	var p *pawl.ProviderError
	text = strings.TrimSpace(text)
	switch {
	case !errors.As(err, &p):
		return "an error was not taken for one: " + text
	case status != 0 && p.Status != status:
		return "the error has lost its status"
	case p.Code == "" || !strings.Contains(p.Message, text[:min(len(text), 100)]):
		return "the error says " + p.Error() + ", not " + text
	}
	return ""
}

// The comparison finds what is wrong: the negative control of TestRecordedAnswers.
func TestComparisonFindsDifferences(t *testing.T) {
	body := `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},
		{"functionCall":{"id":"a","name":"look","args":{"at": 1}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4}}`
	e := &pawltest.Exchange{}
	e.Response.Status = 200
	e.Info.ToolCalls = []pawltest.RecordedCall{{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}}
	decode := func() *pawl.Response {
		resp, err := gemini.DecodeGenerate(200, false, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if why := compare(e, []byte(body), decode(), nil) + goesBack([]byte(body), decode()); why != "" {
		t.Fatalf("the right reading differs: %s", why)
	}
	signed := &pawl.Opaque{Provider: "gemini", Data: []byte(`{"thoughtSignature":"c2ln"}`)}
	for name, spoil := range map[string]func(*pawl.Response){
		"text":      func(r *pawl.Response) { r.Message.Parts[1] = pawl.Text{Text: "I look!"} },
		"thought":   func(r *pawl.Response) { r.Message.Parts[0] = pawl.Reasoning{Text: "h"} },
		"finish":    func(r *pawl.Response) { r.Finish = pawl.FinishStop },
		"input":     func(r *pawl.Response) { r.Usage.Input++ },
		"output":    func(r *pawl.Response) { r.Usage.Output = 3 },
		"cache":     func(r *pawl.Response) { r.Usage.CacheRead = 0 },
		"reasoning": func(r *pawl.Response) { r.Usage.Reasoning = 0 },
		"arguments": func(r *pawl.Response) {
			r.Message.Parts[2] = pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":2}`), Opaque: signed}
		},
		"signature": func(r *pawl.Response) {
			r.Message.Parts[2] = pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
		},
		"id": func(r *pawl.Response) {
			r.Message.Parts[2] = pawl.ToolCall{ID: "b", Name: "look", Args: []byte(`{"at":1}`), Opaque: signed}
		},
		"a call is lost": func(r *pawl.Response) { r.Message.Parts = r.Message.Parts[:2] },
	} {
		resp := decode()
		spoil(resp)
		if compare(e, []byte(body), resp, nil) == "" {
			t.Errorf("%s: the comparison finds nothing", name)
		}
	}
	e.Response.Status = 429
	if compare(e, []byte(`{"error":{"message":"slow down"}}`), nil, &pawl.ProviderError{Code: pawl.CodeRateLimit, Status: 500, Message: "slow down"}) == "" {
		t.Error("a lost status is not found")
	}
	moved := decode()
	moved.Message.Parts[1], moved.Message.Parts[2] = pawl.Text{Text: "I look.", Opaque: signed}, pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
	if goesBack([]byte(body), moved) == "" {
		t.Error("a signature on another part is not found")
	}
}

// The recorded errors, and those that were reported, have the code that their status stands for.
func TestRecordedErrors(t *testing.T) {
	codes := map[int]string{400: "invalid_request", 401: "authentication", 403: "permission", 404: "not_found", 429: "rate_limit retryable", 500: "server retryable", 503: "overloaded retryable"}
	n := 0
	for _, name := range []string{filepath.Join("dev", "gemini.jsonl"), filepath.Join("dev", "vertex.jsonl"), "reported-shapes.jsonl"} {
		b, err := os.ReadFile(filepath.Join(corpora(), "errors", name))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("corpora absent: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var e struct {
				Provider string
				Status   int
				Body     json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Provider != "gemini" && e.Provider != "vertex" || e.Status < 300 {
				continue
			}
			n++
			body := []byte(e.Body)
			var text string
			if json.Unmarshal(e.Body, &text) == nil {
				body = []byte(text)
			}
			_, err := gemini.DecodeGenerate(e.Status, false, body)
			var p *pawl.ProviderError
			if !errors.As(err, &p) {
				t.Errorf("%s: %v", line, err)
				continue
			}
			got := string(p.Code)
			if p.Retryable {
				got += " retryable"
			}
			if got != codes[e.Status] || p.Status != e.Status || p.Message == "" || strings.HasPrefix(p.Message, "{") {
				t.Errorf("%s:\n got %s, %v\nwant %s", line, got, p, codes[e.Status])
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d errors were found", n)
	}
}

// A recorded stream with other line ends, or in other pieces, is the same reply; one that is cut is the reply or an error, and never has a
// call that the whole one has not.
func TestRecordedStreamsInPieces(t *testing.T) {
	streams, cuts := 0, 0
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range corpus(t) {
		for _, e := range c.Exchanges {
			body, err := e.Body()
			if err != nil {
				t.Fatal(err)
			}
			whole, err := gemini.DecodeGenerate(200, true, body)
			if !e.Streaming || err != nil {
				continue
			}
			streams++
			want := render(whole)
			if got := outcome(gemini.DecodeGenerate(200, true, bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")))); got != want {
				t.Errorf("%s: with LF: got %s\nwant %s", e.Name(), got, want)
			}
			m := gemini.New("m", &gemini.Options{HTTP: transport(func(*http.Request) (*http.Response, error) {
				res := reply(200, string(body))
				res.Body = io.NopCloser(&pieces{body, random})
				return res, nil
			}), Key: "k"})
			if got, _, err := ask(t.Context(), m, user("go"), true); outcome(got, err) != want {
				t.Errorf("%s: in pieces: got %s\nwant %s", e.Name(), outcome(got, err), want)
			}
			calls := whole.Message.Calls()
			for n := 0; n < len(body); n += 1 + random.IntN(1+len(body)/200) {
				cuts++
				cut, err := gemini.DecodeGenerate(200, true, body[:n])
				var p *pawl.ProviderError
				switch {
				case err != nil && !errors.As(err, &p):
					t.Errorf("%s: cut at %d: %v", e.Name(), n, err)
				case err == nil:
					for i, c := range cut.Message.Calls() {
						if i >= len(calls) || c.Name != calls[i].Name || string(c.Args) != string(calls[i].Args) {
							t.Errorf("%s: cut at %d it calls %s %s", e.Name(), n, c.Name, c.Args)
						}
					}
				}
			}
		}
	}
	t.Logf("%d streams, cut %d times", streams, cuts)
	if streams < 50 {
		t.Errorf("only %d streams were found", streams)
	}
}

// pieces reads a body in pieces of any size.
type pieces struct {
	left   []byte
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:1+p.random.IntN(min(len(p.left), 100))])
	p.left = p.left[n:]
	return n, nil
}
