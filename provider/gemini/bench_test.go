package gemini_test

import (
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/gemini"
)

// A streamed answer of 200 fragments and three calls.
func BenchmarkDecodeStream(b *testing.B) {
	var cs []string
	for range 200 {
		cs = append(cs, `{"candidates": [{"content": {"parts": [{"text": " a fragment of text that is of some length"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 46,"candidatesTokenCount": 22,"totalTokenCount": 135,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 46}],"thoughtsTokenCount": 67},"modelVersion": "gemini-3-flash-preview","responseId": "n1P6abvRFaKdz7IPkcuQ2Aw"}`)
	}
	body := []byte(events(append(cs, chunk("STOP", look, look, look))...))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gemini.DecodeGenerate(200, true, body); err != nil {
			b.Fatal(err)
		}
	}
}

// A conversation of 20 rounds with two calls each.
func BenchmarkEncode(b *testing.B) {
	req := user("go")
	for range 20 {
		req.Messages = append(req.Messages, llm.Assistant(
			llm.ToolCall{ID: "a", Name: "look", Args: []byte(`{"at":"x"}`), Opaque: own(`{"thoughtSignature":"c2ln"}`)}, llm.ToolCall{ID: "b", Name: "look", Args: []byte(`{"at":"x"}`)}),
			llm.Results(result("a", "some result of the call"), result("b", "some other result")))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gemini.EncodeGenerate(req); err != nil {
			b.Fatal(err)
		}
	}
}
