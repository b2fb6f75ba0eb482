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
	items, calls, more := int64(0), 0, 0
	list := jsonscan.New(output)
	for list.Array(); list.More(); items++ {
		it := d.read(&list)
		switch kind := it.kind(); kind {
		case kindFunction, kindCustom, kindHosted:
			calls++
			if s := d.callSlot(it.callID, calls); s == nil || !d.sameCall(s, &it, kind) {
				return d.Inconsistent("the call %q of the response is not that of its events", it.callID)
			}
		default:
			if d.gap && !d.sameItem(items, &it, kind) {
				return d.Inconsistent("item %d of the response is not that of its events", items)
			}
		}
	}
	for i := range d.slots {
		if d.slots[i].calls() {
			more++
		}
	}
	switch {
	case items == 0 && d.gap:
		return d.Inconsistent("the numbers of the events have a gap")
	case more != calls && (calls > 0 || d.gap):
		return d.Inconsistent("the events have %d calls, and the response has %d", more, calls)
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

// callSlot returns the call with an id, or else the nth call if it has that id; nil means none.
// Calls can be without an id, or have the name of their tool as id.
func (d *responseDecoder) callSlot(id string, n int) (found *slot) {
	for i := range d.slots {
		s := &d.slots[i]
		if !s.calls() {
			continue
		}
		if n--; s.call.ID == id && (found == nil || n == 0) {
			found = s
		}
	}
	return found
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
	for i := range d.slots {
		s := &d.slots[i]
		if s.index != index {
			continue
		}
		if kind != kindMessage {
			return s.done
		}
		n := 0
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
				if n >= len(s.texts) || !d.Agrees(s.texts[n], text) {
					return false
				}
				n++
			}
		}
		return n == len(s.texts)
	}
	return false
}
