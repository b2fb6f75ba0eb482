package pawltest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// place is the parameter of a tool of Func, whose schema is inferred each time.
type place struct {
	City    string            `json:"city"`
	Country string            `json:"country,omitzero"`
	Days    int               `json:"days,omitzero"`
	Labels  map[string]string `json:"labels,omitzero"`
	Near    []struct {
		Name  string  `json:"name"`
		Miles float64 `json:"miles"`
	} `json:"near,omitzero"`
}

// rich returns a request with every element of a body, made from new maps, each with a seed of its
// own.
func rich(api string) *llm.Request {
	registry := new(pawl.Registry)
	for _, name := range []string{"weather", "a name that does not fit", "another one, too"} {
		schema := map[string]any{"type": "object", "properties": map[string]any{}}
		for i := range 5 {
			schema["properties"].(map[string]any)[fmt.Sprint("p", i)] = map[string]any{"type": []string{"string", "null"}, "description": name, "enum": []any{"a", "b", nil}}
		}
		input, _ := json.Marshal(schema)
		registry.Add(&pawl.Tool{Name: name, Input: input, Passive: true})
	}
	tools, _ := registry.Tools(context.Background())
	forecast := &pawl.Tool{Name: "forecast", Description: "Tomorrow.", Passive: true}
	forecast.Input = pawl.Func("forecast", "Tomorrow.", func(_ context.Context, p place) (string, error) { return p.City, nil }).Input
	options := map[string]json.RawMessage{}
	for i := range 16 {
		options[fmt.Sprint("other", i)] = json.RawMessage(`{"x":1}`)
	}
	options[tagOf[api]] = json.RawMessage(`{"metadata":{"b":"1","a":"2"},"user":"u"}`)
	temperature := 0.2
	req := &llm.Request{Model: map[string]string{pawltest.Anthropic: "claude-sonnet-4-5", pawltest.Gemini: "gemini-3-flash-preview"}[api],
		Messages: []llm.Message{llm.System("Be brief.")}, Tools: specs(append(tools, forecast)), Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
		Settings: llm.Settings{MaxTokens: 1000, Temperature: &temperature, Options: options}}
	if req.Model == "" {
		req.Model = "gpt-5-mini"
	}
	for i := range 3 {
		c1, c2 := fmt.Sprint("c1_", i), fmt.Sprint("c2_", i)
		one, two := llm.TextResult("rain"), llm.ErrorResult("no such place")
		one.CallID, two.CallID, two.Parts = c1, c2, append(two.Parts, picture)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "And?"}, picture}},
			llm.Assistant(llm.Text{Text: "I look."}, llm.ToolCall{ID: c1, Name: "a name that does not fit",
				Args: []byte(`{"p1":"a"}`)}, llm.ToolCall{ID: c2, Name: "forecast", Args: []byte(`{"city":`)}),
			llm.Results(one, two))
	}
	return req
}

// encoded returns the request of rich on w.
func encoded(t *testing.T, w wire) []byte {
	t.Helper()
	b, err := w.encode(rich(w.api))
	if err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	return b
}

// The same conversation gives the same bytes in hundreds of encodings, for any seed of its maps and
// in every process.
func TestTheSameConversationIsTheSameBytes(t *testing.T) {
	soak.Sequential(t)
	const child = "PAWL_TEST_PRINT_SUMS"
	times := soak.N(200, 1000)
	if os.Getenv(child) != "" {
		times = 1
	}
	sums := ""
	for _, w := range wires {
		first := encoded(t, w)
		for range times - 1 {
			if again := encoded(t, w); !bytes.Equal(again, first) {
				t.Fatalf("%s:\n%s\nand then\n%s", w.name, first, again)
			}
		}
		sums += fmt.Sprintf("%x\n", sha256.Sum256(first))
	}
	if times == 1 {
		fmt.Print("sums:\n", sums, "end\n")
		return
	}
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "sums:\n"+sums+"end\n") {
			t.Fatalf("another process: %v: got\n%swant\n%s", err, out, sums)
		}
	}
}

// listOf returns the member of a body that holds the conversation.
var listOf = map[string]string{pawltest.Responses: "input", pawltest.Chat: "messages", pawltest.Anthropic: "messages", pawltest.Gemini: "contents"}

// stable returns the length of the prefix of a body that the body of a longer conversation must
// repeat: up to the end of the last message, or, if the next message is joined to it, up to the end
// of its last part. The rest (the choice of tools, the settings) may change.
func stable(t fataler, w wire, body []byte) int {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.Token()
	for dec.More() {
		name, _ := dec.Token()
		if name != listOf[w.api] {
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			continue
		}
		dec.Token()
		var last json.RawMessage
		end := 0
		for dec.More() {
			if err := dec.Decode(&last); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			end = int(dec.InputOffset())
		}
		if w.api == pawltest.Anthropic || w.api == pawltest.Gemini {
			end -= len("]}")
		}
		return end
	}
	t.Fatalf("%s: no %s in %s", w.name, listOf[w.api], body)
	return 0
}

type fataler interface{ Fatalf(string, ...any) }

// prefixes encodes a conversation at each of its requests, and reports each body that does not
// begin with the previous one. It returns the number of pairs.
func prefixes(t fataler, w wire, encode func(*llm.Request) ([]byte, error), req llm.Request) (pairs int, err error) {
	all := req.Messages
	var before []byte
	end := 0
	for n := 1; n <= len(all); n++ {
		last := all[n-1].Role
		if n < len(all) && all[n].Role != llm.RoleAssistant || last == llm.RoleAssistant || last == llm.RoleSystem {
			continue // no request was made here
		}
		req.Messages = all[:n]
		body, err := encode(&req)
		if err != nil {
			return pairs, err
		}
		if before != nil {
			pairs++
			if !bytes.HasPrefix(body, before[:end]) {
				at := 0
				for at < len(body) && at < end && body[at] == before[at] {
					at++
				}
				t.Fatalf("%s: the request after %d messages begins with %d bytes of the one before, want %d\nbefore: …%s\nthen:   …%s", w.name, n, at, end,
					before[max(0, at-60):], body[max(0, at-60):min(len(body), at+200)])
			}
		}
		before, end = body, stable(t, w, body)
	}
	return pairs, nil
}

// anyTalk is a conversation of any shape that runs can produce.
func anyTalk(t *rapid.T, api string) []llm.Message {
	msgs := []llm.Message{llm.System("Be brief."), llm.User("Go.")}
	for n := range rapid.IntRange(1, 6).Draw(t, "replies") {
		if rapid.Bool().Draw(t, "words") && msgs[len(msgs)-1].Role == llm.RoleTool {
			msgs = append(msgs, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "And?"}, picture}})
		}
		var parts []llm.Part
		if rapid.Bool().Draw(t, "own thought") {
			parts = append(parts,
				llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: tagOf[api], Data: map[string]json.RawMessage{
					pawltest.Responses: json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`),
					pawltest.Chat:      json.RawMessage(`{"field":"reasoning_content"}`),
					pawltest.Anthropic: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"x"}`),
					pawltest.Gemini:    json.RawMessage(`{"thought":true}`)}[api]}})
		}
		if rapid.Bool().Draw(t, "another's thought") {
			parts = append(parts, llm.Reasoning{Text: "hum", Opaque: &llm.Opaque{Provider: "elsewhere", Data: json.RawMessage(`"x"`)}})
		}
		if rapid.Bool().Draw(t, "text") {
			parts = append(parts, llm.Text{Text: rapid.SampledFrom([]string{"I look.", "", " ", "Grüße\n"}).Draw(t, "said")})
		}
		var results []llm.ToolResult
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"call_0", "toolu_", "a strange id, and longer than any API takes it, far longer than sixty-four letters "}).Draw(t, "id") + fmt.Sprint(i)
			parts = append(parts,
				llm.ToolCall{ID: id, Name: rapid.SampledFrom([]string{"look", "gone away"}).Draw(t, "tool"),
					Args: json.RawMessage(rapid.SampledFrom([]string{`{"at":"x"}`, "", `{"at`}).Draw(t, "args"))})
			r := llm.ToolResult{CallID: id, IsError: rapid.Bool().Draw(t, "error"),
				Parts: []llm.Part{llm.Text{Text: fmt.Sprint("result ", n)}}}
			if rapid.Bool().Draw(t, "picture") {
				r.Parts = append(r.Parts, picture)
			}
			results = append(results, r)
		}
		msgs = append(msgs, llm.Assistant(parts...))
		if results != nil {
			msgs = append(msgs, llm.Results(results...))
		} else {
			msgs = append(msgs, llm.User("Go on."))
		}
	}
	return msgs
}

// A request begins with the bytes of the previous one, up to the end of its last message, so that
// prompt caches hit. The test uses conversations of any shape, and every recorded loop of each API
// on all APIs.
func TestTurnsBeginWithTheTurnBefore(t *testing.T) {
	soak.Sequential(t)
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				req := rich(w.api)
				req.Messages = anyTalk(rt, w.api)
				if _, err := prefixes(rt, w, w.encode, *req); err != nil {
					rt.Fatalf("%v", err)
				}
			})
		})
	}
}

func TestRecordedTurnsBeginWithTheTurnBefore(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "provider-traffic")
	for _, from := range wires {
		t.Run(from.name, func(t *testing.T) {
			pairs, unsaid := map[string]int{}, map[string]int{}
			for _, c := range corpus(t, from.api) {
				for _, loop := range c.Loops() {
					last := loop[len(loop)-1]
					if last.Request == nil {
						continue
					}
					read, err := pawltest.ReadRequest(from.api, last.Request.Body)
					if err != nil {
						continue
					}
					for _, w := range wires {
						req := llm.Request{Model: rich(w.api).Model, Messages: later(w, read.Messages)}
						n, err := prefixes(t, w, w.encode, req)
						pairs[w.name] += n
						var refused *llm.ProviderError
						if errors.As(err, &refused) { // media of an unsupported kind
							unsaid[w.name]++
						} else if err != nil {
							t.Error(err)
						}
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(pairs)) {
				t.Logf("on %s: %d requests begin with the one before; %d loops cannot be said there", name, pairs[name], unsaid[name])
				if pairs[name] < 10 {
					t.Errorf("on %s: only %d pairs of requests", name, pairs[name])
				}
			}
		})
	}
}

// later removes instructions within a conversation for Gemini. Gemini has one place for them, at
// the beginning, so a new instruction changes the bytes before it.
func later(w wire, msgs []llm.Message) []llm.Message {
	if w.api != pawltest.Gemini {
		return msgs
	}
	begun := false
	return slices.DeleteFunc(slices.Clone(msgs), func(m llm.Message) bool {
		instructs := m.Role == llm.RoleSystem || m.Role == llm.RoleDeveloper
		begun = begun || !instructs
		return begun && instructs
	})
}

// If a server with Anthropic's API does not know the mark outside the messages, the marks move with
// the conversation: the bytes equal the bytes of the previous turn up to the first moved mark.
// Without marks they are equal to the end.
func TestMarksOfOtherServersMove(t *testing.T) {
	w := wires[2]
	for _, noCache := range []bool{false, true} {
		m, s := w.on(t, say("Well."), pawltest.SimulatorOptions{})
		if noCache {
			m = anthropic.New("claude-sonnet-4-5",
				&anthropic.Options{BaseURL: s.URL, Key: "test-key", Retries: -1, NoCache: true, HTTP: transport(t)})
		}
		encode := func(req *llm.Request) ([]byte, error) {
			_, err := llm.Complete(t.Context(), m, req)
			all := s.Received()
			return all[len(all)-1].Body, err
		}
		req := rich(w.api)
		req.Settings.Options = nil
		var moved recorded
		moved.t = t
		pairs, err := prefixes(&moved, w, encode, *req)
		if err != nil || pairs < 2 || (len(moved.said) == 0) != noCache {
			t.Errorf("no marks %t: %d pairs, %v, %d moved", noCache, pairs, err, len(moved.said))
		}
		for _, s := range moved.said {
			before, then, _ := strings.Cut(s, "\nthen:")
			if !strings.Contains(before, `,"cache_control"`) && !strings.Contains(then, `,"cache_control"`) {
				t.Errorf("it is not a mark that moved: %s", s)
			}
		}
	}
}

// recorded records failures.
type recorded struct {
	t    *testing.T
	said []string
}

func (r *recorded) Fatalf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func specs(tools []*pawl.Tool) []*llm.ToolSpec {
	var all []*llm.ToolSpec
	for _, t := range tools {
		all = append(all, t.Spec())
	}
	return all
}
