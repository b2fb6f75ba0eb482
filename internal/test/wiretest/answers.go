package wiretest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Reading is the content of a recorded answer as an independent reader finds it. Such a reader
// follows the paths of the API's documentation with encoding/json and its own structs, joins
// streams itself, and shares no code with the adapter. If the two differ, one of them is wrong.
type Reading struct {
	Text      string
	Reasoning *string // nil means that the reader does not look for it
	Finish    string  // in the neutral words
	Usage     Figures
	Calls     []string // as Reader.Call writes them
	// Kept is content that is sent back unchanged, as Reader.Kept writes it. It is compared if that
	// is not nil.
	Kept   []string
	Err    string // the message of an error; empty means that the answer is a reply
	Broken bool   // the answer has no reliable end
}

// Figures are the figures of an llm.Usage that a reader can check.
type Figures struct{ Input, Output, Reasoning, CacheRead, CacheWrite int }

// Reader reads recorded answers independently of the adapter, and formats the adapter's reading for
// the comparison.
type Reader struct {
	Read  func(streaming bool, body string) (Reading, error)
	Error func(body []byte) string           // the code and text of an answer with an error status
	Call  func(llm.ToolCall) string          // a call of the adapter
	Noted func(pawltest.RecordedCall) string // a call in the recorder's notes
	// Kept returns the content of a part that is sent back. nil means that it is not compared.
	Kept func(llm.Part) []string
	// Back returns the difference of the reply when it is sent back; empty means none. nil means
	// that it is not compared.
	Back func(body []byte, r *llm.Response) string
}

// Answers proves that every recorded answer decodes to what the reader finds in it, and to the
// calls that the recorder noted. known has the known misses by the name of the exchange, each with
// its reason. A known miss that no longer occurs fails the test, and so does a miss that is not
// listed.
func Answers(t *testing.T, w *Wire, r *Reader, atLeast int, known map[string]string) {
	all, out := w.exchanges(t)
	misses, errs, streams, calls, vertex := 0, 0, 0, 0, 0
	for _, e := range all {
		body, err := e.Body()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Path, "/publishers/") {
			vertex++
		}
		if e.Streaming {
			streams++
		}
		resp, err := w.Decode(e.Response.Status, e.Streaming, body)
		if err != nil {
			errs++
		} else {
			calls += len(resp.Message.Calls())
		}
		why, reason := Compare(r, e, body, resp, err), known[e.Name()]
		switch {
		case why != "" && reason != "":
			t.Logf("known miss: %s: %s: %s", e.Name(), reason, why)
			misses++
		case why != "":
			t.Errorf("%s: %s", e.Name(), why)
			misses++
		case reason != "":
			t.Errorf("%s is no miss any more: take it off the list", e.Name())
		}
	}
	gone := 0
	for _, n := range out {
		gone += n
	}
	total := len(all) + gone
	t.Logf("%d exchanges: %d excluded %v; %d compared (%d streamed, %d of Vertex AI, %d errors, %d calls), %d misses", total, gone, out, len(all), streams, vertex, errs, calls, misses)
	if gone*100 > total*5 {
		t.Errorf("%d of %d are excluded, more than 5 %%", gone, total)
	}
	if misses*100 > len(all) {
		t.Errorf("%d of %d are missed, more than 1 %%", misses, len(all))
	}
	if total < atLeast {
		t.Errorf("only %d exchanges were found", total)
	}
}

// Compare returns the differences between the adapter's reading of an answer and the findings of
// the reader and the recorder. "" means that there are none.
func Compare(r *Reader, e *pawltest.Exchange, body []byte, resp *llm.Response, err error) string {
	if e.Response.Status >= 300 {
		return compareError(e.Response.Status, r.Error(body), err)
	}
	streaming := e.Streaming && !strings.HasPrefix(strings.TrimSpace(string(body)), "{")
	want, readErr := r.Read(streaming, string(body))
	switch {
	case readErr != nil:
		return "the independent reader cannot read it: " + readErr.Error()
	case want.Err != "":
		return compareError(0, want.Err, err)
	case want.Broken && err == nil:
		return "it has no end, but was taken for a reply"
	case want.Broken:
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
	differ("text", resp.Message.Text(), want.Text)
	differ("finish", string(resp.Finish), want.Finish)
	u := resp.Usage
	differ("usage", Figures{u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite}, want.Usage)
	var calls, noted, kept []string
	reasoning := ""
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case llm.ToolCall:
			calls = append(calls, r.Call(p))
		case llm.Reasoning:
			reasoning += p.Text
		}
		if r.Kept != nil {
			kept = append(kept, r.Kept(p)...)
		}
	}
	if want.Reasoning != nil {
		differ("reasoning", reasoning, *want.Reasoning)
	}
	if r.Kept != nil {
		differ("what is kept", kept, want.Kept)
	}
	differ("calls by the reader", calls, want.Calls)
	for _, c := range e.Info.ToolCalls {
		noted = append(noted, r.Noted(c))
	}
	differ("calls by the recorder", calls, noted)
	if r.Back != nil {
		if why := r.Back(body, resp); why != "" {
			diffs = append(diffs, why)
		}
	}
	return strings.Join(diffs, "; ")
}

func compareError(status int, text string, err error) string {
	var p *llm.ProviderError
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

// AnswersControl is the negative control of Answers: a reply that is spoilt in any of the usual
// ways, or in a way of more, must differ. body is a whole answer with text and a call, with all
// figures of usage that the wire has.
func AnswersControl(t *testing.T, w *Wire, r *Reader, body string, noted pawltest.RecordedCall,
	more map[string]func(*llm.Response)) {
	t.Helper()
	e := &pawltest.Exchange{}
	e.Response.Status = 200
	e.Info.ToolCalls = []pawltest.RecordedCall{noted}
	decode := func() *llm.Response {
		resp, err := w.Decode(200, false, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if why := Compare(r, e, []byte(body), decode(), nil); why != "" {
		t.Fatalf("the right reading differs: %s", why)
	}
	call := func(change func(*llm.ToolCall)) func(*llm.Response) {
		return func(r *llm.Response) {
			for i, p := range r.Message.Parts {
				if c, ok := p.(llm.ToolCall); ok {
					change(&c)
					r.Message.Parts[i] = c
				}
			}
		}
	}
	spoil := map[string]func(*llm.Response){
		"finish":          func(r *llm.Response) { r.Finish = llm.FinishReasonStop },
		"input":           func(r *llm.Response) { r.Usage.Input++ },
		"output":          func(r *llm.Response) { r.Usage.Output++ },
		"cache read":      func(r *llm.Response) { r.Usage.CacheRead = 0 },
		"reasoning usage": func(r *llm.Response) { r.Usage.Reasoning = 0 },
		"a call's arguments": call(func(c *llm.ToolCall) {
			c.Args = json.RawMessage(strings.Replace(string(c.Args), "1", "2", 1))
		}),
		"a call's name":  call(func(c *llm.ToolCall) { c.Name += "x" }),
		"a call's id":    call(func(c *llm.ToolCall) { c.ID += "x" }),
		"a call is lost": func(r *llm.Response) { r.Message.Parts = r.Message.Parts[:len(r.Message.Parts)-1] },
		"text": func(r *llm.Response) {
			for i, p := range r.Message.Parts {
				if text, ok := p.(llm.Text); ok {
					text.Text += "!"
					r.Message.Parts[i] = text
				}
			}
		},
	}
	for name, f := range more {
		spoil[name] = f
	}
	for name, f := range spoil {
		resp := decode()
		f(resp)
		if Compare(r, e, []byte(body), resp, nil) == "" {
			t.Errorf("%s: the comparison finds nothing", name)
		}
	}
	e.Response.Status = 429
	if Compare(r, e, []byte(`{"error":{"message":"slow down"}}`), nil, &llm.ProviderError{Code: llm.CodeRateLimit, Status: 500, Message: "slow down"}) == "" {
		t.Error("a lost status is not found")
	}
}

// Canonical writes a JSON value with its names sorted and without spaces. An empty value and null
// become {}.
func Canonical(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "no JSON: " + string(raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
