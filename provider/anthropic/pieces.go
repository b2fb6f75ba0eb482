package anthropic

import (
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// pieces joins a block that only the server understands: its initial members, and the fragments
// that extend them.
type pieces struct{ members []piece }

type piece struct {
	key string
	raw []byte // its JSON, if nothing was added
	buf []byte // the fragments: content of a string, of an array, or a value
	was added
}

// added is how the fragments of a member become a value.
type added int

const (
	nothing added = iota
	asString
	asList
	asValue
)

func newPieces(raw []byte) *pieces {
	x := new(pieces)
	c := jsonscan.New(raw)
	for k := range c.Members() {
		key := string(k)
		x.members = append(x.members, piece{key: key, raw: append([]byte(nil), c.Raw()...)})
	}
	return x
}

func (x *pieces) member(key string) *piece {
	for i := range x.members {
		if x.members[i].key == key {
			return &x.members[i]
		}
	}
	x.members = append(x.members, piece{key: key})
	return &x.members[len(x.members)-1]
}

// add adds a fragment. input_json_delta extends the text of the input, citations_delta adds a
// citation. Any other delta extends string members of the same name and replaces other members.
func (x *pieces) add(delta []byte) {
	c := jsonscan.New(delta)
	for k := range c.Members() {
		switch key := string(k); {
		case key == "type":
		case key == "partial_json":
			p := x.member("input")
			if s := c.Bytes(); len(s) > 0 {
				p.was = asValue
				p.buf = append(p.buf, s...)
			}
		case key == "citation":
			p := x.member("citations")
			if p.was != asList {
				p.was, p.buf = asList, nil
				if n := len(p.raw); n > 2 && p.raw[0] == '[' {
					p.buf = append(p.buf, p.raw[1:n-1]...)
				}
			}
			if len(p.buf) > 0 {
				p.buf = append(p.buf, ',')
			}
			p.buf = append(p.buf, c.Raw()...)
		case c.Kind() == jsonscan.String:
			p := x.member(key)
			if p.was != asString {
				old := jsonscan.New(p.raw)
				p.was, p.buf = asString, old.AppendString(nil)
			}
			p.buf = c.AppendString(p.buf)
		default:
			p := x.member(key)
			p.was, p.raw = nothing, append([]byte(nil), c.Raw()...)
		}
	}
}

// join returns the block. If the input of a call is not valid JSON, because it was cut off for
// example, it becomes a string.
func (x *pieces) join() []byte {
	out := []byte{'{'}
	for i, p := range x.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonscan.AppendString(out, p.key), ':')
		switch {
		case p.was == asString:
			out = jsonscan.AppendString(out, p.buf)
		case p.was == asList:
			out = append(append(append(out, '['), p.buf...), ']')
		case p.was == asValue && json.Valid(p.buf):
			out = append(out, p.buf...)
		case p.was == asValue:
			out = append(jsonscan.AppendString(append(out, `{"raw_arguments":`...), p.buf), '}')
		default:
			out = append(out, p.raw...)
		}
	}
	return append(out, '}')
}
