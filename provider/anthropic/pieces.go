package anthropic

import (
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// pieces joins a block that only the server understands: its initial members, and the fragments
// that extend them.
type pieces struct {
	members wire.Members
	input   []byte // the fragments of the input; nil means none
}

// add adds a fragment. input_json_delta extends the text of the input, citations_delta adds a
// citation. Any other delta extends string members of the same name and replaces other members.
func (x *pieces) add(delta []byte) {
	c := jsonscan.New(delta)
	for k := range c.Members() {
		key := string(k)
		switch {
		case key == "type":
		case key == "partial_json":
			x.members.At("input")
			x.input = c.AppendPiece(x.input)
		case key == "citation":
			x.members.At("citations").Append(c.Raw())
		case c.Kind() == jsonscan.String:
			x.members.At(key).Extend(c.Raw())
		default:
			x.members.At(key).Set(c.Raw())
		}
	}
}

// join returns the block. If the input of a call is not valid JSON, because it was cut off for
// example, it becomes a string.
func (x *pieces) join() []byte {
	x.input = jsonscan.JoinHalves(x.input)
	switch {
	case len(x.input) == 0:
	case json.Valid(x.input):
		x.members.At("input").Set(x.input)
	default:
		x.members.At("input").Set(append(jsonscan.AppendString([]byte(`{"raw_arguments":`), x.input), '}'))
	}
	return x.members.JSON()
}
