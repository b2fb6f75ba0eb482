package anthropic

// messages.go: the answer to a request, whole and streamed.

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/server/internal/turns"
	"github.com/pawl-go/pawl/server/internal/web"
)

// messages handles POST /v1/messages.
func (c *call) messages() error {
	var r messagesRequest
	t, leave, err := c.Accept(&r, func() (turns.Asked, error) { return r.convert(c.limitOf) })
	if err != nil {
		return err
	}
	defer leave()

	v := &reply{
		call:   c,
		id:     turns.ResponseID(t.ID, t.Skip),
		model:  runs.BaseName(t.Agent),
		thinks: r.thinks(),
	}
	if !r.Stream {
		out, err := c.Follow(t, nil, turns.Mute)
		if err != nil {
			return err
		}
		return c.Write(http.StatusOK, v.whole(out))
	}

	v.send = c.StartStream()
	v.begin()
	out, err := c.Follow(t, v.send, v.voice())
	if err != nil {
		// The status has been sent, so that the error is an event.
		e := runs.ToError(err)
		v.send.Event("", "error", c.errorBody(e, c.StatusOf(e)))
		v.send.Flush()
		return nil
	}
	v.finish(out)
	return nil
}

// reply is the answer to a request.
type reply struct {
	call   *call
	id     string
	model  string
	thinks bool // the client wants the reasoning

	send *web.Sender // of a stream
	open string      // the type of the block that has begun; "" means none
	next int         // the index of the next block
}

// form returns the message without content.
func (v *reply) form() object {
	return object{
		"id":            v.id,
		"type":          "message",
		"role":          "assistant",
		"model":         v.model,
		"content":       []any{},
		"stop_reason":   nil,
		"stop_sequence": nil,
		"usage":         usageOf(llm.Usage{}),
	}
}

// whole returns the complete message.
func (v *reply) whole(out turns.Reply) object {
	content := []any{}
	if v.thinks && out.Reasoning != "" {
		content = append(content, object{"type": blockThinking, "thinking": out.Reasoning, "signature": signature})
	}
	if out.Text != "" {
		content = append(content, object{"type": blockText, "text": out.Text})
	}
	for _, c := range out.Calls {
		content = append(content, callBlock(&c, inputOf(&c)))
	}

	m := v.form()
	m["content"] = content
	m["stop_reason"] = stopReason(out.Finish)
	m["usage"] = usageOf(out.Usage)
	return m
}

// The types of blocks of a reply.
const (
	blockText     = "text"
	blockThinking = "thinking"
	blockCall     = "tool_use"
)

// signature is the signature of a block of reasoning, which clients send back and do not read.
const signature = "pawl"

// noInput are the arguments of a call without any.
var noInput = json.RawMessage("{}")

// inputOf returns the arguments of a call, which are an object in this API.
func inputOf(c *turns.ClientCall) json.RawMessage {
	isObject := bytes.HasPrefix(bytes.TrimSpace(c.Args), []byte("{")) && json.Valid(c.Args)
	if !isObject {
		return noInput
	}
	return c.Args
}

// callBlock returns a call for the client, with the arguments so far.
func callBlock(c *turns.ClientCall, input json.RawMessage) object {
	return object{"type": blockCall, "id": c.ID, "name": c.Name, "input": input}
}

// stopReason returns Anthropic's word for the finish of a reply.
func stopReason(finish string) string {
	words := map[string]string{"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
	if word, ok := words[finish]; ok {
		return word
	}
	return "end_turn"
}

// usageOf returns a usage. Anthropic's input_tokens are those outside of the cache.
func usageOf(u llm.Usage) object {
	return object{
		"input_tokens":                max(0, u.Input-u.CacheRead-u.CacheWrite),
		"output_tokens":               u.Output,
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
	}
}
