package gotypes

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// UUID is text in JSON.
type UUID [16]byte

// MarshalText writes hexadecimal digits.
func (u UUID) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(u[:])), nil }

// UnmarshalText reads hexadecimal digits.
func (u *UUID) UnmarshalText(b []byte) error {
	if len(b) != 32 {
		return fmt.Errorf("a UUID has 32 hexadecimal digits, got %d characters", len(b))
	}
	_, err := hex.Decode(u[:], b)
	return err
}

// Color is an enumeration with names.
type Color int

var colors = []string{"red", "green", "blue"}

// MarshalText writes the name.
func (c Color) MarshalText() ([]byte, error) { return []byte(colors[c]), nil }

// UnmarshalText reads a name.
func (c *Color) UnmarshalText(b []byte) error {
	i := slices.Index(colors, string(b))
	if i < 0 {
		return fmt.Errorf("unknown color %q; known: %s", b, strings.Join(colors, ", "))
	}
	*c = Color(i)
	return nil
}

// Money states its schema.
type Money struct{ cents int64 }

// JSONSchema describes an amount with two decimals.
func (Money) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","pattern":"^-?[0-9]+\\.[0-9]{2}$"}`)
}

// MarshalJSON writes an amount such as "12.50".
func (m Money) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d.%02d"`, m.cents/100, m.cents%100), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Money) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Replace(strings.Trim(string(b), `"`), ".", "", 1), 10, 64)
	m.cents = n
	return err
}

// Expr states a recursive schema, and is recursive itself: a number, or a list of Exprs.
type Expr struct {
	Value int
	Terms []Expr
}

// JSONSchema has references to itself and to its definitions.
func (*Expr) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$ref":"#/$defs/expr","$defs":{"expr":{"anyOf":[{"$ref":"#/$defs/int"},{"type":"array","items":{"$ref":"#/$defs/expr"}}]},"int":{"type":"integer","minimum":0,"maximum":99}}}`)
}

// MarshalJSON writes a number or a list.
func (e Expr) MarshalJSON() ([]byte, error) {
	if e.Terms != nil {
		return json.Marshal(e.Terms)
	}
	return json.Marshal(e.Value)
}

// UnmarshalJSON reads a number or a list.
func (e *Expr) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, &e.Terms)
	}
	return json.Unmarshal(b, &e.Value)
}

func expr(r *rand.Rand, depth int) Expr {
	if depth > 2 || r.IntN(2) == 0 {
		return Expr{Value: r.IntN(100)}
	}
	return Expr{Terms: []Expr{expr(r, depth+1), expr(r, depth+1)}}
}

// Decimal is a type of another module: only its methods know its JSON.
type Decimal struct{ text string }

// MarshalJSON writes the number as text.
func (d Decimal) MarshalJSON() ([]byte, error) { return json.Marshal(d.text) }

// UnmarshalJSON reads a number that is text.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &d.text); err != nil {
		return err
	}
	if _, err := strconv.ParseFloat(d.text, 64); err != nil {
		return fmt.Errorf("expected a decimal number as text, got %q", d.text)
	}
	return nil
}

// Range has a check of its own.
type Range struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

// Validate refuses a range that ends before it begins.
func (r Range) Validate() error {
	if r.To < r.From {
		return errors.New("to must not be less than from")
	}
	return nil
}

// The types with parts.
type (
	// Point is a plain struct.
	Point struct {
		X int     `json:"x"`
		Y float64 `json:"y,omitempty"`
	}
	base struct {
		ID   string `json:"id"`
		Note string `json:"note,omitempty"`
	}
	// Base is embedded by pointer.
	Base struct {
		Made time.Time `json:"made"`
	}
	embedding struct {
		base
		Name string `json:"name"`
	}
	embeddingPointer struct {
		*Base
		Name string `json:"name"`
	}
	embeddingNamed struct {
		Base  `json:"base"`
		Color // a field of the name Color
	}
	left  struct{ A, Same string }
	right struct{ B, Same string }
	// conflict has no field Same in JSON.
	conflict struct {
		left
		right
	}
	// Page is generic.
	Page[T any] struct {
		Items []T    `json:"items"`
		Next  string `json:"next,omitempty"`
	}
	node struct {
		Name string  `json:"name"`
		Kids []*node `json:"kids,omitempty"`
	}
	person struct {
		Name string `json:"name"`
		Pet  *pet   `json:"pet"`
	}
	pet struct {
		Owner *person `json:"owner"`
	}
	index  map[string]index
	nested []nested
	// Tree is generic and recursive.
	Tree[T any] struct {
		Value       T        `json:"value"`
		Left, Right *Tree[T] `json:",omitempty"`
	}
	quoted struct {
		ID    int64   `json:"id,string"`
		Rate  float64 `json:"rate,string"`
		On    bool    `json:"on,string"`
		Text  string  `json:"text,string"`
		Count *uint8  `json:"count,string"`
	}
	optional struct {
		A *int           `json:"a,omitempty"`
		B []string       `json:"b,omitempty"`
		C map[string]any `json:"c,omitempty"`
		D time.Time      `json:"d,omitzero"`
		E string         `json:"-"`
		//lint:ignore SA5008 a field that is named "-"
		F int `json:"-,"`
	}
	names struct {
		Ünïcode string
		Dotted  int `json:"a.b/c~d"`
	}
	car struct {
		Color string   `json:"color" jsonschema:"enum=red,enum=blue,description=painted, not named"`
		Seats int      `json:"seats,omitempty" jsonschema:"minimum=1,maximum=9"`
		Plate string   `json:"plate" jsonschema:"required,pattern=^[A-Z]{1,3}-[0-9]+$,maxLength=9"`
		Doors []string `json:"doors" jsonschema:"minItems=2,uniqueItems,enum=front,enum=rear"`
		Class *string  `json:"class" enum:"A, B" description:"the class of the car"`
		Owner string   `json:"owner" jsonschema:"who owns it, if it has one"`
	}
	money struct {
		Sum   Decimal  `json:"sum" jsonschema:"type=string,description=the sum to pay"`
		Price Money    `json:"price" jsonschema:"description=with two decimals"`
		Tips  []*Money `json:"tips"`
	}
	hash     []byte
	flags    uint8
	textual  map[UUID]Color
	celsius  float64
	nickname string
	triple   [3]Point
)

// All returns the samples. Each has values that break its schema or its type.
func All() []Sample {
	class := "B"
	return []Sample{
		sample[bool]("bool", []string{`1`, `"true"`, `null`}),
		sample[string]("string", []string{`1`, `null`, `{}`}),
		sample[int]("int", []string{`1.5`, `"1"`, `9223372036854775808`}),
		sample[int8]("int8", []string{`128`, `-129`, `1.5`}),
		sample[int16]("int16", []string{`32768`, `"1"`, `[]`}),
		sample[int32]("int32", []string{`2147483648`, `true`, `0.1`}),
		sample[int64]("int64", []string{`9223372036854775808`, `1e30`, `"x"`}),
		sample[uint]("uint", []string{`-1`, `18446744073709551616`, `1.5`}),
		sample[uint8]("uint8", []string{`-1`, `256`, `null`}),
		sample[uint16]("uint16", []string{`-1`, `65536`, `"1"`}),
		sample[uint32]("uint32", []string{`-1`, `4294967296`, `{}`}),
		sample[uint64]("uint64", []string{`-1`, `18446744073709551616`, `0.5`}),
		sample[float32]("float32", []string{`1e39`, `"1"`, `null`}),
		sample[float64]("float64", []string{`1e309`, `"NaN"`, `[]`}),
		sample[rune]("rune", []string{`"a"`, `2147483648`, `null`}),
		sample[celsius]("named_float", []string{`"hot"`, `null`, `{}`}),
		sample[nickname]("named_string", []string{`1`, `null`, `[]`}),
		sample[flags]("named_byte", []string{`256`, `-1`, `"a"`}),

		sample[[]string]("strings", []string{`"a"`, `[1]`, `{}`}),
		sample[[]int]("ints", []string{`["1"]`, `[1.5]`, `1`}),
		sample[[][]float64]("matrix", []string{`[1]`, `[["a"]]`, `{}`}),
		sample[[]*Point]("pointers", []string{`[1]`, `[{}]`, `[{"x":1,"z":2}]`}),
		sample[[3]int]("array", []string{`[1,2]`, `[1,2,3,4]`, `[1,2,"3"]`}),
		sample[[16]byte]("byte_array", []string{`"AAAA"`, `[1]`, `[256,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]`}),
		sample[triple]("struct_array", []string{`[]`, `[{"x":1}]`, `null`}),
		sample[[]byte]("bytes", []string{`[1]`, `"a"`, `"!!!!"`}),
		sample[hash]("named_bytes", []string{`1`, `"abc"`, `"ab=c"`}),
		sample[[]flags]("byte_flags", []string{`[1]`, `"a"`, `{}`}),

		sample[map[string]int]("map", []string{`[]`, `{"a":"b"}`, `{"a":1.5}`}),
		sample[map[int]string]("int_keys", []string{`{"a":"b"}`, `{"1.5":"b"}`, `{"1":2}`}),
		sample[map[uint8]bool]("byte_keys", []string{`{"-1":true}`, `{"256":true}`, `{"1":1}`}),
		sample[map[netip.Addr]int]("text_keys", []string{`{"x":1}`, `{"1.2.3":1}`, `{"1.2.3.4":"a"}`}),
		sample[textual]("text_keys_and_values", []string{`{"a":"red"}`, `{"00000000000000000000000000000000":"pink"}`, `1`}),
		sample[map[nickname][]map[string]*Point]("deep_map", []string{`{"a":{}}`, `{"a":[{"b":1}]}`, `{"a":[{"b":{}}]}`}),
		sample[map[string]any]("any_map", []string{`[]`, `1`, `"a"`}),
		sample[map[string]time.Duration]("duration_map", []string{`{"a":5}`, `{"a":"5"}`, `{"a":"5 s"}`}),
		sample[map[time.Duration]int]("duration_keys", []string{`{"5":1}`, `{"x":1}`, `{"5s":"a"}`}),

		sample[any]("any", []string{}),
		sample[[]any]("any_list", []string{`{}`, `1`, `"a"`}),
		sample[json.RawMessage]("raw", []string{}),
		sample[*json.RawMessage]("raw_pointer", []string{}),
		sample[json.Number]("number", []string{`"1"`, `true`, `null`}),

		sample[time.Time]("time", []string{`"2025-12-24"`, `1735000000`, `"tomorrow"`}),
		sample[*time.Time]("time_pointer", []string{`"2025-12-24"`, `1`, `{}`}),
		sample[time.Duration]("duration", []string{`5`, `"5"`, `"five seconds"`}),
		sample[*time.Duration]("duration_pointer", []string{`5`, `"5 s"`, `""`}),
		sample[[]time.Duration]("durations", []string{`[5]`, `["5"]`, `"5s"`}),
		sample[time.Month]("month", []string{`"May"`, `1.5`, `null`}),
		sample[big.Int]("big_int", []string{`"1"`, `1.5`, `{}`}),
		sample[*big.Int]("big_int_pointer", []string{`"1"`, `1.5`, `true`}),
		sample[*big.Float]("big_float", []string{`1`, `"x"`, `{}`}),
		sample[*big.Rat]("big_rat", []string{`1`, `"1/0"`, `"a/b"`}),
		sample[netip.Addr]("addr", []string{`{}`, `"10.0.0"`, `10`}),
		sample[netip.Prefix]("prefix", []string{`"10.0.0.0"`, `"10.0.0.0/33"`, `1`}),
		sample[net.IP]("ip", []string{`"10.0.0"`, `"x"`, `1`}),
		sample[net.HardwareAddr]("mac", []string{`"!"`, `1`, `[0]`}),
		sample[UUID]("uuid", []string{`"1"`, `[1]`, `"zz00000000000000000000000000000x"`}),
		sample[Color]("text_enum", []string{`"pink"`, `0`, `null`}),
		sample[slog.Level]("level", []string{`"LOUD"`, `4`, `{}`}),

		sample[*string]("pointer", []string{`1`, `[]`, `{}`}),
		sample[**int]("pointer_pointer", []string{`"1"`, `1.5`, `{}`}),
		sample[*Point]("struct_pointer", []string{`1`, `{}`, `{"x":1,"y":"2"}`}),
		sample[struct{}]("empty", []string{`null`, `{"a":1}`, `[]`}),
		sample[embedding]("embedded", []string{`{"name":"a"}`, `{"id":1,"name":"a"}`, `{"base":{},"name":"a"}`}),
		sample[embeddingPointer]("embedded_pointer", []string{`{}`, `{"made":1,"name":"a"}`, `{"made":"now","name":"a"}`}),
		sample[embeddingNamed]("embedded_named", []string{`{"made":"2025-12-24T00:00:00Z"}`, `{"base":{},"Color":"red"}`, `{"base":{"made":"2025-12-24T00:00:00Z"},"Color":"pink"}`}),
		sample[conflict]("conflict", []string{`{"A":"","B":"","Same":""}`, `{"A":""}`, `{"A":1,"B":""}`}),
		sample[Page[Point]]("generic", []string{`{}`, `{"items":[1]}`, `{"items":[],"next":1}`}),
		sample[node]("recursive", []string{`{"name":"a","kids":[{}]}`, `{"name":"a","kids":[{"name":"b","kids":[{"name":1}]}]}`, `{"kids":[]}`}),
		sample[person]("mutual", []string{`{"name":"a"}`, `{"name":"a","pet":{}}`, `{"name":"a","pet":{"owner":{"name":1,"pet":null}}}`}),
		sample[index]("recursive_map", []string{`{"a":1}`, `{"a":{"b":[]}}`, `[]`}),
		sample[nested]("recursive_list", []string{`[1]`, `[[{}]]`, `{}`}),
		sample[Tree[UUID]]("generic_tree", []string{`{}`, `{"value":"x"}`, `{"value":1}`}),
		// The text "null" is left out: the JSON module reads it as null, unlike encoding/json.
		sample("string_option", []string{
			`{"id":1,"rate":"1","on":"true","text":"\"\"","count":null}`,
			`{"id":"x","rate":"1","on":"true","text":"\"\"","count":null}`,
			`{"id":"1","rate":"1","on":"true","text":"a","count":null}`,
		}, quoted{-9007199254740993, 1.5e-7, true, "a\"\u2028<", nil}, quoted{1, 0, false, "", new(uint8)}),
		sample[optional]("optional", []string{`{"a":"1"}`, `{"E":"a"}`, `{"-":1,"d":"today"}`}),
		sample[names]("names", []string{`{}`, `{"Ünïcode":1,"a.b/c~d":1}`, `{"Ünïcode":"","a.b/c~d":1,"a":1}`}),

		sample[Money]("schema_method", []string{`12.5`, `"12.5"`, `{}`}),
		sample[Expr]("schema_method_recursive", []string{`"1"`, `[100]`, `[[1],{}]`}),
		sample("tag_type", []string{
			`{"sum":1,"price":"1.00","tips":null}`,
			`{"sum":"x","price":"1.00","tips":null}`,
			`{"sum":"1","price":"1.00","tips":["1"]}`,
		}, money{Decimal{"1.5"}, Money{100}, nil}, money{Decimal{"-3"}, Money{7}, []*Money{nil, {5}}}),
		sample("tags", []string{
			`{"color":"pink","plate":"A-1","doors":["front","rear"],"class":null,"owner":""}`,
			`{"color":"red","seats":0,"plate":"A-1","doors":["front","rear"],"class":"C","owner":""}`,
			`{"color":"red","plate":"a-1","doors":["front"],"class":"A","owner":""}`,
		}, car{"red", 4, "OSL-17", []string{"front", "rear"}, nil, "me"}, car{"blue", 0, "A-1", []string{"rear", "front"}, &class, ""}),
		sample("validate", []string{`{"from":2,"to":1}`, `{"from":1}`, `{"from":"1","to":2}`}, Range{1, 2}, Range{}),
		sample("validate_inside", []string{
			`{"a":[{"from":2,"to":1}]}`, `{"a":[{"from":1,"to":1},{"from":9,"to":1}],"b":1}`, `[]`,
		}, map[string][]Range{"a": {{1, 1}}}, nil),
	}
}
