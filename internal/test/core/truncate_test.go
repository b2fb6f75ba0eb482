package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
)

// A result is cut to its head and tail at rune boundaries, has at most MaxResult bytes, and reports
// the missing part.
func TestResultsAreTruncated(t *testing.T) {
	for _, limit := range []int{0, -1, 100, 1000, 1001, 1002, 1003, 10} {
		for _, unit := range []string{"x", "ø", "世", "🦊", "\x80"} {
			full := strings.Repeat(unit, 50000/len(unit))
			tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
				return llm.ToolResult{Parts: []llm.Part{text(full), llm.Media{URL: "u"}, text("short")},
					Data: json.RawMessage(`{}`)}, nil
			})
			tool.MaxResult = limit
			got := execute(t, tool, `{}`).Result
			if limit == -1 {
				if got.Text() != full+"short" {
					t.Errorf("no bound: got %d bytes", len(got.Text()))
				}
				continue
			}
			bound := limit
			if limit == 0 {
				bound = 32 << 10
			}
			body := got.Parts[0].(llm.Text).Text
			if n := len(got.Text()); n > bound && limit > 150 {
				t.Errorf("limit %d: %d bytes are told", limit, n)
			}
			if utf8.ValidString(full) && !utf8.ValidString(body) {
				t.Errorf("limit %d: a rune is cut in %q", limit, body)
			}
			var left int
			head, rest, ok := strings.Cut(body, "\n[… ")
			if _, err := fmt.Sscanf(rest, "%d bytes left out", &left); err != nil || !ok {
				t.Fatalf("limit %d: no mark in %.200q", limit, body)
			}
			_, tail, _ := strings.Cut(rest, "…]\n")
			if limit > 10 && len(head)+len(tail)+left != len(full) || !strings.HasPrefix(full, head) ||
				!strings.HasSuffix(full, tail) {
				t.Errorf("limit %d of %q: %d + %d bytes are kept, %d said to be left out, of %d", limit, unit, len(head), len(tail), left, len(full))
			}
			if limit > 150 && (len(head) < bound/3 || len(tail) < bound/6) {
				t.Errorf("limit %d: head of %d, tail of %d", limit, len(head), len(tail))
			}
		}
	}
}

// A tool cannot put content into the transcript that no provider could send.
func TestResultsHoldTextAndMediaOnly(t *testing.T) {
	tool := does("f", func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
		return llm.ToolResult{Parts: []llm.Part{text("a"), nil, llm.ToolCall{ID: "x"}, llm.Reasoning{Text: "hm"},
			llm.Media{URL: "u"}}}, nil
	})
	x := execute(t, tool, `{}`)
	for _, p := range x.Result.Parts {
		switch p.(type) {
		case llm.Text, llm.Media:
		default:
			t.Errorf("the result holds %T", p)
		}
	}
	if _, err := json.Marshal(x); err != nil {
		t.Error(err)
	}
}
