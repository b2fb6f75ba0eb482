package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// For any input from a server, decoding does not panic, and ends with a *llm.ProviderError or with
// a finish reason. The reply can be sent back.
func FuzzReplies(f *testing.F) {
	for _, c := range replies {
		f.Add(strings.HasPrefix(c.body, "data:"), []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, sse bool, body []byte) {
		res, err := gemini.DecodeGenerate(200, sse, body)
		if err != nil {
			var e *llm.ProviderError
			if !errors.As(err, &e) || e.Code == "" || e.Provider == "" {
				t.Fatalf("%q: %v is not a whole ProviderError", body, err)
			}
			if e.Code == llm.CodeStream && strings.HasPrefix(e.Message, "part ") {
				t.Fatalf("%q: the adapter broke the contract of deltas: %v", body, err)
			}
			return
		}
		if res.Finish == "" {
			t.Fatalf("%q: no finish reason", body)
		}
		for _, p := range res.Message.Parts {
			if m, ok := p.(llm.Media); ok && m.URL == "" && (len(m.Data) == 0 || m.MIME == "") || ok &&
				(strings.HasPrefix(m.URL, "/") || strings.HasPrefix(m.URL, ".") || strings.HasPrefix(m.URL, "~") ||
					strings.Contains(m.URL, ":")) {
				return // media without content, or with a name only for users
			}
		}
		b, err := gemini.EncodeGenerate(&llm.Request{Model: "gemini-3-pro", Messages: []llm.Message{res.Message, llm.User("u")}})
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if !json.Valid(b) {
			t.Fatalf("%q: not valid JSON: %s", body, b)
		}
		if _, err := res.Message.MarshalJSON(); err != nil {
			t.Fatalf("%q: the reply has no JSON form: %v", body, err)
		}
	})
}

func FuzzErrors(f *testing.F) {
	f.Add(429, []byte(failed(429, "RESOURCE_EXHAUSTED", "no", `{"retryDelay":"7s"}`)))
	f.Add(404, []byte("<html><title>x</title>"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status >= 200 && status <= 299 || status == 0 {
			return
		}
		_, err := gemini.DecodeGenerate(status, false, body)
		var e *llm.ProviderError
		if !errors.As(err, &e) || e.Code == "" || e.Status != status {
			t.Fatalf("%d %q: %v", status, body, err)
		}
	})
}

// Arguments of any shape, sent value by value in the order of their text, are joined to that text.
func TestArgumentsOfAnyShape(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "b", "c d", "e'f", `g"h`, "i.j", "k[0]", "ü"})
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int(), func(n int) any { return json.Number(fmt.Sprint(n)) }),
		rapid.Map(rapid.String(), func(s string) any { return s }))
	nest := func(inner *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 1, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(key, inner, 1, 3), func(m map[string]any) any { return m }))
	}
	value := nest(nest(leaf))
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.MapOfN(key, value, 0, 4).Draw(t, "arguments")
		var pieces []string
		var write func(path string, v any)
		write = func(path string, v any) {
			p, _ := json.Marshal(path)
			switch v := v.(type) {
			case map[string]any:
				for k, v := range v {
					if strings.Trim(k, "abcü") == "" && k != "" {
						write(path+"."+k, v)
					} else {
						write(path+"['"+strings.ReplaceAll(k, "'", `\'`)+"']", v)
					}
				}
			case []any:
				for i, v := range v {
					write(fmt.Sprintf("%s[%d]", path, i), v)
				}
			case string:
				n := 0
				if v != "" {
					n = rapid.IntRange(0, len([]rune(v))).Draw(t, "cut")
				}
				head, _ := json.Marshal(string([]rune(v)[:n]))
				tail, _ := json.Marshal(string([]rune(v)[n:]))
				pieces = append(pieces, fmt.Sprintf(`{"jsonPath":%s,"stringValue":%s,"willContinue":true}`, p, head), fmt.Sprintf(`{"jsonPath":%s,"stringValue":%s}`, p, tail))
			case json.Number:
				pieces = append(pieces, fmt.Sprintf(`{"jsonPath":%s,"numberValue":%s}`, p, v))
			case bool:
				pieces = append(pieces, fmt.Sprintf(`{"jsonPath":%s,"boolValue":%t}`, p, v))
			case nil:
				pieces = append(pieces, fmt.Sprintf(`{"jsonPath":%s,"nullValue":"NULL_VALUE"}`, p))
			}
		}
		write("$", root)
		chunks := []string{chunk("", `{"functionCall":{"name":"f","willContinue":true}}`)}
		for _, p := range pieces {
			chunks = append(chunks, chunk("", `{"functionCall":{"partialArgs":[`+p+`],"willContinue":true}}`))
		}
		res, err := gemini.DecodeGenerate(200, true, []byte(events(append(chunks, chunk("STOP", `{"functionCall":{}}`))...)))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		w, _ := json.Marshal(root)
		if err := json.Unmarshal(res.Message.Calls()[0].Args, &got); err != nil {
			t.Fatalf("%v: %s", err, res.Message.Calls()[0].Args)
		}
		json.Unmarshal(w, &want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %s, want %s", res.Message.Calls()[0].Args, w)
		}
	})
}

// Parts in any order: no response of a server breaks the contract of deltas.
func TestStreamsOfAnyShape(t *testing.T) {
	part := rapid.SampledFrom([]string{hi, look, `{"text":""}`, `{"text":"hm","thought":true}`, `{"text":"x","thoughtSignature":"s"}`, `{"text":"","thoughtSignature":"s","thought":true}`,
		`{"functionCall":{"name":"f","willContinue":true}}`, `{"functionCall":{"id":"a","name":"f","willContinue":true},"thoughtSignature":"s"}`, `{"functionCall":{}}`, `{"functionCall":{"willContinue":true}}`,
		`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}`, `{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x"}]}}`,
		`{"functionCall":{"id":"a","args":{}}}`, `{"functionCall":{"partialArgs":[{"jsonPath":"$.b[0]","boolValue":true}],"willContinue":true}}`, `{"executableCode":{}}`, `{"inlineData":{"mimeType":"a/b","data":"AA=="},"thoughtSignature":"s"}`, `{}`})
	rapid.Check(t, func(t *rapid.T) {
		var all []string
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			all = append(all, chunk("", rapid.SliceOfN(part, 0, 3).Draw(t, "parts")...))
		}
		res, err := gemini.DecodeGenerate(200, true, []byte(events(append(all, chunk("STOP"))...)))
		var e *llm.ProviderError
		switch {
		case errors.As(err, &e) && !strings.HasPrefix(e.Message, "part "):
		case err != nil:
			t.Fatal(err)
		case res.Finish == "":
			t.Fatal("no finish reason")
		default:
			for _, c := range res.Message.Calls() {
				if !json.Valid(c.Args) {
					t.Fatalf("a call with the arguments %s", c.Args)
				}
			}
		}
	})
}
