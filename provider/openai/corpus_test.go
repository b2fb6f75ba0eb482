package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
)

// corpus loads the recordings of api, or skips.
func corpus(t *testing.T, api string) []pawltest.Cassette {
	t.Helper()
	root := os.Getenv("PAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	all, err := pawltest.LoadCassettes(filepath.Join(root, "provider-traffic", "dev"), api)
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
	case strings.HasSuffix(e.Path, "/input_tokens"):
		return "another endpoint: counts tokens"
	case strings.HasSuffix(e.Path, "/compact"):
		return "another endpoint: compacts a conversation"
	case e.Method == "GET":
		return "polls a background response"
	case strings.Contains(e.Path, "/bin/content-type/"):
		return "not the API: a server that echoes requests"
	}
	return ""
}

// known are the misses we know of, by exchange, with the reason.
var known = map[string]string{
	"vercel/ai/packages/xai/src/responses/__fixtures__/xai-x-search-tool.chunks.txt#0":               "the recorder lists xAI's own searches as calls; they are carried out already",
	"vercel/ai/packages/openai/src/responses/__fixtures__/openai-shell-container.1.json#0":           "the recorder lists commands run in the provider's container as calls",
	"vercel/ai/packages/openai/src/responses/__fixtures__/openai-shell-skills.1.chunks.txt#0":        "the recorder lists commands run in the provider's container as calls",
	"vercel/ai/packages/openai/src/responses/__fixtures__/parallel-tool-call-wrapper.1.chunks.txt#0": "the recorder lists the pseudo tool; the adapter lists the calls inside it",
}

// Every recorded answer decodes to what an independent reader finds in it.
func TestRecordedAnswers(t *testing.T) {
	for _, api := range []struct {
		name   string
		decode func(int, bool, []byte) (*pawl.Response, error)
		read   func(bool, string) (reading, error)
	}{
		{pawltest.Chat, openai.DecodeChat, readChatAnswer},
		{pawltest.Responses, openai.DecodeResponses, readResponsesAnswer},
	} {
		t.Run(api.name, func(t *testing.T) {
			total, misses, errs, out := 0, 0, 0, map[string]int{}
			seen, listed := map[string]bool{}, []string(nil)
			for _, c := range corpus(t, api.name) {
				for _, e := range c.Exchanges {
					total++
					if known[e.Name()] != "" {
						listed = append(listed, e.Name())
					}
					if why := excluded(&e); why != "" {
						out[why]++
						continue
					}
					body, err := e.Body()
					if err != nil {
						t.Fatal(err)
					}
					resp, err := api.decode(e.Response.Status, e.Streaming, body)
					if err != nil {
						errs++
					}
					if why := compare(&e, body, resp, err, api.read); why != "" {
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
			t.Logf("%d exchanges: %d excluded %v, %d compared, %d of them errors, %d misses", total, gone, out, total-gone, errs, misses)
			if gone*100 > total*5 {
				t.Errorf("%d of %d are excluded, more than 5 %%", gone, total)
			}
			if misses*100 > total-gone {
				t.Errorf("%d of %d are missed, more than 1 %%", misses, total-gone)
			}
			if total < 400 {
				t.Errorf("only %d exchanges were found", total)
			}
		})
	}
}

// compare returns how the adapter differs from the independent reader and from the recorder; "" if it does not.
func compare(e *pawltest.Exchange, body []byte, resp *pawl.Response, err error, read func(bool, string) (reading, error)) string {
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
	differ("usage", figures{u.Input, u.Output, u.Reasoning, u.CacheRead}, want.usage)
	var calls, recorded []string
	for _, c := range resp.Message.Calls() {
		calls = append(calls, c.Name+" "+string(c.Args))
	}
	differ("calls by the reader", spaceless(calls), spaceless(want.calls))
	for _, c := range e.Info.ToolCalls {
		var args string
		if json.Unmarshal(c.Args, &args) != nil && string(c.Args) != "null" {
			args = string(c.Args)
		}
		recorded = append(recorded, c.Name+" "+args)
		if c.ID != "" && !slices.ContainsFunc(resp.Message.Calls(), func(o pawl.ToolCall) bool { return o.ID == c.ID }) {
			diffs = append(diffs, "no call has the id "+c.ID)
		}
	}
	differ("calls by the recorder", spaceless(calls), spaceless(recorded))
	return strings.Join(diffs, "; ")
}

// spaceless takes the spaces out of the arguments of tools that the API defines: their arguments are objects, not strings, and
// the recorder has spaced them in its own way. Those of functions must be the same, byte for byte.
func spaceless(calls []string) []string {
	calls = slices.Clone(calls)
	for i, s := range calls {
		name, args, _ := strings.Cut(s, " ")
		var b bytes.Buffer
		if slices.Contains([]string{"local_shell_call", "shell_call", "apply_patch_call"}, name) && json.Compact(&b, []byte(args)) == nil {
			calls[i] = name + " " + b.String()
		}
	}
	return calls
}

func compareError(status int, text string, err error) string {
	var p *pawl.ProviderError
	switch {
	case !errors.As(err, &p):
		return "an error was not taken for one: " + text
	case status != 0 && p.Status != status:
		return "the error has lost its status"
	case p.Code == "" || !strings.Contains(p.Message, strings.TrimSpace(text)[:min(len(strings.TrimSpace(text)), 100)]):
		return "the error says " + p.Error() + ", not " + text
	}
	return ""
}

// The comparison finds what is wrong: the negative control of TestRecordedAnswers.
func TestComparisonFindsDifferences(t *testing.T) {
	body := `{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":"I look.","tool_calls":[
		{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]}}],
		"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`
	e := &pawltest.Exchange{}
	e.Response.Status = 200
	e.Info.ToolCalls = []pawltest.RecordedCall{{ID: "a", Name: "look", Args: []byte(`"{\"at\": 1}"`)}}
	decode := func() *pawl.Response {
		resp, err := openai.DecodeChat(200, false, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if why := compare(e, []byte(body), decode(), nil, readChatAnswer); why != "" {
		t.Fatalf("the right reading differs: %s", why)
	}
	for name, spoil := range map[string]func(*pawl.Response){
		"text":      func(r *pawl.Response) { r.Message.Parts[0] = pawl.Text{Text: "I look!"} },
		"finish":    func(r *pawl.Response) { r.Finish = pawl.FinishStop },
		"input":     func(r *pawl.Response) { r.Usage.Input++ },
		"cache":     func(r *pawl.Response) { r.Usage.CacheRead = 0 },
		"reasoning": func(r *pawl.Response) { r.Usage.Reasoning = 0 },
		"arguments": func(r *pawl.Response) {
			r.Message.Parts[1] = pawl.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":1}`)}
		},
		"name": func(r *pawl.Response) {
			r.Message.Parts[1] = pawl.ToolCall{ID: "a", Name: "l", Args: []byte(`{"at": 1}`)}
		},
		"id": func(r *pawl.Response) {
			r.Message.Parts[1] = pawl.ToolCall{ID: "b", Name: "look", Args: []byte(`{"at": 1}`)}
		},
		"a call is lost": func(r *pawl.Response) { r.Message.Parts = r.Message.Parts[:1] },
	} {
		resp := decode()
		spoil(resp)
		if compare(e, []byte(body), resp, nil, readChatAnswer) == "" {
			t.Errorf("%s: the comparison finds nothing", name)
		}
	}
	e.Response.Status = 429
	if compare(e, []byte(`{"error":{"message":"slow down"}}`), nil, &pawl.ProviderError{Code: pawl.CodeRateLimit, Status: 500, Message: "slow down"}, nil) == "" {
		t.Error("a lost status is not found")
	}
}
