package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

var texts = []string{
	``, ` `, `{}`, `[]`, ` [ ] `, `null`, `true`, `false`, `nul`, `truex`, `tru e`, `0`, `-0`, `01`, `-`, `1.`, `1.5`, `.5`, `1e5`, `1E+5`,
	`1e`, `-1.25e-7`, `9223372036854775807`, `9223372036854775808`, `""`, `"a"`, `"`, `"\"`, `"\\"`, `"\\\"`, `"\n"`, `"\q"`, `"\u00e9"`,
	`"\u00"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83dx"`, `"é"`, "\"\xff\"", "\"a\x00b\"", "\"\n\"", `"\/"`,
	`{"a":1}`, `{"a":1,}`, `{"a" : [1, 2 ,{"b":null}] }`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `[1,2`, `[1 2]`, `[1,]`, `[,1]`, `{"a":1}}`,
	`{"a":1} x`, "\ufeff{}", `[}`, `{]`, `{"\u0061":2}`, "\t{\r\n\"x\":\"y\"}\n", strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	`"` + strings.Repeat("x", 60) + `\n` + strings.Repeat("y", 60) + `\"` + strings.Repeat("z", 100) + `"`, `"` + strings.Repeat("x", 48) + `"`,
	`"` + strings.Repeat("x", 47) + `\"`, `"` + strings.Repeat("x", 48) + `\`, `"` + strings.Repeat("x", 60) + `\`, `{"a":"` + strings.Repeat("x", 100) + `","b":"\\"}`,
	strings.Repeat("[", 10001) + strings.Repeat("]", 10001), strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<18),
}

// walk reads a whole document with a Cursor into the tree that encoding/json would return.
func walk(c *jsonscan.Cursor) any {
	switch c.Kind() {
	case jsonscan.Object:
		m := map[string]any{}
		c.Object()
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			key := string(k)
			m[key] = walk(c)
		}
		return m
	case jsonscan.Array:
		a := []any{}
		for c.Array(); c.More(); {
			a = append(a, walk(c))
		}
		return a
	case jsonscan.String:
		return c.String()
	case jsonscan.Number:
		return json.Number(c.Raw())
	case jsonscan.Null:
		c.Skip()
		return nil
	}
	return c.Bool()
}

func TestCursorReadsWhatEncodingJSONReads(t *testing.T) {
	for _, s := range texts {
		checkWalk(t, []byte(s))
	}
}

func checkWalk(t *testing.T, data []byte) {
	t.Helper()
	c := jsonscan.New(data)
	got := walk(&c)
	err := c.End()
	skip := jsonscan.New(data)
	skip.Skip()
	if errSkip := skip.End(); err == nil && errSkip != nil {
		t.Errorf("%.60q: Skip: %v", data, errSkip)
	}
	if err != nil && !errors.Is(err, jsonscan.ErrSyntax) {
		t.Errorf("%.60q: error %v is not ErrSyntax", data, err)
	}
	if !json.Valid(data) {
		return // the cursor may be lenient; it must not panic
	}
	if err != nil {
		t.Errorf("%.60q: %v", data, err)
		return
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("%.60q: %v", data, err)
	}
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Errorf("%.60q: got %s, want %s", data, g, w)
	}
}

func TestCursorSkipsWhatIsNotRead(t *testing.T) {
	c := jsonscan.New([]byte(`{"a":{"x":[1,{"y":"]}"}]},"b":[1,[2],"3",{"z":0}],"c":"last"}`))
	var keys []string
	var elements int
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		keys = append(keys, string(k))
		if string(k) == "b" {
			for c.Array(); c.More(); {
				elements++
			}
		}
	}
	if err := c.End(); err != nil || strings.Join(keys, "") != "abc" || elements != 4 {
		t.Errorf("keys %v, %d elements, error %v; want a b c, 4, nil", keys, elements, err)
	}
}

func TestCursorReadsOtherKindsAsZero(t *testing.T) {
	const doc = `{"a":"text","b":7,"c":[1],"d":{"e":null},"f":null,"g":true}`
	c := jsonscan.New([]byte(doc))
	c.Object()
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		switch string(k) {
		case "a":
			if n, ok := c.Int(); n != 0 || ok {
				t.Errorf("Int of a string = %d, %v", n, ok)
			}
		case "b":
			if s := c.String(); s != "" {
				t.Errorf("String of a number = %q", s)
			}
		case "c":
			if c.Object() {
				t.Error("an array was entered as an object")
			}
		case "d":
			n := 0
			for c.Array(); c.More(); {
				n++
			}
			if n != 0 {
				t.Errorf("an object has %d elements", n)
			}
		case "f":
			if !c.Null() || c.Err() != nil {
				t.Error("null was not read as null")
			}
		case "g":
			if c.Null() || !c.Bool() {
				t.Error("true was not read as true")
			}
		}
	}
	if err := c.End(); err != nil {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-12": -12, "120": 120, "1.9": 1, "1e3": 1000, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "1e300": math.MaxInt64, "-1e999": math.MinInt64, "123456789012345678": 123456789012345678,
	} {
		c := jsonscan.New([]byte(in))
		if got, ok := c.Int(); got != want || !ok || c.End() != nil {
			t.Errorf("Int(%s) = %d, %v, %v; want %d", in, got, ok, c.Err(), want)
		}
	}
	c := jsonscan.New([]byte(" -2.5e1 "))
	if got, ok := c.Float(); got != -25 || !ok {
		t.Errorf("Float = %v, %v; want -25", got, ok)
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c/d", "\x00\x01\x1f\x7f", "tab\tnewline\nreturn\r", "<b>&amp;</b>", "é 漢 😀 \u2028", "bad \xff utf \xc3",
		strings.Repeat("12345678", 4) + "\"", "1234567\n", "12345678\x1f", "1234567\x80", strings.Repeat("x", 1000)} {
		checkQuote(t, s)
	}
}

func checkQuote(t *testing.T, s string) {
	t.Helper()
	q := jsonscan.AppendString(nil, s)
	if b := jsonscan.AppendString(nil, []byte(s)); !bytes.Equal(q, b) {
		t.Errorf("AppendString of string %q and of bytes %q differ", q, b)
	}
	if !json.Valid(q) || !utf8.Valid(q) {
		t.Fatalf("AppendString(%q) = %q, which is not valid", s, q)
	}
	var got, want string
	if err := json.Unmarshal(q, &got); err != nil {
		t.Fatal(err)
	}
	std, _ := json.Marshal(s)
	json.Unmarshal(std, &want)
	if got != want {
		t.Errorf("AppendString(%q) reads back as %q, want %q", s, got, want)
	}
	c := jsonscan.New(q)
	if back := c.String(); back != want || c.End() != nil {
		t.Errorf("String of %q = %q, %v; want %q", q, back, c.Err(), want)
	}
}

func TestCursorDoesNotAllocate(t *testing.T) {
	doc := []byte(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}],"usage":{"a":1,"b":[2,3]}}`)
	buf := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		c := jsonscan.New(doc)
		c.Object()
		for k, ok := c.Key(); ok; k, ok = c.Key() {
			if string(k) == "id" {
				buf = c.AppendString(buf[:0])
			}
		}
		if c.End() != nil {
			t.Fatal(c.Err())
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range texts {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkWalk(t, data)
	})
}

func FuzzString(f *testing.F) {
	f.Add("a\"b\\ \xff é 😀")
	f.Fuzz(func(t *testing.T, s string) {
		checkQuote(t, s)
		raw := []byte(`"` + s + `"`)
		var want string
		if json.Unmarshal(raw, &want) != nil {
			return
		}
		c := jsonscan.New(raw)
		if got := c.String(); got != want || c.End() != nil {
			t.Errorf("String(%q) = %q, %v; want %q", raw, got, c.Err(), want)
		}
	})
}

func BenchmarkCursor(b *testing.B) {
	doc := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"hello"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		c := jsonscan.New(doc)
		c.Object()
		for _, ok := c.Key(); ok; _, ok = c.Key() {
		}
	}
}

func BenchmarkAppendString(b *testing.B) {
	s := strings.Repeat(`{"path":"/a/b","limit":10,"query":"some words of text"}`, 100)
	var buf []byte
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		buf = jsonscan.AppendString(buf[:0], s)
	}
}

func Example() {
	c := jsonscan.New([]byte(`{"id":"a","list":[1,2,3],"more":{"b":[]}}`))
	var id string
	var sum int64
	c.Object()
	for key, ok := c.Key(); ok; key, ok = c.Key() {
		switch string(key) {
		case "id":
			id = c.String()
		case "list":
			for c.Array(); c.More(); {
				n, _ := c.Int()
				sum += n
			}
		}
	}
	fmt.Println(id, sum, c.End())
	// Output: a 6 <nil>
}

func TestFields(t *testing.T) {
	var word jsonscan.Word
	var text, kept string
	var raw []byte
	var n, low int
	var wide int64
	var yes bool
	var f float64
	c := jsonscan.New([]byte(`{"word":"a","text":"b\n","other":[1,{"text":"no"}],"raw":[1, 2],"n":7,"low":-3,"wide":null,"yes":true,"f":0.5}`))
	kept, wide = "kept", 9
	c.Fields("word", &word, "text", &text, "raw", &raw, "n", &n, "low", &low, "wide", &wide, "yes", &yes, "f", &f, "kept", &kept)
	got := fmt.Sprintf("%s %q %s %d %d %d %v %v %s %v", word, text, raw, n, low, wide, yes, f, kept, c.End())
	if want := `a "b\n" [1, 2] 7 0 9 true 0.5 kept <nil>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c = jsonscan.New([]byte(`[{"n":8}]`))
	if c.Fields("n", &n); n != 7 || c.End() != nil {
		t.Errorf("of a list: got %d, %v, want 7, nil", n, c.End())
	}
	c = jsonscan.New([]byte(`{"n":8`))
	if c.Fields("n", &n); c.Err() == nil {
		t.Error("of an object without an end: got no error")
	}
}
