package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// For any input from a server, decoding does not panic, and ends with a *llm.ProviderError or with
// a finish reason. The reply can be sent back.
func FuzzReply(f *testing.F) {
	for _, body := range []string{
		stream("tool_use", opens(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), adds(0, `{"type":"input_json_delta","partial_json":"{\"x\":1}"}`), closes(0)),
		stream("end_turn", opens(0, `{"type":"thinking","thinking":"a"}`), adds(0, `{"type":"signature_delta","signature":"s"}`), opens(1, `{"type":"x","y":["z"]}`), adds(1, `{"type":"w","y":"v"}`)),
		stream("end_turn", opens(0, `{"type":"tool_use","id":"a","caller":{"type":"code"}}`), adds(0, `{"partial_json":"{"}`)),
		events(begin, begin, stop),
	} {
		f.Add(true, []byte(body))
	}
	f.Add(false, []byte(whole("tool_use", `{"type":"tool_use","id":"a","name":"f","input":"{}"}`, `{"type":"text","text":"x","citations":[1]}`, `{"type":"new"}`)))
	f.Add(false, []byte(`{"type":"error","error":"x"}`))
	f.Fuzz(func(t *testing.T, sse bool, body []byte) {
		res, err := anthropic.DecodeMessages(200, sse, body)
		if err != nil {
			var e *llm.ProviderError
			if !errors.As(err, &e) || e.Code == "" || e.Provider == "" {
				t.Fatalf("%q: %v is not a whole ProviderError", body, err)
			}
			if e.Code == llm.CodeStream && strings.Contains(e.Message, "part ") {
				t.Fatalf("%q: the adapter broke the contract of deltas: %v", body, err)
			}
			return
		}
		if res.Finish == "" {
			t.Fatalf("%q: no finish", body)
		}
		b, err := anthropic.EncodeMessages(&llm.Request{Model: "m", Messages: []llm.Message{llm.User("a"), res.Message}})
		if err != nil || !json.Valid(b) {
			t.Fatalf("%q: what was read cannot be sent back: %v: %s", body, err, b)
		}
	})
}

// Events in any order, of blocks that change their kind, do not break the contract of deltas.
func TestStreamsOfAnyShape(t *testing.T) {
	block := rapid.SampledFrom([]string{`{"type":"text","text":""}`, `{"type":"text","text":"t","citations":[{"a":1}]}`, `{"type":"thinking","thinking":"h","signature":"s"}`, `{"type":"thinking"}`,
		`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"b","name":"f","input":{"x":1},"caller":{"type":"code"}}`, `{"type":"server_tool_use","id":"c","input":{}}`, `{"type":"x","y":["z"],"text":"q"}`, `{}`})
	delta := rapid.SampledFrom([]string{`{"type":"text_delta","text":"d"}`, `{"type":"thinking_delta","thinking":"d"}`, `{"type":"signature_delta","signature":"d"}`, `{"type":"input_json_delta","partial_json":"{}"}`,
		`{"type":"input_json_delta","partial_json":"{"}`, `{"type":"citations_delta","citation":{"b":2}}`, `{"y":"w"}`, `{"y":1}`, `null`})
	event := rapid.Custom(func(t *rapid.T) string {
		i := rapid.IntRange(0, 2).Draw(t, "index")
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0, 1, 2:
			return opens(i, block.Draw(t, "block"))
		case 3, 4, 5, 6:
			return adds(i, delta.Draw(t, "delta"))
		case 7, 8:
			return closes(i)
		}
		return rapid.SampledFrom([]string{`{"type":"ping"}`, begin, `{"type":"message_delta","delta":{},"usage":{"input_tokens":9}}`, `{"type":"new"}`}).Draw(t, "other")
	})
	rapid.Check(t, func(t *rapid.T) {
		evs := rapid.SliceOfN(event, 0, 14).Draw(t, "events")
		if rapid.IntRange(0, 3).Draw(t, "orderly") > 0 {
			evs = orderly(evs)
		}
		res, err := anthropic.DecodeMessages(200, true,
			[]byte(stream(rapid.SampledFrom([]string{"end_turn", "tool_use", "pause_turn"}).Draw(t, "reason"), evs...)))
		var e *llm.ProviderError
		disagrees := errors.As(err, &e) && (e.Code == llm.CodeStreamInconsistent || e.Code == llm.CodeMalformedReply)
		if err != nil && !disagrees && !strings.Contains(err.Error(), "a block of the reply has no type") && !strings.Contains(err.Error(), "before its beginning, or after its end") {
			t.Fatalf("%v", err)
		}
		if err == nil && res.Finish == "" {
			t.Fatal("no finish")
		}
		if err == nil {
			b, err := anthropic.EncodeMessages(&llm.Request{Model: "m", Messages: []llm.Message{llm.User("a"), res.Message}})
			if err != nil || !json.Valid(b) {
				t.Fatalf("what was read cannot be sent back: %v: %s", err, b)
			}
		}
	})
}

// orderly leaves out pieces of blocks that are not open.
func orderly(evs []string) (kept []string) {
	open := map[int]bool{}
	for _, ev := range evs {
		var e struct {
			Type  string
			Index int
		}
		json.Unmarshal([]byte(ev), &e)
		switch e.Type {
		case "message_start":
			clear(open)
		case "content_block_start", "content_block_stop":
			open[e.Index] = e.Type == "content_block_start"
		case "content_block_delta":
			if !open[e.Index] {
				continue
			}
		}
		kept = append(kept, ev)
	}
	return kept
}

// Any conversation gives a body that is JSON, and whose messages alternate.
func TestConversationsOfAnyShape(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) llm.Part {
		s := rapid.StringN(0, 6, -1).Draw(t, "text")
		return rapid.SampledFrom([]llm.Part{llm.Text{Text: s}, llm.Text{Text: " "}, llm.Text{Text: "a"}}).Draw(t, "part")
	})
	message := rapid.Custom(func(t *rapid.T) llm.Message {
		m := llm.Message{Role: rapid.SampledFrom([]llm.Role{llm.RoleSystem, llm.RoleDeveloper, llm.RoleUser,
			llm.RoleAssistant, llm.RoleTool}).Draw(t, "role")}
		m.Parts = rapid.SliceOfN(part, 0, 3).Draw(t, "parts")
		switch id := fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "id"), rapid.SampledFrom([]string{"", ".", "_"}).Draw(t, "form")); m.Role {
		case llm.RoleAssistant:
			m.Parts = append(m.Parts, llm.ToolCall{ID: id, Name: "f",
				Args: raw(rapid.SampledFrom([]string{"", "{}", `{"a":1}`, `{"a":`, "\xff"}).Draw(t, "args"))})
		case llm.RoleTool:
			m.Parts = append(m.Parts, llm.ToolResult{CallID: id, Parts: m.Parts})
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(message, 0, 8).Draw(t, "messages")
		b, err := anthropic.EncodeMessages(&llm.Request{Model: "m", Messages: messages})
		if err != nil && strings.Contains(err.Error(), "at least one message") && !slices.ContainsFunc(messages, spoken) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Role    string
				Content []struct{ Type, Text string }
			}
		}
		if err := json.Unmarshal(b, &body); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		for i, m := range body.Messages {
			if i > 0 && m.Role == body.Messages[i-1].Role || len(m.Content) == 0 {
				t.Fatalf("message %d does not alternate, or is empty: %s", i, b)
			}
			for _, c := range m.Content {
				if c.Type == "text" && strings.TrimSpace(c.Text) == "" {
					t.Fatalf("message %d has empty text: %s", i, b)
				}
			}
		}
	})
}

// spoken reports whether m has content for a turn of the conversation.
func spoken(m llm.Message) bool {
	if m.Role == llm.RoleSystem || m.Role == llm.RoleDeveloper {
		return false
	}
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		t, isText := p.(llm.Text)
		_, thought := p.(llm.Reasoning)
		return !thought && (!isText || strings.TrimSpace(t.Text) != "")
	})
}
