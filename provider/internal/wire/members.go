package wire

import "github.com/pawl-go/pawl/internal/jsonscan"

// Members is an object whose members arrive in pieces, in the order in which they came.
type Members []Piece

// Piece is a member of an object.
type Piece struct {
	Key   string
	raw   []byte // its JSON, if it is not a text in pieces
	text  []byte // the text so far
	grown bool   // the value is text
}

// ReadMembers reads and copies the members of an object.
func ReadMembers(object []byte) (x Members) {
	c := jsonscan.New(object)
	for k := range c.Members() {
		key := string(k)
		x.At(key).Set(c.Raw())
	}
	return x
}

// At returns the member with a key, or a new one, which is null. It is valid until the next call.
func (x *Members) At(key string) *Piece {
	for i := range *x {
		if (*x)[i].Key == key {
			return &(*x)[i]
		}
	}
	*x = append(*x, Piece{Key: key, raw: []byte("null")})
	return &(*x)[len(*x)-1]
}

// IsText reports whether the value is a string.
func (p *Piece) IsText() bool { return p.grown || len(p.raw) > 0 && p.raw[0] == '"' }

// Raw returns the JSON of the member.
func (p *Piece) Raw() []byte {
	if p.grown {
		return jsonscan.AppendString([]byte(nil), jsonscan.JoinHalves(p.text))
	}
	return p.raw
}

// Set copies a value, which replaces the one before.
func (p *Piece) Set(raw []byte) { p.raw, p.text, p.grown = append([]byte(nil), raw...), nil, false }

// Extend appends a JSON string to the text of the member. Any other value counts as no text.
func (p *Piece) Extend(raw []byte) {
	if !p.grown {
		old := jsonscan.New(p.raw)
		p.text = old.AppendPiece(nil)
		p.grown = true
	}
	c := jsonscan.New(raw)
	p.text = c.AppendPiece(p.text)
}

// Append appends a JSON value to the list of the member. Any other value counts as an empty list.
func (p *Piece) Append(raw []byte) {
	list := p.Raw()
	if len(list) > 2 && list[0] == '[' {
		list = append(list[:len(list)-1], ',')
	} else {
		list = append(list[:0], '[')
	}
	p.raw, p.grown = append(append(list, raw...), ']'), false
}

// JSON returns the object.
func (x Members) JSON() []byte {
	var out []byte
	for i := range x {
		out = AppendMember(out, x[i].Key, x[i].Raw())
	}
	if out == nil {
		out = append(out, '{')
	}
	return append(out, '}')
}
