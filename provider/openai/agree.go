package openai

import (
	"bytes"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// wholeItem emits an item of which no fragment came.
func (d *responseDecoder) wholeItem(s *slot, it *item) error {
	from := d.Next
	s.sealed, s.kind = true, it.kind()
	switch s.kind {
	case kindFunction, kindCustom, kindHosted:
		call, err := d.toCall(it)
		if err != nil {
			return err
		}
		s.call = call
	}
	if err := d.item(it); err != nil {
		return err
	}
	// The last event of the stream states the texts again. The slot remembers its parts, so that
	// sameItem can compare them.
	for i := from; s.kind == kindMessage && i < d.Next; i++ {
		s.texts = append(s.texts, i)
	}
	return nil
}

// compare compares the events of a stream with the output of the response that ends it. An output
// without calls states nothing about them. After a gap in the numbers of the events, the output
// must state each item again.
func (d *responseDecoder) compare(output []byte) error {
	if !d.gap && !d.Has() || d.Unchecked {
		return nil
	}
	var calls []*slot
	byID := map[string]*slot{} // the first call with an id
	for i := range d.slots {
		if s := &d.slots[i]; s.calls() {
			calls = append(calls, s)
			if byID[s.call.ID] == nil {
				byID[s.call.ID] = s
			}
		}
	}
	// The response lists all items, and the events were numbered by the same order.
	items := int64(0)
	n := 0
	list := jsonscan.New(output)
	for list.Array(); list.More(); items++ {
		it := d.read(&list)
		switch kind := it.kind(); kind {
		case kindFunction, kindCustom, kindHosted:
			// Calls can be without an id, or have the name of their tool as id.
			s := byID[it.callID]
			if n < len(calls) && calls[n].call.ID == it.callID {
				s = calls[n]
			}
			n++
			if s == nil || !d.sameCall(s, &it, kind) {
				return d.Inconsistent("the call %q of the response differs from its events", it.callID)
			}
		default:
			if d.gap && !d.sameItem(items, &it, kind) {
				return d.Inconsistent("item %d of the response differs from its events", items)
			}
		}
	}
	switch {
	case items == 0 && d.gap:
		return d.Inconsistent("the numbers of the events have a gap")
	case len(calls) != n && (n > 0 || d.gap):
		return d.Inconsistent("the events have %d calls, and the response has %d", len(calls), n)
	}
	return nil
}

// unquoted returns the text or the arguments in raw. They are valid until the next call.
func (d *responseDecoder) unquoted(raw []byte) []byte {
	if !wire.Filled(raw) {
		return wire.AsArgs(raw)
	}
	c := jsonscan.New(raw)
	d.whole = c.AppendString(d.whole[:0])
	return d.whole
}

// calls reports whether s is a call.
func (s *slot) calls() bool {
	return s.kind == kindFunction || s.kind == kindCustom || s.kind == kindHosted
}

func (d *responseDecoder) sameCall(s *slot, it *item, kind kind) bool {
	raw := it.args
	switch {
	case kind == kindHosted:
		return s.done
	case kind == kindCustom:
		raw = it.input
	}
	args := d.unquoted(raw)
	if s.call.Args != nil {
		return bytes.Equal(s.call.Args, args)
	}
	return d.Tools.FromWire(it.name) == s.call.Name && d.Agrees(s.part, args)
}

// sameItem reports whether an item without a call arrived in full.
func (d *responseDecoder) sameItem(index int64, it *item, kind kind) bool {
	i, ok := d.at[index]
	// Reasoning and the provider's own items are stored whole when they are done, so there is
	// nothing of them to compare.
	if !ok || kind != kindMessage {
		return ok && d.slots[i].done
	}
	texts, n := d.slots[i].texts, 0
	c := jsonscan.New(it.content)
	for c.Array(); c.More(); {
		for k := range c.Members() {
			if name := string(k); name != "text" && name != "refusal" || c.Kind() != jsonscan.String {
				continue
			}
			text := c.Text()
			if len(text) == 0 {
				continue
			}
			if n >= len(texts) || !d.Agrees(texts[n], text) {
				return false
			}
			n++
		}
	}
	return n == len(texts)
}
