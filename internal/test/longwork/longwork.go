// Package longwork is a run of hundreds of requests that a provider weighs: a survey of many pages,
// in which facts are searched. The tests of package history use it, and the tests of engines that
// restart such a run.
package longwork

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// Survey is long work: pages are read one after the other, and then each planted fact is searched
// and read. The script goes by the last results alone, as a model does that has lost the rest.
type Survey struct {
	Pages         int
	Facts         int     // planted facts; 0 means none
	Least, Most   int     // bytes of a page
	Window        int     // tokens; the provider refuses a longer request. 0 means no limit
	BytesPerToken float64 // 0 means 3.4
	Shelf         bool    // results over 32 KiB are stored
	Writes        int     // every Writes-th page is noted by a call with an effect; 0 means none
	Blind         bool    // the provider reports no usage
	Think         bool    // each reply begins with reasoning
	Model         string  // a model at its own provider, whose own means are tried; "" means none
	Wire          string  // the API; "" means chat
	Skill         string  // the result of a tool with Pin, called first; "" means none
	Asked         func()  // called for each request; nil means nothing

	// What the provider saw.
	URL     string // the provider's address, set by Provider
	Meter   Meter
	Current int      // tokens of the present request
	Digests []string // of the requests
	Body    string   // of the last request

	mu   sync.Mutex
	prev []byte // the request before
}

// Meter counts what a provider saw.
type Meter struct {
	Requests   int
	Refused    int // requests that were too long
	Largest    int // tokens of the largest request
	Edits      int // edits of the window
	Summaries  int // requests for a summary, in place of a reply
	Sent       int // tokens
	Bytes      int // of the requests
	Cached     int // bytes of the requests that a cache has
	Violations []string
}

// Share returns the share of the bytes that a cache has.
func (m *Meter) Share() float64 { return float64(m.Cached) / float64(max(1, m.Bytes)) }

// Price is the cost at 0.1 for a million cached tokens and 1.25 for others.
func (m *Meter) Price() float64 {
	return float64(m.Sent) / 1e6 * (m.Share()*0.1 + (1-m.Share())*1.25)
}

// fact returns the fact of page n, or "".
func (s *Survey) fact(n int) string {
	if s.Facts == 0 || n%(s.Pages/s.Facts) != s.Pages/s.Facts/2 {
		return ""
	}
	k := n / (s.Pages / s.Facts)
	return fmt.Sprintf("FACT-%d is %d", k, 1000+k*37)
}

// Page returns page n, which is the same each time.
func (s *Survey) Page(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	size := s.Least + r.IntN(s.Most-s.Least+1)
	var b strings.Builder
	fmt.Fprintf(&b, "Page %d of the survey\n", n)
	for b.Len() < size {
		if f := s.fact(n); f != "" && b.Len() > size/2 && !strings.Contains(b.String(), f) {
			b.WriteString(f + "\n")
		}
		fmt.Fprintf(&b, "%x %x at the mill near the river %d\n", r.Uint32(), r.Uint32(), r.IntN(100))
	}
	return b.String()
}

// Tools returns page_read, note and, with an archive, result_read.
func (s *Survey) Tools() []pawl.Toolset {
	page := pawl.Func("page_read", "Reads a page of the survey.", func(_ context.Context, in struct {
		Page int `json:"page"`
	}) (string, error) {
		return s.Page(in.Page), nil
	})
	page.Effect = pawl.EffectRead
	note := pawl.Func("note", "Notes a page.", func(_ context.Context, in struct {
		Page int `json:"page"`
	}) (string, error) {
		return fmt.Sprintf("noted %d", in.Page), nil
	})
	note.Effect = pawl.EffectWrite
	if s.Skill != "" {
		skill := pawl.Func("skill", "Shows a skill.", func(context.Context, struct{}) (string, error) { return s.Skill, nil })
		skill.Effect, skill.Pin = pawl.EffectRead, true
		return []pawl.Toolset{page, skill, artifact.Reader{}}
	}
	if s.Shelf {
		return []pawl.Toolset{page, note}
	}
	return []pawl.Toolset{page, note, artifact.Reader{}}
}

// Agent returns an agent that does the work with the model m.
func (s *Survey) Agent(m llm.Model, ws ...pawl.Middleware) *pawl.Agent {
	a := &pawl.Agent{Model: m, Instructions: "Read the survey. Then find the facts.", Tools: s.Tools(), Middleware: ws,
		Limits: pawl.Limits{Rounds: 5 * s.Pages}}
	if s.Shelf {
		a.Artifacts = new(artifact.Memory)
	}
	return a
}

var (
	found   = regexp.MustCompile(`(?m)^(\S+) line \d+: FACT-(\d+) is (\d+)`)
	notWord = regexp.MustCompile(`\W+`)
	located = regexp.MustCompile(`FACT-(\d+) is (\d+)`)
)

// next returns the calls of the next reply; none means the answer.
func (s *Survey) next(req *llm.Request) []llm.ToolCall {
	call := func(name string, args any) llm.ToolCall {
		b, _ := json.Marshal(args)
		return llm.ToolCall{ID: strings.Trim(notWord.ReplaceAllString(name+string(b), "_"), "_"), Name: name, Args: b}
	}
	read := func(n int) []llm.ToolCall {
		calls := []llm.ToolCall{call("page_read", map[string]any{"page": n})}
		if n%10 == 9 && n+1 < s.Pages {
			calls = append(calls, call("page_read", map[string]any{"page": n + 1}))
		}
		if s.Skill != "" && n == 0 {
			calls = append(calls, call("skill", map[string]any{}))
		}
		if s.Writes > 0 && n%s.Writes == s.Writes/2 {
			calls = append(calls, call("note", map[string]any{"page": n}))
		}
		return calls
	}
	search := func(k int) []llm.ToolCall {
		if k >= s.Facts {
			return nil
		}
		return []llm.ToolCall{call("result_read", map[string]any{"pattern": fmt.Sprintf("FACT-%d is", k)})}
	}
	last := len(req.Messages) - 1
	for last >= 0 && req.Messages[last].Role != llm.RoleAssistant {
		last--
	}
	if last < 0 {
		return read(0)
	}
	var results strings.Builder
	for _, m := range req.Messages[last+1:] {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				results.WriteString(r.Text() + "\n")
			}
		}
	}
	highest := -1
	for _, c := range req.Messages[last].Calls() {
		var in struct {
			Page    int
			ID      string
			Pattern string
		}
		_ = json.Unmarshal(c.Args, &in)
		k, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(in.Pattern, "FACT-"), " is"))
		switch {
		case c.Name == "page_read":
			highest = max(highest, in.Page)
		case c.Name == "result_read" && in.ID == "":
			m := found.FindStringSubmatch(results.String())
			if m == nil {
				return search(k + 1) // it is lost
			}
			return []llm.ToolCall{call("result_read", map[string]any{"id": m[1], "pattern": in.Pattern})}
		case c.Name == "result_read":
			return search(k + 1)
		}
	}
	if highest+1 < s.Pages {
		return read(highest + 1)
	}
	return search(0)
}

// Stream is the model behind the provider.
func (s *Survey) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		usage := &llm.Usage{Input: s.Current, Output: 20}
		if s.Blind {
			usage = &llm.Usage{}
		}
		calls := s.next(req)
		i := 0
		if s.Think {
			if !yield(llm.Delta{Part: llm.Reasoning{Text: fmt.Sprintf("after %d messages", len(req.Messages))}, Done: true}, nil) {
				return
			}
			i++
		}
		for _, c := range calls {
			if !yield(llm.Delta{Index: i, Part: c, Done: true}, nil) {
				return
			}
			i++
		}
		if len(calls) == 0 && !yield(llm.Delta{Index: i, Part: llm.Text{Text: "All is read."}, Done: true}, nil) {
			return
		}
		yield(llm.Delta{Usage: usage, Finish: llm.FinishReasonStop}, nil)
	}
}

var cacheMark = regexp.MustCompile(`,"cache_control":\{[^}]*\}`)

// weigh counts a request as the provider does, and refuses it if it is too long.
func (s *Survey) weigh(_ int, r *pawltest.Received) *pawltest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	per := s.BytesPerToken
	if per == 0 {
		per = 3.4
	}
	body := cacheMark.ReplaceAll(r.Body, nil)
	s.Current = int(float64(len(body)) / per)
	m := &s.Meter
	s.Body = string(r.Body)
	m.Requests++
	if s.Asked != nil {
		s.Asked()
	}
	s.Digests = append(s.Digests, fmt.Sprintf("%x", sha256.Sum256(r.Body)))
	for _, v := range r.Violations {
		m.Violations = append(m.Violations, v.String())
	}
	if s.Window > 0 && s.Current > s.Window {
		m.Refused++
		return &pawltest.Fault{Status: 400, Message: fmt.Sprintf("prompt is too long: %d tokens exceed the context window of %d; this model's maximum context length is less", s.Current, s.Window)}
	}
	m.Largest = max(m.Largest, s.Current)
	m.Sent += s.Current
	same := 0
	for same < min(len(body), len(s.prev)) && body[same] == s.prev[same] {
		same++
	}
	// Tools come first in a cache, also where they follow the messages in a body.
	if at := bytes.LastIndex(body, []byte(`"tools":`)); at > same && bytes.HasSuffix(s.prev, body[at:]) {
		same += len(body) - at
	}
	m.Bytes += len(body)
	m.Cached += same
	s.prev = bytes.Clone(body)
	if bytes.Contains(body, []byte(`"compaction":{"type":"summarize"}`)) {
		m.Summaries++
	}
	return nil
}

// Wires are the four APIs.
var Wires = []string{"chat", "responses", "anthropic", "gemini"}

// Provider starts a provider and returns its model.
func (s *Survey) Provider(t testing.TB, wire string, by ...http.RoundTripper) llm.Model {
	t.Helper()
	sim, err := pawltest.NewSimulator(s, &pawltest.SimulatorOptions{Fault: s.weigh, Quiet: true,
		Tokens:        func(*pawltest.Received) int { s.mu.Lock(); defer s.mu.Unlock(); return s.Current },
		BoundThinking: wire == "anthropic"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	s.URL = sim.URL
	var through http.RoundTripper
	if len(by) > 0 {
		through = by[0]
	}
	if s.Model != "" {
		there := redirect(strings.TrimPrefix(sim.Root, "http://"))
		if len(by) > 0 {
			through = durable.Transport(there)
		} else {
			through = there
		}
		if wire == "anthropic" {
			return anthropic.New(s.Model, &anthropic.Options{Key: "none", Retries: -1, HTTP: through, BaseURL: "https://api.anthropic.com"})
		}
		o := &openai.Options{Key: "none", Retries: -1, HTTP: through, BaseURL: "https://api.openai.com/v1"}
		if wire == "chat" {
			return openai.NewChat(s.Model, o)
		}
		return openai.New(s.Model, o)
	}
	o := &openai.Options{BaseURL: sim.URL, Key: "none", Retries: -1, HTTP: through}
	switch wire {
	case "chat":
		return openai.NewChat("gpt-5-mini", o)
	case "responses":
		return openai.New("gpt-5-mini", o)
	case "anthropic":
		return anthropic.New("claude-sonnet-5-5", &anthropic.Options{BaseURL: sim.URL, Key: "none", Retries: -1, HTTP: through})
	}
	return gemini.New("gemini-3-pro", &gemini.Options{BaseURL: sim.Root, Key: "none", Retries: -1, HTTP: through})
}

// redirect sends all requests to the server at an address of this machine.
type redirect string

func (to redirect) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", string(to)
	return http.DefaultTransport.RoundTrip(r)
}

// Known returns the facts that the results of the searches have.
func (s *Survey) Known(res *pawl.Result) int {
	values := map[string]bool{}
	read := map[string]bool{} // calls that read a result by its id
	for _, m := range res.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if p.Name == "result_read" && strings.Contains(string(p.Args), `"id"`) {
					read[p.ID] = true
				}
			case llm.ToolResult:
				if read[p.CallID] {
					for _, f := range located.FindAllString(p.Text(), -1) {
						values[f] = true
					}
				}
			}
		}
	}
	n := 0
	for i := range s.Pages {
		if f := s.fact(i); f != "" && values[f] {
			n++
		}
	}
	return n
}

// Run does the work, and counts the edits.
func (s *Survey) Run(t testing.TB, wire string, ws ...pawl.Middleware) (*pawl.Result, error) {
	t.Helper()
	a := s.Agent(s.Provider(t, wire), ws...)
	var res *pawl.Result
	for e, err := range a.Stream(context.Background(), llm.User("Survey the mill.")) {
		if err != nil {
			return res, err
		}
		switch {
		case e.Kind == pawl.EventNotice && e.Code == history.NoticeWindowEdited:
			s.Meter.Edits++
		case e.Kind == pawl.EventRunEnded:
			res = e.Result
		}
	}
	return res, nil
}
