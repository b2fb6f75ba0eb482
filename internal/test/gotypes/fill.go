package gotypes

import (
	"encoding/json"
	"log/slog"
	"math"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/llm"
)

func message(task string) llm.Message { return llm.User(task) }

// maxDepth bounds recursive values.
const maxDepth = 5

// known fill the types whose values are not made from their kind.
var known = map[reflect.Type]func(r *rand.Rand) any{
	reflect.TypeFor[time.Time](): func(r *rand.Rand) any {
		return time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()
	},
	reflect.TypeFor[time.Duration](): func(r *rand.Rand) any {
		return time.Duration(r.Int64() >> r.IntN(60))
	},
	reflect.TypeFor[json.RawMessage](): func(r *rand.Rand) any {
		b, _ := json.Marshal(anything(r, 0))
		return json.RawMessage(b)
	},
	reflect.TypeFor[json.Number](): func(r *rand.Rand) any { return number(r) },
	reflect.TypeFor[big.Int](): func(r *rand.Rand) any {
		return *new(big.Int).Exp(big.NewInt(r.Int64N(1e9)-5e8), big.NewInt(r.Int64N(9)+1), nil)
	},
	reflect.TypeFor[big.Float](): func(r *rand.Rand) any { return *big.NewFloat(r.NormFloat64()) },
	reflect.TypeFor[big.Rat]():   func(r *rand.Rand) any { return *big.NewRat(r.Int64N(1e6)-5e5, r.Int64N(1e3)+1) },
	reflect.TypeFor[netip.Addr](): func(r *rand.Rand) any {
		return netip.AddrFrom4([4]byte{byte(r.Uint32()), 2, 3, byte(r.Uint32())})
	},
	reflect.TypeFor[netip.Prefix](): func(r *rand.Rand) any {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.Uint32())}), r.IntN(33))
	},
	reflect.TypeFor[net.IP]():     func(r *rand.Rand) any { return net.IPv4(10, 1, 2, byte(r.Uint32())) },
	reflect.TypeFor[slog.Level](): func(r *rand.Rand) any { return slog.Level(r.IntN(20) - 10) },
	reflect.TypeFor[Color]():      func(r *rand.Rand) any { return Color(r.IntN(len(colors))) },
	reflect.TypeFor[Money]():      func(r *rand.Rand) any { return Money{r.Int64N(1e6)} },
	reflect.TypeFor[Expr]():       func(r *rand.Rand) any { return expr(r, 0) },
}

// fill sets v to a random value.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if make, ok := known[v.Type()]; ok {
		v.Set(reflect.ValueOf(make(r)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString(words[r.IntN(len(words))])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> (64 - v.Type().Bits()) >> r.IntN(v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()) >> r.IntN(v.Type().Bits()))
	case reflect.Float32:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Float64:
		v.SetFloat(math.Ldexp(r.NormFloat64(), r.IntN(80)-40))
	case reflect.Interface:
		if a := anything(r, depth); a != nil {
			v.Set(reflect.ValueOf(a))
		}
	default:
		fillParts(r, v, depth)
	}
}

// fillParts fills a value that has parts. Deep ones stay empty.
func fillParts(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < maxDepth && r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < maxDepth && r.IntN(5) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
			for i := range v.Len() {
				fill(r, v.Index(i), depth+1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth < maxDepth && r.IntN(5) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(4) {
				key := reflect.New(v.Type().Key()).Elem()
				value := reflect.New(v.Type().Elem()).Elem()
				fill(r, key, depth+1)
				fill(r, value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			embedded := v.Type().Field(i).Anonymous && v.Field(i).Kind() == reflect.Struct
			if v.Field(i).CanSet() || embedded {
				fill(r, v.Field(i), depth+1)
			}
		}
	}
}

// words are texts that are easy to get wrong.
var words = []string{"", "a", "Oslo", "grüße", "a\"b\\c", "<b>&", "\u2028", "null", "17", "\t\n", "日本", "😀"}

// number returns a number that a float64 may not hold.
func number(r *rand.Rand) json.Number {
	switch r.IntN(4) {
	case 0:
		return json.Number(strconv.FormatInt(int64(r.Uint64()), 10))
	case 1:
		return "3.0"
	case 2:
		return "0.10000000000000000000001"
	}
	return json.Number(strconv.Itoa(r.IntN(100)))
}

// anything returns a value of any JSON type.
func anything(r *rand.Rand, depth int) any {
	n := r.IntN(6)
	if depth >= maxDepth {
		n = r.IntN(4)
	}
	switch n {
	case 0:
		return number(r)
	case 1:
		return words[r.IntN(len(words))]
	case 2:
		return r.IntN(2) == 0
	case 3:
		return nil
	case 4:
		return []any{anything(r, depth+1), anything(r, depth+1)}
	}
	return map[string]any{"a": anything(r, depth+1), "b": number(r)}
}
