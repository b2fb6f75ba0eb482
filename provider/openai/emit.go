package openai

import (
	"encoding/json"
	"errors"
	"unsafe"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonscan"
)

// errStopped unwinds a decoder whose consumer wants no more.
var errStopped = errors.New("stopped")

// emitter numbers the parts of a reply in the order in which they appear, and yields their fragments.
type emitter struct {
	*dialect
	tools *toolset
	yield func(pawl.Delta, error) bool
	next  int  // the index of the next new part
	began bool // a fragment was yielded, so that the request cannot be repeated

	// What is told with the last delta.
	model, id string
	usage     *pawl.Usage
	refused   bool // some of the text is a refusal

	whole bool   // the reply comes whole: its parts are kept as they are
	block []byte // fragments of a stream are cut from here: one allocation for many of them
}

func (o *emitter) send(d pawl.Delta) error {
	o.began = true
	if !o.yield(d, nil) {
		return errStopped
	}
	return nil
}

// part yields a whole part.
func (o *emitter) part(p pawl.Part) error {
	i := o.next
	o.next++
	return o.send(pawl.Delta{Index: i, Part: p, Done: true})
}

// begin yields the first fragment of a part and returns its index.
func (o *emitter) begin(p pawl.Part) (int, error) {
	i := o.next
	o.next++
	return i, o.send(pawl.Delta{Index: i, Part: p})
}

func (o *emitter) more(i int, p pawl.Part) error { return o.send(pawl.Delta{Index: i, Part: p}) }

func (o *emitter) seal(i int) error { return o.send(pawl.Delta{Index: i, Done: true}) }

// finish yields the last delta.
func (o *emitter) finish(f pawl.FinishReason) error {
	if o.refused && f == pawl.FinishStop {
		f = pawl.FinishContentFilter
	}
	return o.send(pawl.Delta{Usage: o.usage, Finish: f, Model: o.model, ID: o.id})
}

// keep returns an Opaque of one JSON value of this server, or an error where it is none.
func (o *emitter) keep(raw []byte) (*pawl.Opaque, error) {
	if !jsonscan.Valid(raw) {
		return nil, o.broken("an item of the reply is not valid JSON")
	}
	return &pawl.Opaque{Provider: o.tag, Data: append(json.RawMessage(nil), raw...)}, nil
}

// toUsage reads the figures of either API. Some servers (xAI, behind Chat Completions) leave reasoning out of the output;
// their total gives it away.
func toUsage(raw []byte) *pawl.Usage {
	c := jsonscan.New(raw)
	if !c.Object() {
		return nil
	}
	u := new(pawl.Usage)
	var total int
	details := func(cached bool) {
		if !c.Object() {
			return
		}
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			switch string(k) {
			case "cached_tokens":
				if cached {
					u.CacheRead = count(&c)
				}
			case "cache_write_tokens", "cache_creation_tokens":
				if cached {
					u.CacheWrite = count(&c)
				}
			case "reasoning_tokens":
				if !cached {
					u.Reasoning = count(&c)
				}
			}
		}
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "input_tokens", "prompt_tokens":
			u.Input = count(&c)
		case "output_tokens", "completion_tokens":
			u.Output = count(&c)
		case "total_tokens":
			total = count(&c)
		case "input_tokens_details", "prompt_tokens_details":
			details(true)
		case "output_tokens_details", "completion_tokens_details":
			details(false)
		case "prompt_cache_hit_tokens": // DeepSeek
			if n := count(&c); u.CacheRead == 0 {
				u.CacheRead = n
			}
		case "cost": // OpenRouter, in dollars
			u.Cost, _ = c.Float()
		}
	}
	if c.Err() != nil {
		return nil
	}
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	u.Raw = append(json.RawMessage(nil), raw...)
	return u
}

// count reads a number of tokens.
func count(c *jsonscan.Cursor) int {
	n, _ := c.Int()
	return int(max(n, 0))
}

// bytes reads a string into memory that is written once.
func (o *emitter) bytes(c *jsonscan.Cursor) []byte {
	if o.whole {
		return c.Bytes()
	}
	if c.Kind() != jsonscan.String {
		c.Skip()
		return nil
	}
	if cap(o.block)-len(o.block) < 64 {
		o.block = make([]byte, 0, 1024)
	}
	free := o.block[len(o.block):]
	b := c.AppendString(free)
	if len(b) <= cap(free) { // else append has moved it
		o.block = o.block[:len(o.block)+len(b)]
	}
	return b[:len(b):len(b)]
}

// string is bytes as a string.
func (o *emitter) string(c *jsonscan.Cursor) string {
	if o.whole {
		return c.String()
	}
	b := o.bytes(c)
	return unsafe.String(unsafe.SliceData(b), len(b)) // written once
}

// args reads arguments: the inside of a string, or, from servers that send the value itself, its text.
func (o *emitter) args(c *jsonscan.Cursor) json.RawMessage {
	switch c.Kind() {
	case jsonscan.Object, jsonscan.Array:
		return append(json.RawMessage(nil), c.Raw()...)
	}
	return o.bytes(c)
}

// asText returns the text of a raw JSON string.
func asText(raw []byte) string {
	c := jsonscan.New(raw)
	return c.String()
}

// asArgs returns the arguments of a call: the inside of a JSON string, or, from servers that send the value itself, its text.
func asArgs(raw []byte) json.RawMessage {
	c := jsonscan.New(raw)
	switch c.Kind() {
	case jsonscan.String:
		return c.Bytes()
	case jsonscan.Object, jsonscan.Array:
		return append(json.RawMessage(nil), raw...)
	}
	return nil
}

// filled reports whether a raw JSON string has something in it.
func filled(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }
