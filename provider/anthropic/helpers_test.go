package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
)

// The helpers with the same names in the tests of all adapters.
type transport = wiretest.Transport

var (
	outcome = wiretest.Outcome
	reply   = wiretest.Reply
	tool    = wiretest.Tool
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// events frames each text as an event, named after its type.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		json.Unmarshal([]byte(d), &e)
		b.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
)

func opens(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func adds(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func closes(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func ends(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}}`, reason)
}

// stream makes a stream of events between the start of a message and its end.
func stream(reason string, data ...string) string {
	return events(append(append([]string{begin}, data...), ends(reason), stop)...)
}

// whole makes a whole body of content blocks.
func whole(reason string, blocks ...string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[%s],"stop_reason":%q,"stop_sequence":null,
		"usage":{"input_tokens":10,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`, strings.Join(blocks, ","), reason)
}

const used = "; in 15 out 7 read 3 write 2"

func user(text string) *llm.Request {
	return &llm.Request{Model: "claude-sonnet-4-5", Messages: []llm.Message{llm.User(text)}}
}

// encode returns the body of req, or its error.
func encode(t *testing.T, req *llm.Request) string {
	t.Helper()
	b, err := anthropic.EncodeMessages(req)
	if err != nil {
		return outcome(nil, err)
	}
	if !json.Valid(b) {
		t.Errorf("not valid JSON: %s", b)
	}
	if again, _ := anthropic.EncodeMessages(req); string(again) != string(b) {
		t.Error("the same request gave other bytes")
	}
	return string(b)
}

// unmarked returns the body without cache marks.
func unmarked(body string) string {
	return strings.ReplaceAll(strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, ""), `"cache_control":{"type":"ephemeral"},`, "")
}
