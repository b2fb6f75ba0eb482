package anthropic

// stream.go: the events of a streamed reply.

import "github.com/pawl-go/pawl/server/internal/turns"

// event sends an event.
func (v *reply) event(kind string, m object) {
	m["type"] = kind
	v.send.Event("", kind, v.call.Encode(m))
	v.send.Flush()
}

// begin begins the message.
func (v *reply) begin() { v.event("message_start", object{"message": v.form()}) }

// voice sends the text and the reasoning as they arrive.
func (v *reply) voice() turns.Voice {
	voice := turns.Voice{
		Say: func(text string) { v.delta(blockText, object{"type": "text_delta", "text": text}) },
		Withdraw: func() {
			v.delta(blockText, object{"type": "text_delta", "text": turns.Withdrawn})
		},
	}
	if v.thinks {
		voice.Think = func(text string) {
			v.delta(blockThinking, object{"type": "thinking_delta", "thinking": text})
		}
	}
	return voice
}

// delta adds to a block of that type. It begins one unless the last one is of that type.
func (v *reply) delta(kind string, d object) {
	if v.open != kind {
		v.endBlock()
		start := object{"type": kind, kind: ""}
		if kind == blockThinking {
			start["signature"] = ""
		}
		v.beginBlock(kind, start)
	}
	v.event("content_block_delta", object{"index": v.next - 1, "delta": d})
}

// beginBlock begins a block.
func (v *reply) beginBlock(kind string, start object) {
	v.event("content_block_start", object{"index": v.next, "content_block": start})
	v.open = kind
	v.next++
}

// endBlock ends the block that has begun, if there is one.
func (v *reply) endBlock() {
	if v.open == "" {
		return
	}
	index := v.next - 1
	if v.open == blockThinking {
		d := object{"type": "signature_delta", "signature": signature}
		v.event("content_block_delta", object{"index": index, "delta": d})
	}
	v.event("content_block_stop", object{"index": index})
	v.open = ""
}

// finish sends the calls for the client and the end of the message.
func (v *reply) finish(out turns.Reply) {
	v.endBlock()
	for _, c := range out.Calls {
		v.beginBlock(blockCall, callBlock(&c, noInput))
		v.event("content_block_delta", object{
			"index": v.next - 1,
			"delta": object{"type": "input_json_delta", "partial_json": string(inputOf(&c))},
		})
		v.endBlock()
	}

	v.event("message_delta", object{
		"delta": object{"stop_reason": stopReason(out.Finish), "stop_sequence": nil},
		"usage": usageOf(out.Usage),
	})
	v.event("message_stop", object{})
}
