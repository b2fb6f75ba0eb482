package recording_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/script"
)

// wires opens a model of each provider.
var wires = map[string]func(root string, carry http.RoundTripper) llm.Model{
	"openai-chat": func(root string, carry http.RoundTripper) llm.Model {
		return openai.NewChat("m", &openai.Options{BaseURL: root + "/v1", Key: "sk-very-secret", HTTP: carry})
	},
	"openai-responses": func(root string, carry http.RoundTripper) llm.Model {
		return openai.New("m", &openai.Options{BaseURL: root + "/v1", Key: "sk-very-secret", HTTP: carry})
	},
	"anthropic": func(root string, carry http.RoundTripper) llm.Model {
		return anthropic.New("m", &anthropic.Options{BaseURL: root, Key: "sk-very-secret", HTTP: carry})
	},
	"gemini": func(root string, carry http.RoundTripper) llm.Model {
		return gemini.New("m", &gemini.Options{BaseURL: root, Key: "sk-very-secret", HTTP: carry})
	},
}

func run(ctx context.Context, m llm.Model, streamed bool, weather string) (*pawl.Result, error) {
	tool := pawl.Func("weather", "The weather.", func(context.Context, struct{}) (string, error) { return weather, nil })
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{tool}}
	if !streamed {
		return a.Run(ctx, llm.User("Do I need an umbrella?"))
	}
	var res *pawl.Result
	for e, err := range a.Stream(ctx, llm.User("Do I need an umbrella?")) {
		if err != nil {
			return res, err
		}
		if e.Kind == pawl.EventRunEnded {
			res = e.Result
		}
	}
	return res, nil
}

// A run over each provider, streamed and whole, is the same when it is played again. The file has
// no secret. With another tool result, the next request has no match: the miss is not retried and
// shows the differences.
func TestRecordAndPlay(t *testing.T) {
	for name, open := range wires {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s streamed=%v", name, streamed), func(t *testing.T) {
				sim, err := pawltest.NewSimulator(script.New(script.Together(script.Think("hm"),
					script.Call("weather", `{}`)), script.Say("Yes: <rain> & ☂.")), nil)
				if err != nil {
					t.Fatal(err)
				}
				rec := &recording.Recorder{Next: &http.Transport{DisableKeepAlives: true}}
				want, err := run(t.Context(), open(sim.Root, rec), streamed, "rain")
				if err != nil {
					t.Fatal(err)
				}
				file, err := rec.Recording().JSON()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(file), "very-secret") {
					t.Errorf("the key is in the file:\n%s", file)
				}
				r, err := recording.Parse(file)
				if err != nil {
					t.Fatal(err)
				}
				sim.Close()
				p := recording.Play(r)
				got, err := run(t.Context(), open(sim.Root, p), streamed, "rain")
				if err != nil || p.Left() != 0 {
					t.Fatalf("%v, %d left", err, p.Left())
				}
				if diff := cmp.Diff(asJSON(t, got.Messages), asJSON(t, want.Messages)); diff != "" {
					t.Errorf("got -, want +: %s", diff)
				}
				p = recording.Play(r)
				_, err = run(t.Context(), open("http://nowhere.test", p), streamed, "sun")
				var miss *recording.Miss
				if !errors.As(err, &miss) || miss.Number != 2 || miss.Nearest != 2 || len(miss.Differs) != 1 {
					t.Fatalf("got %v", err)
				}
				if text := miss.Error(); !strings.Contains(text, "rain") || !strings.Contains(text, "sun") ||
					!strings.Contains(text, miss.Differs[0].Path+": recorded ") {
					t.Errorf("got %s", text)
				}
			})
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answers is a RoundTripper of written answers.
type answers func(r *http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func post(t *testing.T, carry http.RoundTripper, address, body string) (int, string, error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	res, err := carry.RoundTrip(&http.Request{Method: http.MethodPost, URL: u,
		Body:   io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-very-secret"}, "Cookie": {"a=sk-very-secret"}, "X-Goog-Api-Key": {"sk-very-secret"}}})
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// Equal requests are answered in their order, each once. JSON is compared as JSON. A broken
// connection and a missing response are played, too.
func TestPlayer(t *testing.T) {
	var n int
	rec := &recording.Recorder{Secrets: new(redact.Redactor),
		Next: answers(func(r *http.Request) (*http.Response, error) {
			n++
			if n == 4 {
				return nil, errors.New("no route to sk-very-secret")
			}
			var body io.Reader = strings.NewReader(fmt.Sprintf("answer %d of sk-very-secret", n))
			if n == 3 {
				body = io.MultiReader(body, cutOff{})
			}
			return &http.Response{StatusCode: 200 + n,
				Header: http.Header{"Content-Type": {"text/plain"}, "Set-Cookie": {"b=c"}, "Retry-After": {"3"}}, Body: io.NopCloser(body), Request: r}, nil
		})}
	if err := rec.Secrets.Add("sk-very-secret"); err != nil {
		t.Fatal(err)
	}
	const here = "https://alice:sk-very-secret@provider.test/v1/x?api_key=sk-very-secret&alt=sse"
	for _, body := range []string{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":2}`, `{"a":3,"k":"sk-very-secret"}`} {
		_, _, _ = post(t, rec, here, body)
	}
	file, err := rec.Recording().JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"very-secret", "alice", "b=c", "ookie", "uthorization"} {
		if strings.Contains(string(file), word) {
			t.Errorf("%s is in the file:\n%s", word, file)
		}
	}
	r, err := recording.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	p := recording.Play(r)
	p.Secrets = rec.Secrets
	const there = "http://127.0.0.1:99/v1/x?alt=sse&api_key=another"
	for _, row := range []struct{ body, want string }{
		{`{"b": 2, "a": 1}`, "201 answer 1 of [redacted] <nil>"},
		{`{"a":1,"b":2}`, "202 answer 2 of [redacted] <nil>"},
		{`{"a":1,"b":2}`, "the same was recorded 2 times, and asked once more"},
		{`{"a":2}`, "203 answer 3 of [redacted] unexpected EOF"},
		{`{"k":"sk-very-secret","a":3}`, "no route to [redacted]"},
		{`{"a":4,"b":[1]}`, "request 6 was not recorded: POST /v1/x; the nearest is number 1, which differs in\na: recorded 1, now 4\nb: recorded 2, now [1]"},
		{`no JSON`, "the whole body: recorded "},
	} {
		status, text, err := post(t, p, there, row.body)
		if got := fmt.Sprintf("%d %s %v", status, text, err); !strings.Contains(got, row.want) {
			t.Errorf("%s: got %s, want %s", row.body, got, row.want)
		}
	}
	if _, _, err := post(t, p, "http://127.0.0.1:99/v1/y", "{}"); err == nil || !strings.Contains(err.Error(), "recorded are POST /v1/x?") {
		t.Errorf("another path: got %v", err)
	}
	if p.Left() != 0 {
		t.Errorf("%d left", p.Left())
	}
}

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Any body has the same bytes after a file.
func TestBody(t *testing.T) {
	fragment := rapid.SampledFrom([]string{"{", "}", `"a":`, "1", "[", "]", ",", "\n", "data: {}\n\n", "<&>", "\u2028", "é", "\xff", "\r\n", " ", `"\u00e9\/"`, ""})
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOf(fragment).Draw(t, "body"), "")
		r := &recording.Recording{Exchanges: []recording.Exchange{{Request: recording.Request{Method: "POST",
			URL: "/x", Body: recording.Body(body)}, Response: recording.Response{Status: 200, Body: recording.Body(body)}}}}
		file, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := recording.Parse(file)
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		if got := string(back.Exchanges[0].Response.Body); got != body {
			t.Errorf("got %q, want %q\n%s", got, body, file)
		}
	})
}

// Every known body of a provider is recorded unchanged.
func TestCorpusBodies(t *testing.T) {
	soak.Sequential(t)
	dir := corpora.Path(t, "provider-traffic/dev")
	r, want, size := new(recording.Recording), []string{}, 0
	for _, api := range pawltest.APIs() {
		cassettes, err := pawltest.LoadCassettes(dir, api)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cassettes {
			for i := range c.Exchanges {
				x := &c.Exchanges[i]
				body, err := x.Body()
				if err != nil {
					t.Fatal(err)
				}
				e := recording.Exchange{Request: recording.Request{Method: "POST", URL: x.Path + "/",
					Body: []byte("{}")}, Response: recording.Response{Status: 200, Body: body}}
				r.Exchanges, want, size = append(r.Exchanges, e), append(want, string(body)), size+len(body)
			}
		}
	}
	file, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := recording.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got := string(back.Exchanges[i].Response.Body); got != want[i] {
			t.Fatalf("exchange %d: got %q, want %q", i, got, want[i])
		}
	}
	t.Logf("%d bodies, %d bytes, are the same in a file of %d", len(want), size, len(file))
}

// Input that is no recording is an error.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "it is no JSON",
		"[]":                          "it is no JSON",
		"{}":                          `its form is "", want "pawl recording 1"`,
		`{"form":"pawl recording 2"}`: `want "pawl recording 1"`,
		`{"form":"pawl recording 1","exchanges":[{}]}`:                                                                                     "exchange 1 has no method, or no url",
		`{"form":"pawl recording 1","tapes":[]}`:                                                                                           `unknown field "tapes"`,
		`{"form":"pawl recording 1","exchanges":[]} {}`:                                                                                    "it is no JSON",
		`{"form":"pawl recording 1","exchanges":[{"request":{"method":"GET","url":"/"},"response":{}}]}`:                                   "has no status",
		`{"form":"pawl recording 1","exchanges":[{"request":{"method":"GET","url":"/"},"response":{"status":200,"body":{"base64":"%"}}}]}`: "base64",
	} {
		if _, err := recording.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
