// Package summaries has what providers do to long conversations by an order of the request, for the
// simulator of package pawltest: summaries, and results that are cleared.
package summaries

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// beta is the feature of requests for a summary, and of requests with a signed one.
const beta = "compact-2026-09-04"

// betas are the beta features of the edits of Anthropic.
var betas = map[string]string{
	"compact_20260112":         "compact-2026-01-12",
	"clear_tool_uses_20250919": "context-management-2025-06-27",
}

// Order is the order of a request to shorten the conversation above a number of tokens.
type Order struct {
	Kind    string // compaction, compact_20260112 or clear_tool_uses_20250919
	Trigger int    // in tokens
	Keep    int    // results that clearing leaves
}

// OrderOf reads the order of a body, of OpenAI's Responses or else of Anthropic. ok is false if
// there is none. Of several edits it reads the first, which is enough for a test.
func OrderOf(body []byte, responses bool) (o Order, ok bool) {
	type value struct{ Value int }
	type edit struct {
		Type          string
		Threshold     int `json:"compact_threshold"`
		Trigger, Keep *value
	}
	var w struct {
		Management json.RawMessage `json:"context_management"`
	}
	if json.Unmarshal(body, &w) != nil || w.Management == nil {
		return o, false
	}

	var list struct{ Edits []edit }
	var err error
	if responses {
		err = json.Unmarshal(w.Management, &list.Edits)
	} else {
		err = json.Unmarshal(w.Management, &list)
	}
	if err != nil || len(list.Edits) == 0 {
		return o, false
	}

	first := list.Edits[0]
	o = Order{Kind: first.Type, Trigger: first.Threshold, Keep: 3}
	if first.Trigger != nil {
		o.Trigger = first.Trigger.Value
	} else if !responses {
		o.Trigger = 100_000
	}
	if first.Keep != nil {
		o.Keep = first.Keep.Value
	}
	return o, true
}

// Asked reports whether a body asks for a summary in place of a reply.
func Asked(body []byte) bool {
	var w struct{ Compaction *struct{ Type string } }
	return json.Unmarshal(body, &w) == nil && w.Compaction != nil && w.Compaction.Type == "summarize"
}

// Signed reports whether p is a summary that the server wrote on demand.
func Signed(p llm.Part) bool {
	r, ok := p.(llm.Reasoning)
	if !ok || r.Opaque == nil {
		return false
	}
	var block struct{ Type, Signature string }
	return json.Unmarshal(r.Opaque.Data, &block) == nil && block.Type == "compaction" && block.Signature != ""
}

// count returns the number of signed summaries in a request.
func count(req *llm.Request) (n int) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if Signed(p) {
				n++
			}
		}
	}
	return n
}

// Refusal returns why Anthropic refuses an order, or a summary among the messages. Empty means that
// it does not.
func Refusal(body []byte, h http.Header, req *llm.Request) string {
	has := strings.Join(h.Values("Anthropic-Beta"), ",")
	signed := count(req)
	if Asked(body) || signed > 0 {
		return refusalOfSigned(body, has, signed)
	}

	o, ordered := OrderOf(body, false)
	switch {
	case !ordered && bytes.Contains(body, []byte(`"type":"compaction"`)) && !strings.Contains(has, betas["compact_20260112"]):
		return "compaction is not one of the expected content block types"
	case !ordered:
		return ""
	case betas[o.Kind] == "" || !strings.Contains(has, betas[o.Kind]):
		return fmt.Sprintf("context_management: %+v is not possible with the betas %q", o, has)
	case o.Kind == "compact_20260112" && o.Trigger < 50_000:
		return fmt.Sprintf("context_management: %+v is too early", o)
	}
	return ""
}

// refusalOfSigned returns why the API refuses a request for a summary, or with signed ones. has are
// the beta features of the request.
func refusalOfSigned(body []byte, has string, signed int) string {
	excluded := excludedBy(body)
	switch {
	case !strings.Contains(has, beta):
		return "compaction: requires anthropic-beta: " + beta
	case Asked(body) && excluded != "":
		return "compaction: cannot be combined with " + excluded
	case signed > 1:
		return fmt.Sprintf("messages: %d compaction blocks, want one", signed)
	case signed == 1 && firstBlock(body) != "compaction":
		return "compaction_block_misplaced: the compaction block must be the first block of the first message"
	case signed == 1 && bytes.Contains(body, []byte(`"compact_20260112"`)):
		return "context_management: compact_20260112 cannot run on a request with a signed compaction block"
	}
	return ""
}

// excludedBy returns a field of a body that a request for a summary cannot have, or "".
func excludedBy(body []byte) string {
	var w struct {
		Management json.RawMessage                  `json:"context_management"`
		Stop       json.RawMessage                  `json:"stop_sequences"`
		Choice     struct{ Type string }            `json:"tool_choice"`
		Output     struct{ Format json.RawMessage } `json:"output_config"`
	}
	if json.Unmarshal(body, &w) != nil {
		return ""
	}
	switch {
	case w.Management != nil:
		return "context_management"
	case w.Stop != nil:
		return "stop_sequences"
	case w.Choice.Type == "any", w.Choice.Type == "tool":
		return "tool_choice"
	case w.Output.Format != nil:
		return "output_config.format"
	}
	return ""
}

// firstBlock returns the type of the first block of the first message.
func firstBlock(body []byte) string {
	var w struct {
		Messages []struct{ Content []struct{ Type string } }
	}
	if json.Unmarshal(body, &w) != nil || len(w.Messages) == 0 || len(w.Messages[0].Content) == 0 {
		return ""
	}
	return w.Messages[0].Content[0].Type
}
