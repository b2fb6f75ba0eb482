// Package gotypes is test equipment: Go types as programs use them, each with values, for the tests
// of schemas and decoding.
package gotypes

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/schema/gotype"
)

// Box has a value of a type as a field, as the arguments and results of tools do.
type Box[T any] struct {
	V T `json:"v"`
}

// Sample is one type.
type Sample struct {
	Name   string
	Type   reflect.Type // Box[T]
	Schema json.RawMessage

	// Random returns the JSON of a value of the type.
	Random func(r *rand.Rand) json.RawMessage
	// Echo is a tool that returns its argument.
	Echo *pawl.Tool
	// Into is pawl.Into for the type. It returns the JSON of the value.
	Into func(ctx context.Context, r pawl.OutputRunner, task string) (json.RawMessage, *pawl.Result, error)
	// Wrong are documents that fit neither the schema nor the type.
	Wrong []string
}

// sample returns the Sample of T. Without values, Random fills values of T at random.
func sample[T any](name string, wrong []string, values ...T) Sample {
	s := Sample{Name: name, Type: reflect.TypeFor[Box[T]](), Wrong: wrong}
	s.Schema = pawl.SchemaFor[Box[T]]()
	s.Random = func(r *rand.Rand) json.RawMessage {
		var b Box[T]
		if len(values) > 0 {
			b.V = values[r.IntN(len(values))]
		} else {
			fill(r, reflect.ValueOf(&b.V).Elem(), 0)
		}
		return encode(&b)
	}
	s.Echo = pawl.Func("echo_"+name, "Returns its argument.", func(_ context.Context, b Box[T]) (Box[T], error) { return b, nil })
	s.Echo.Effect = pawl.EffectPure
	s.Into = func(ctx context.Context, r pawl.OutputRunner, task string) (json.RawMessage, *pawl.Result, error) {
		b, res, err := pawl.Into[Box[T]](ctx, r, message(task))
		return encode(&b), res, err
	}
	return s
}

// Refused returns three documents that no repair makes fit the type.
func (s Sample) Refused() (docs []string) {
	for _, wrong := range s.Wrong {
		if doc := `{"v":` + wrong + `}`; s.Echo.Validate(json.RawMessage(doc)) != nil {
			docs = append(docs, doc)
		}
	}
	return append(docs, `{}`, `{"w":{"x":1},"u":[]}`, `{"w":1}`)[:3]
}

// encode writes a value. Every value of the package has a JSON form.
func encode(v any) json.RawMessage {
	b, err := gotype.Encode(v)
	if err != nil {
		panic(err)
	}
	return b
}
