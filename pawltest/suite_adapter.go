package pawltest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
)

// TestAdapter runs the suite that every adapter to a provider must pass whose API a Simulator speaks: TestModel over HTTP, and
// beyond that what arrives of a request, and what becomes of errors. open returns a Model that asks the API at url (ending in
// /v1) with the key "test-key" and does not repeat requests.
func TestAdapter[TT T[TT]](t TT, open func(t TT, url string) pawl.Model) {
	over := func(t TT, behind pawl.Model, fault func(int, *Received) *Fault) (pawl.Model, *Simulator) {
		t.Helper()
		s, err := NewSimulator(behind, &SimulatorOptions{Key: "test-key", Fault: fault})
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(func() { s.Close() })
		return open(t, s.URL), s
	}
	t.Run("model", func(t TT) {
		TestModel(t, func(t TT, behind pawl.Model) pawl.Model {
			m, _ := over(t, behind, nil)
			return m
		})
	})
	t.Run("request", func(t TT) {
		behind := script.New(script.Loop(script.Say("yes")))
		m, s := over(t, behind, nil)
		for name, change := range requests() {
			for _, whole := range []bool{false, true} {
				req := question()
				req.Whole = whole
				change(req)
				if _, err := streamed(t, m, req); err != nil {
					t.Errorf("%s, whole %t: %v", name, whole, err)
					continue
				}
				asked := behind.Requests()
				if got, want := requestForm(asked[len(asked)-1]), requestForm(req); got != want {
					t.Errorf("%s, whole %t: arrived:\n%s\nwas asked:\n%s", name, whole, got, want)
				}
				if asked[len(asked)-1].Whole != whole {
					t.Errorf("%s: asked whole %t, arrived %t", name, whole, !whole)
				}
			}
		}
		for _, r := range s.Received() {
			if v := Check(r.API, r.Body); len(v) > 0 {
				t.Errorf("the checker refuses %s: %v", r.Body, v)
			}
		}
	})
	t.Run("same bytes", func(t TT) {
		m, s := over(t, script.New(script.Loop(script.Say("yes"))), nil)
		for range 3 {
			streamed(t, m, question())
		}
		got := s.Received()
		for _, r := range got[1:] {
			if string(r.Body) != string(got[0].Body) {
				t.Errorf("the same request was sent as\n%s\nand as\n%s", got[0].Body, r.Body)
			}
		}
	})
	t.Run("errors", func(t TT) {
		for name, test := range faults() {
			for _, whole := range []bool{false, true} {
				m, _ := over(t, script.New(script.Say("A long answer, long enough to be broken off in the middle.")),
					func(int, *Received) *Fault { return &test.fault })
				req := question()
				req.Whole = whole
				resp, err := streamed(t, m, req)
				var got *pawl.ProviderError
				if !errors.As(err, &got) {
					t.Errorf("%s, whole %t: got reply %s and error %v, want a *pawl.ProviderError", name, whole, form(resp), err)
					continue
				}
				if test.code != "" && got.Code != test.code || got.Retryable != test.retryable || got.RetryAfter != test.after {
					t.Errorf("%s, whole %t: got code %s, retryable %t, retry after %v; want %s, %t, %v (%v)", name, whole,
						got.Code, got.Retryable, got.RetryAfter, test.code, test.retryable, test.after, err)
				}
				if test.fault.Status != 0 && got.Status != test.fault.Status {
					t.Errorf("%s, whole %t: got status %d, want %d", name, whole, got.Status, test.fault.Status)
				}
				if strings.Contains(err.Error(), "test-key") {
					t.Errorf("%s: the error holds the key: %v", name, err)
				}
			}
		}
	})
}

// requests are changes to question that must arrive.
func requests() map[string]func(*pawl.Request) {
	temperature, topP, parallel := 0.5, 0.9, false
	return map[string]func(*pawl.Request){
		"plain":    func(*pawl.Request) {},
		"no tools": func(r *pawl.Request) { r.Tools = nil },
		"none":     func(r *pawl.Request) { r.Choice = pawl.ToolChoice{Mode: pawl.ToolNone} },
		"required": func(r *pawl.Request) { r.Choice = pawl.ToolChoice{Mode: pawl.ToolRequired} },
		"named":    func(r *pawl.Request) { r.Choice = pawl.Named("find") },
		"settings": func(r *pawl.Request) {
			r.Settings = pawl.Settings{MaxTokens: 500, Temperature: &temperature, TopP: &topP, Effort: "low", Parallel: &parallel}
		},
		"output": func(r *pawl.Request) {
			r.Output = json.RawMessage(`{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`)
		},
		"image": func(r *pawl.Request) {
			r.Messages = append(r.Messages, pawl.Message{Role: pawl.RoleUser, Parts: []pawl.Part{
				pawl.Text{Text: "What is this?"}, pawl.Media{MIME: "image/png", Data: []byte("\x89PNG")}, pawl.Media{URL: "https://example.com/a.png"}}})
		},
		"parallel results": func(r *pawl.Request) {
			r.Messages = append(r.Messages,
				pawl.Assistant(pawl.Text{Text: "I look."}, pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":"x"}`)},
					pawl.ToolCall{ID: "b", Name: "find", Args: []byte(`{}`)}),
				pawl.Results(pawl.ToolResult{CallID: "a", Parts: []pawl.Part{pawl.Text{Text: "one"}}},
					pawl.ToolResult{CallID: "b", Parts: []pawl.Part{pawl.Text{Text: "two"}}}))
		},
		"same ids in two replies": func(r *pawl.Request) {
			for range 2 {
				r.Messages = append(r.Messages, pawl.Assistant(pawl.ToolCall{ID: "call_0", Name: "look", Args: []byte(`{}`)}),
					pawl.Results(pawl.ToolResult{CallID: "call_0", Parts: []pawl.Part{pawl.Text{Text: "one"}}}))
			}
		},
		"others' reasoning": func(r *pawl.Request) {
			r.Messages = append(r.Messages, pawl.Assistant(pawl.Text{Text: "Hm."}), pawl.User("Go on."))
			r.Messages[2].Parts = append([]pawl.Part{pawl.Reasoning{Text: "secret", Opaque: &pawl.Opaque{Provider: "other", Data: []byte(`"x"`)}}},
				r.Messages[2].Parts...)
		},
	}
}

// requestForm is what must arrive of a request. Reasoning by others stays at home; names of media are the API's.
func requestForm(r *pawl.Request) string {
	c := *r
	c.Messages = nil
	for _, m := range r.Messages {
		n := pawl.Message{Role: m.Role}
		if n.Role == pawl.RoleDeveloper {
			n.Role = pawl.RoleSystem
		}
		for _, p := range m.Parts {
			switch q := p.(type) {
			case pawl.Reasoning:
				continue
			case pawl.Text:
				p = pawl.Text{Text: q.Text}
			case pawl.ToolCall:
				q.Opaque = nil
				p = q
			}
			n.Parts = append(n.Parts, p)
		}
		c.Messages = append(c.Messages, n)
	}
	return form(&c)
}

type faultCase struct {
	fault     Fault
	code      pawl.Code // "": any
	retryable bool
	after     time.Duration
}

func faults() map[string]faultCase {
	return map[string]faultCase{
		"rate limit":     {Fault{Status: 429, RetryAfter: "7"}, pawl.CodeRateLimit, true, 7 * time.Second},
		"quota":          {Fault{Status: 429, Code: "insufficient_quota"}, pawl.CodeQuota, false, 0},
		"wrong key":      {Fault{Status: 401}, pawl.CodeAuthentication, false, 0},
		"forbidden":      {Fault{Status: 403}, pawl.CodePermission, false, 0},
		"no such model":  {Fault{Status: 404, Code: "model_not_found"}, pawl.CodeNotFound, false, 0},
		"bad request":    {Fault{Status: 400}, pawl.CodeInvalidRequest, false, 0},
		"too long":       {Fault{Status: 400, Code: "context_length_exceeded"}, pawl.CodeContextLength, false, 0},
		"server error":   {Fault{Status: 500}, pawl.CodeServer, true, 0},
		"overloaded":     {Fault{Status: 503}, pawl.CodeOverloaded, true, 0},
		"no JSON":        {Fault{Status: 502, Body: []byte("<html>Bad Gateway</html>"), ContentType: "text/html"}, "", true, 0},
		"broken":         {Fault{Break: true, After: 3}, "", true, 0},
		"broken at once": {Fault{Break: true}, "", true, 0},
	}
}
