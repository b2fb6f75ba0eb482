package wire_test

import (
	"testing"

	"github.com/pawl-go/pawl/provider/internal/wire"
)

func TestMembers(t *testing.T) {
	for in, want := range map[string]string{
		``:                             `{}`,
		`{}`:                           `{}`,
		`{"a":"x","b":[1],"n":{}}`:     `{"a":"xy\n","b":[1,2],"n":null,"l":[2],"e":"y\n"}`,
		`{"a":7,"b":[],"l":"no list"}`: `{"a":"y\n","b":[2],"l":[2],"n":null,"e":"y\n"}`,
	} {
		x := wire.ReadMembers([]byte(in))
		if len(x) > 0 {
			x.At("a").Extend([]byte(`"y\n"`))
			x.At("b").Append([]byte("2"))
			if x.At("l").IsText() != (x.At("l").Raw()[0] == '"') || !x.At("a").IsText() {
				t.Errorf("%s: the kinds are wrong", in)
			}
			x.At("n").Set([]byte("null"))
			x.At("e").Extend([]byte(`"y\n"`))
			x.At("l").Append([]byte("2"))
		}
		if got := string(x.JSON()); got != want {
			t.Errorf("%s became %s, not %s", in, got, want)
		}
	}
}
