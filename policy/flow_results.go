package policy

// flow_results.go: reads the results of calls into the index of a conversation.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// result reads the result of a call.
func (ix *index) result(r llm.ToolResult, tool func(string) *conduct) {
	o := &origin{of: &conduct{name: "a tool"}}
	for _, c := range ix.calls {
		if c.ID == r.CallID {
			o.of = tool(c.Name)
			ix.asked(o, c.Args)
		}
	}
	text, data := r.Text(), r.Data
	if t := strings.TrimSpace(text); data == nil && t != "" && (t[0] == '{' || t[0] == '[') {
		data = []byte(t)
	}
	if data != nil && (!json.Valid(data) || r.IsError || o.of.compose) {
		data = nil
	}
	safe := o.of.trusted && !r.IsError && !o.of.compose
	ix.tainted = ix.tainted || !safe && len(text)+len(data) > 16 // shorter ones ask for nothing
	size := int64(len(text) + len(data))
	if ix.full = ix.full || ix.bytes.Add(size) > maxText; ix.full {
		return
	}
	if !safe && o.of.trusted { // the text of an error has words of the model
		c := *o.of
		c.trusted = false
		o.of = &c
	}
	plain := plainText(text)
	switch {
	case data == nil || o.document && !o.of.trusted:
		ix.texts = append(ix.texts, passage{origin: o, text: plain})
		if !o.of.act && !r.IsError && !o.of.compose && !o.document {
			ix.lines(o, text)
		}
	default:
		for _, p := range r.Parts {
			t, _ := p.(llm.Text)
			cur := jsonscan.New([]byte(t.Text))
			if kind := cur.Kind(); kind != jsonscan.Object && kind != jsonscan.Array {
				ix.texts = append(ix.texts, passage{origin: o, text: plainText(t.Text), shadow: true})
				continue
			}
			cur.Skip() // the data, and what stands after them
			if rest := plainText(t.Text[min(cur.Offset(), len(t.Text)):]); rest != "" {
				ix.texts = append(ix.texts, passage{origin: o, text: rest})
			}
		}
		cur := jsonscan.New(data)
		ix.value(&cur, o, "", &record{}, 0)
	}
}

// asked reads the arguments of the call of a result.
func (ix *index) asked(o *origin, args json.RawMessage) {
	found := false
	o.keyed = true
	walkJSON(args, func(name, v string, isString bool) {
		v = plainText(v)
		if o.said = append(o.said, v); !isString || v == "" || timeWords[noun(name)] {
			return
		}
		said := ix.said(v)
		found, o.keyed = true, o.keyed && said
		if n := noun(name); !o.of.act && (placeWords[n] || addressWords[n]) {
			o.document, o.named = true, o.named || said
		}
	})
	o.keyed = o.keyed && found
}

// walkJSON calls f for each string and number in args with the name of the member around it, and
// for each name that is an address. It reports false if there are more than maxArguments of them.
func walkJSON(args json.RawMessage, f func(name, value string, isString bool)) bool {
	n := 0
	give := func(name, value string, isString bool) {
		if n++; n <= maxArguments {
			f(name, value, isString)
		}
	}
	var walk func(cur *jsonscan.Cursor, name string)
	walk = func(cur *jsonscan.Cursor, name string) {
		switch cur.Kind() {
		case jsonscan.Object:
			for key := range cur.Members() {
				k := string(key)
				if name != "" && addressKind(plainText(k)) != "" {
					give(name, k, true)
				}
				walk(cur, k)
			}
		case jsonscan.Array:
			for cur.Array(); cur.More(); {
				walk(cur, name)
			}
		case jsonscan.String:
			give(name, cur.String(), true)
		case jsonscan.Number:
			give(name, string(cur.Raw()), false)
		default:
			cur.Skip()
		}
	}
	cur := jsonscan.New(args)
	walk(&cur, "")
	return n <= maxArguments
}

// lines reads the items of a plain text: short lines, without a label at their start.
func (ix *index) lines(o *origin, text string) {
	for line := range strings.Lines(text) {
		if len(line) > 256 {
			continue
		}
		if _, item, ok := strings.Cut(line, ": "); ok {
			line = item
		}
		if v := plainText(line); v != "" && strings.Count(v, " ") < 6 {
			ix.add(v, spot{o, "", nil})
		}
	}
}

// value reads a value of a result: the field it stands in, and the record around it.
func (ix *index) value(cur *jsonscan.Cursor, o *origin, field string, rec *record, depth int) {
	switch cur.Kind() {
	case jsonscan.Object:
		inner := &record{up: rec}
		for key := range cur.Members() {
			k := string(key)
			if addressKind(plainText(k)) != "" {
				ix.scalar(o, field, k, rec, depth)
			}
			ix.value(cur, o, k, inner, depth+1)
		}
	case jsonscan.Array:
		alone := rec
		for cur.Array(); cur.More(); {
			if cur.Kind() == jsonscan.Object {
				alone = nil
			} else {
				alone = rec
			}
			ix.value(cur, o, field, alone, depth)
		}
	case jsonscan.String:
		ix.scalar(o, field, cur.String(), rec, depth)
	case jsonscan.Number:
		ix.scalar(o, field, string(cur.Raw()), rec, depth)
	default:
		cur.Skip()
	}
}

// scalar reads a string or a number of a result.
func (ix *index) scalar(o *origin, field, value string, rec *record, depth int) {
	v, n := plainText(value), noun(field)
	if v == "" {
		return
	}
	if len(v) > 5 && (o.of.private || privateWords[n]) {
		ix.private = append(ix.private, v)
	}
	if len(v) > 256 || strings.Count(v, " ") >= 6 || proseWords[n] || n == "subject" || n == "title" && strings.Count(v, " ") >= 3 {
		ix.texts = append(ix.texts, passage{origin: o, text: v})
		if len(v) > 256 || strings.Count(v, " ") >= 6 || proseWords[n] {
			return
		}
	}
	if rec == nil {
		rec = &record{}
	}
	if len(v) > 2 && len(rec.texts) < maxSame && !stateWords[n] && (len(v) > 3 || strings.Trim(v, "0123456789") == v) {
		rec.texts = append(rec.texts, v)
	}
	if !o.of.act {
		ix.add(v, spot{o, field, rec})
	} else if depth == 1 && (nameRole(field) == roleObject || addressWords[n]) && !slices.Contains(o.said, v) {
		ix.own[v] = true // not what the call gave it
	}
}

func (ix *index) add(v string, s spot) {
	if ix.count >= maxSpots {
		ix.full = true
		return
	}
	if list := ix.spots[v]; len(list) < maxSame {
		ix.spots[v] = append(list, s)
		ix.count++
	}
}
