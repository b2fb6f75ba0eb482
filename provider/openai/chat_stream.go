package openai

import (
	"cmp"
	"strings"

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

// Stated reports whether the finish reason arrived.
func (d *chatDecoder) Stated() bool { return d.end.Stated() }

func (d *chatDecoder) Whole(body []byte) error {
	d.sealing = true
	d.Emitter.Whole = true
	if err := d.chunk(body); err != nil {
		return err
	}
	d.done = true
	return d.End()
}

// chunk reads one chunk of a stream, or a whole body.
func (d *chatDecoder) chunk(data []byte) error {
	c := jsonscan.New(data)
	if c.Kind() != jsonscan.Object {
		return d.broken("the reply is not a JSON object: %s", wire.Excerpt(data))
	}
	choices := false
	had := d.Usage != nil
	d.counted = false
	var failure []byte
	for k := range c.Members() {
		switch string(k) {
		case "choices":
			for c.Array(); c.More(); {
				choices = true
				if err := d.choice(&c); err != nil {
					return err
				}
			}
		case "usage":
			if c.Kind() == jsonscan.Object {
				if err := d.spent(toUsage(c.Raw())); err != nil {
					return err
				}
				d.counted = d.Usage != nil && !had
			}
		case "x_groq": // the standard member has priority
			if d.Usage == nil {
				d.Usage = toUsage(wire.Member(c.Raw(), "usage"))
			}
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
	// OpenRouter sends an error in a chunk that has choices too. They are emitted before it.
	if failure != nil {
		return d.toStreamError(failure)
	}
	if err := c.End(); err != nil {
		return d.broken("a chunk of the reply cannot be read: %v", err)
	}
	// Chunks of a stream may be without choices (usage, Azure's filter results). A whole reply may
	// not.
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

// choice reads one choice. Only the first of several (n > 1) is used; they may be interleaved.
func (d *chatDecoder) choice(c *jsonscan.Cursor) error {
	index := int64(noIndex)
	var delta, message []byte
	var reason jsonscan.Word
	c.Fields("index", &index, "delta", &delta, "message", &message, "finish_reason", &reason)
	if index > 0 || c.Err() != nil {
		return nil // the chunk reports the error
	}
	// Perplexity sends both; in a stream the message is the text so far
	if delta == nil || d.sealing && message != nil {
		delta = message
	}
	ended := d.Stated() && !d.sealing // a whole reply has no order
	if ended {
		d.Late = d.Late || wire.HasContent(delta)
	} else {
		inner := jsonscan.New(delta)
		if err := d.toDelta(&inner); err != nil {
			return err
		}
	}

	if len(reason) == 0 {
		return nil
	}
	d.end.State(string(reason), chatEnding(reason))
	return d.sealCalls()
}

// End finishes the reply. A server may leave out [DONE] after a finish reason, or the reason
// before [DONE] or the usage. A stream without any of them was cut off.
func (d *chatDecoder) End() error {
	if !d.Stated() {
		// If the last chunk was the first with usage, it ends the reply. Usage in every chunk
		// (Perplexity) says nothing about the end.
		if !d.done && !d.counted {
			return d.broken("the stream ended without a finish reason")
		}
		if d.Next == 0 && len(d.calls) == 0 {
			return wire.Nothing(d.provider)
		}
	}
	if err := d.closeDetails(); err != nil {
		return err
	}
	// sealCalls leaves calls without arguments open. At the end of the reply such a call is
	// complete too.
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
	if !d.Stated() {
		return d.Finish(llm.FinishReasonOther)
	}
	return d.FinishAs(d.end)
}

// chatEnding returns what a finish reason means. Gateways pass on the words of the API behind
// them in the form of their own language: FinishReason.MAX_TOKENS, content-filter.
func chatEnding(reason []byte) wire.Ending {
	word := strings.ToLower(string(reason))
	word = word[strings.LastIndexByte(word, '.')+1:]
	word = strings.ReplaceAll(word, "-", "_")
	return cmp.Or(finishReasons[word], wire.ChatWords[word])
}

// finishReasons has a row for each finish reason of OpenAI. wire.ChatWords has the words of others.
var finishReasons = wire.Endings{
	"stop":           wire.Answered,
	"length":         wire.Full,
	"content_filter": wire.Filtered,
	"tool_calls":     wire.Calls,
	"function_call":  wire.Calls,
}
