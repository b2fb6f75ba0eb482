package openai

import (
	"bytes"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

func (d *chatDecoder) Event(data []byte) error {
	if string(data) == "[DONE]" {
		d.done = true
		return nil
	}
	return d.chunk(data)
}

func (d *chatDecoder) Over() bool { return d.done }

func (d *chatDecoder) Whole(body []byte) error {
	d.sealing, d.Emitter.Whole = true, true
	if err := d.chunk(body); err != nil {
		return err
	}
	d.done = true
	return d.End()
}

// chunk reads one chunk of a stream, or a whole body.
func (d *chatDecoder) chunk(data []byte) error {
	d.some = true
	var c jsonscan.Cursor
	choices := false
	rest := 0 // where the rest after the delta begins; 0 means that the rest has information
	if d.before != nil && bytes.HasPrefix(data, d.before) {
		c = jsonscan.Resume(data, len(d.before), chunkDepth)
		choices = true
		if err := d.toDelta(&c); err != nil {
			return err
		}
		rest = c.Offset()
		if d.after != nil && c.Err() == nil && bytes.Equal(data[rest:], d.after) {
			return nil
		}
		if err := d.members(&c, 0, true); err != nil {
			return err
		}
		for c.More() {
			rest = 0
			if err := d.choice(&c); err != nil {
				return err
			}
		}
	} else {
		c = jsonscan.New(data)
		if !c.Object() {
			return d.broken("the reply is not a JSON object: %s", wire.Excerpt(data))
		}
	}
	var failure []byte
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "choices":
			d.delta = 0
			for c.Array(); c.More(); {
				choices = true
				if err := d.choice(&c); err != nil {
					return err
				}
			}
			if d.delta > 0 {
				d.before = append(d.before[:0], data[:d.delta]...)
			}
		case "usage":
			if c.Kind() == jsonscan.Object {
				if err := d.spent(toUsage(c.Raw())); err != nil {
					return err
				}
				rest = 0
			}
		case "x_groq":
			d.groq(&c)
			rest = 0
		case "id":
			if d.ID == "" {
				d.ID = c.String()
			}
		case "model":
			if d.Model == "" {
				d.Model = c.String()
			}
		case "error":
			if c.Kind() != jsonscan.Null {
				failure = c.Raw()
			}
		}
	}
	if failure != nil {
		return d.toStreamError(failure)
	}
	if err := c.End(); err != nil {
		return d.broken("a chunk of the reply cannot be read: %v", err)
	}
	// a rest that always changes is not stored for ever
	if rest > 0 && len(d.reason) == 0 && d.tries < 8 {
		d.tries++
		d.after = append(d.after[:0], data[rest:]...)
	}
	if d.sealing && !choices {
		return d.broken("the reply has no choices: %s", wire.Excerpt(data))
	}
	return nil
}

// spent sets the usage so far. Its figures cannot become less.
func (d *chatDecoder) spent(u *llm.Usage) error {
	if u == nil {
		return nil
	}
	before := d.Usage
	d.Usage = u
	if before != nil && u.Output < before.Output && d.Has() {
		return d.Inconsistent("the usage became less")
	}
	return nil
}

// groq reads the usage in Groq's own member. The standard member has priority.
func (d *chatDecoder) groq(c *jsonscan.Cursor) {
	if d.Usage == nil {
		d.Usage = toUsage(wire.Member(c.Raw(), "usage"))
	}
}

// choice reads one choice. Only the first of several (n > 1) is used; they may be interleaved.
func (d *chatDecoder) choice(c *jsonscan.Cursor) error {
	if !c.Object() {
		return nil
	}
	return d.members(c, noIndex, false)
}

// members reads the rest of a choice. read means that its delta has been read.
func (d *chatDecoder) members(c *jsonscan.Cursor, index int64, read bool) error {
	var delta, message, reason []byte
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "index":
			index, _ = c.Int()
		case "delta":
			if index != 0 || d.sealing || read {
				delta = c.Raw()
				continue
			}
			read = true
			d.delta = c.Offset()
			if err := d.toDelta(c); err != nil {
				return err
			}
		case "message":
			if index == 0 && d.sealing && !read {
				read = true
				if err := d.toDelta(c); err != nil {
					return err
				}
				continue
			}
			message = c.Raw()
		case "finish_reason":
			if c.Kind() == jsonscan.String {
				reason = c.Text()
			}
		}
	}
	if index > 0 || c.Err() != nil {
		return nil // the chunk reports the error
	}
	// Perplexity sends both; in a stream the message is the text so far
	if delta == nil || d.sealing && message != nil {
		delta = message
	}
	if delta != nil && !read {
		inner := jsonscan.New(delta)
		if err := d.toDelta(&inner); err != nil {
			return err
		}
	}
	if len(reason) > 0 {
		d.reason = append(d.reason[:0], reason...)
		return d.sealCalls()
	}
	return nil
}

// End finishes the reply. A server may leave out [DONE] after a finish reason, or the reason
// before [DONE]. A stream without either was cut off, and [DONE] alone is not a reply.
func (d *chatDecoder) End() error {
	if len(d.reason) == 0 && !(d.done && d.some) {
		return d.broken("the stream ended without a finish reason")
	}
	if err := d.closeDetails(); err != nil {
		return err
	}
	for i := range d.calls {
		if call := &d.calls[i]; call.held && !call.sealed {
			call.sealed = true
			if err := d.sealCall(call); err != nil {
				return err
			}
		}
	}
	if err := d.complete(); err != nil {
		return err
	}
	return d.Finish(toChatFinish(d.reason))
}

// toChatFinish maps the finish reasons of OpenAI and of other servers.
func toChatFinish(reason []byte) llm.FinishReason {
	switch string(bytes.ToLower(reason)) {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed":
		return llm.FinishReasonStop
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return llm.FinishReasonLength
	case "tool_calls", "tool_call", "function_call", "tool_use":
		return llm.FinishReasonToolCalls
	case "content_filter", "safety", "refusal", "recitation":
		return llm.FinishReasonContentFilter
	case "error", "malformed_function_call":
		return llm.FinishReasonError
	}
	return llm.FinishReasonOther
}
