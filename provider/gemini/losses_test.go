package gemini_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

var generateFrames = &wiretest.Frames{Silent: []string{"functionCall", "functionCall, finishReason", "partialArgs"},
	Kind: contentOf, Stream: streamed}

// contentOf names an event by its content.
func contentOf(data []byte) string {
	has := func(s string) bool { return bytes.Contains(data, []byte(`"`+s+`"`)) }
	switch {
	case has("partialArgs") || has("willContinue"):
		return "partialArgs"
	case has("functionCall") && has("finishReason"):
		return "functionCall, finishReason"
	case has("functionCall"):
		return "functionCall"
	case has("finishReason"):
		return "finishReason"
	}
	return "any other"
}

// streamed makes a stream of a whole reply: an event for each part with the tokens so far, and an
// event with the finish reason.
func streamed(body []byte) []byte {
	var b generateBody
	if json.Unmarshal(body, &b) != nil || len(b.Candidates) == 0 {
		return body
	}
	var out strings.Builder
	parts := b.Candidates[0].Content.Parts
	for i, p := range parts {
		var oneLine bytes.Buffer
		json.Compact(&oneLine, p)
		fmt.Fprintf(&out, "data: %s\n\n", figured(oneLine.String(), 10*(i+1)))
	}
	fmt.Fprintf(&out, `data: {"candidates":[{"content":{},"finishReason":%s}]}`+"\n\n", b.Candidates[0].Finish)
	return []byte(out.String())
}
