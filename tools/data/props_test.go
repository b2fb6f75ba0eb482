package data_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/data"

	"github.com/pawl-go/pawl/internal/test/tooltest"
)

type object = map[string]any

// answer is an answer as a program reads it; numbers keep their spelling.
type answer struct {
	Columns    []string
	Count      int
	Truncated  bool
	Total      int
	Returned   int
	NextOffset int `json:"next_offset"`
	Records    []object
	Groups     []object
	Notes      []string
}

func read(t testing.TB, text string) (a answer) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return a
}

// Records left out of an answer are reported, and continuing where it says returns all records.
func TestAnswersAreBounded(t *testing.T) {
	soak.Sequential(t)
	set := data.New(nil)
	var content strings.Builder
	content.WriteString("id,name\n")
	var all []object
	for i := range 5000 {
		name := strings.Repeat("é", i%90)
		fmt.Fprintf(&content, "%d,%s\n", i, name)
		all = append(all, object{"id": fmt.Sprint(i), "name": name})
	}
	var got []object
	for offset, calls := 0, 0; ; calls++ {
		a := read(t, call(t, set.Parse, object{"content": content.String(), "offset": offset}))
		if a.Count != 5000 || a.Truncated && (a.Total != 5000 || a.Returned != len(a.Records) ||
			a.NextOffset != offset+a.Returned) || a.Returned > 1000 {
			t.Fatalf("offset %d: count %d, total %d, returned %d of %d, next %d", offset, a.Count, a.Total, a.Returned, len(a.Records), a.NextOffset)
		}
		got = append(got, a.Records...)
		if offset = a.NextOffset; !a.Truncated {
			break
		}
		if calls > 100 {
			t.Fatal("more than 100 calls")
		}
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("the answers together (-want +got):\n%.500s", diff)
	}

	for _, text := range []string{
		call(t, set.Filter, object{"records": content.String(), "where": []object{{"column": "id", "op": ">=", "value": 0}}}),
		call(t, set.Transform, object{"records": content.String(), "sort_by": "name"}),
		call(t, set.Aggregate, object{"records": content.String(), "group_by": []string{"id"}, "metrics": []object{{"column": "id", "op": "sum"}}}),
	} {
		a := read(t, text)
		if !a.Truncated || a.Count != 5000 || a.Total != 5000 || a.Returned != len(a.Records)+len(a.Groups) ||
			a.Returned < 100 {
			t.Errorf("count %d, truncated %t, total %d, returned %d of %d", a.Count, a.Truncated, a.Total, a.Returned, len(a.Records)+len(a.Groups))
		}
	}

	// An answer that fits is not marked as truncated; the limit is 32 KiB and not half of it.
	small := read(t, call(t, set.Transform, object{"records": content.String(), "select": []string{"id"}, "limit": 1500}))
	if small.Truncated || len(small.Records) != 1500 {
		t.Errorf("%d records of some 14 bytes: truncated %t", len(small.Records), small.Truncated)
	}

	long := call(t, set.Parse, object{"content": "a,b\n1,2\n" + strings.Repeat("x", 40_000) + ",4\n5,6"})
	if a := read(t, long); a.Returned != 1 || a.NextOffset != 1 {
		t.Errorf("a long record is second: %s", long)
	}
	long = call(t, set.Parse, object{"content": "a,b\n1,2\n" + strings.Repeat("x", 40_000) + ",4\n5,6", "offset": 1})
	if want := "error: record 2 alone is 40016 bytes of JSON, and an answer has room for 32548; leave out columns that are not needed"; long != want {
		t.Errorf("a long record is first:\n%s\nwant\n%s", long, want)
	}
	wide := call(t, set.Parse, object{"content": strings.Repeat("h,", 4000) + "h\n" + strings.Repeat("1,", 20)})
	if !strings.HasPrefix(wide, "error: record 1 alone is ") {
		t.Errorf("4001 columns: %.200s", wide)
	}
	wide = call(t, set.Parse, object{"content": strings.Repeat("h,", 4000) + "h\n"})
	if a := read(t, wide); len(a.Columns) == 0 || len(a.Columns) == 4001 ||
		!strings.HasPrefix(a.Notes[len(a.Notes)-1], "there are 4001 columns; the first ") {
		t.Errorf("%d of 4001 columns: %q", len(a.Columns), a.Notes)
	}
}

// CSV that encoding/csv accepts is read in the same way. Other text gives rows or an error, never a
// panic.
func FuzzParseCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a\n\"x\ny\"\n", "a,b\r\n\"1\"\"\",2\r\n", "a;b\n1;2", "\ufeffa\n1", "a,b\n1\n1,2,3\n", "a,a,\n,,\n", "a\n\"", "a\n\n \n1"} {
		f.Add(s)
	}
	set := data.New(nil)
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 5000 {
			return // of many columns, not all are listed
		}
		s = string([]rune(s)) // as in arguments: each byte that is not UTF-8 is U+FFFD
		text := call(t, set.Parse, object{"content": s, "format": "csv", "limit": 1 << 30})
		if strings.HasPrefix(text, "error: ") {
			if strings.TrimSpace(s) != "" && !strings.Contains(s, `"`) && len(s) < 1000 {
				t.Errorf("%q: %s", s, text)
			}
			return
		}
		s = strings.TrimPrefix(s, "\ufeff")
		if strings.ContainsAny(s, ";\t|") || strings.Contains(strings.ReplaceAll(s, "\r\n", ""), "\r") || strings.HasPrefix(s, "\ufeff") {
			return // encoding/csv reads these differently
		}
		r := csv.NewReader(strings.NewReader(s))
		r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
		want, err := r.ReadAll()
		if err != nil {
			return
		}
		blank := func(row []string) bool { return len(row) == 1 && strings.TrimSpace(row[0]) == "" }
		if slices.ContainsFunc(want, blank) || len(want) == 0 {
			// a row with one empty field, or a blank line: encoding/csv does not distinguish them
			return
		}
		got := read(t, text)
		if got.Count != len(want)-1 {
			t.Fatalf("%q: %d rows, want %d", s, got.Count, len(want)-1)
		}
		for i, rec := range got.Records {
			for j, cell := range want[i+1] {
				if g, ok := rec[got.Columns[j]].(string); !ok || strings.TrimSpace(g) != strings.TrimSpace(cell) {
					t.Errorf("%q: row %d, field %d is %q, want %q", s, i+1, j, rec[got.Columns[j]], cell)
				}
			}
			if len(rec) < len(want[i+1]) {
				t.Errorf("%q: row %d has %d fields, want %d", s, i+1, len(rec), len(want[i+1]))
			}
		}
	})
}

// Text that encoding/json reads as objects gives the same objects. Other text gives an error, never
// a panic.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`[{"a":1},{"b":[1,{"c":null}]}]`, `{"a":1e999}`, "{\"a\":1}\n{\"a\":2}", `[`, `[1]`, `{"a":1}{"a":2}`, `[{"a":1,"a":2}]`, "\ufeff[]", `[{"":"\u0000\ud800"}]`} {
		f.Add(s)
	}
	set := data.New(nil)
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 5000 {
			return // of many columns, not all are listed
		}
		s = string([]rune(s)) // as in arguments: each byte that is not UTF-8 is U+FFFD
		text := call(t, set.Parse, object{"content": s, "format": "json"})
		call(t, set.Parse, object{"content": s, "format": "jsonl"})
		call(t, set.Parse, object{"content": s})
		if strings.HasPrefix(text, "error: ") {
			return
		}
		got := read(t, text)
		s = strings.TrimPrefix(s, "\ufeff")
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var want []object
		if strings.HasPrefix(strings.TrimSpace(s), "{") {
			want = make([]object, 1)
			tooltest.Must(t, d.Decode(&want[0]))
		} else {
			tooltest.Must(t, d.Decode(&want))
		}
		if got.Count != len(want) {
			t.Fatalf("%q: %d records, want %d", s, got.Count, len(want))
		}
		if diff := cmp.Diff(want[:len(got.Records)], got.Records); diff != "" && len(want) > 0 {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	})
}

var someNumber = rapid.Custom(func(t *rapid.T) string {
	s := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + rapid.SampledFrom([]string{"0", "7", "12", "100", "9007199254740993"}).Draw(t, "whole")
	s += rapid.SampledFrom([]string{"", ".5", ".10", ".007", ".123456789012345678901"}).Draw(t, "fraction")
	return s + rapid.SampledFrom([]string{"", "", "", "e2", "E-3", "e+20", "e-0"}).Draw(t, "exponent")
})

var someValue = rapid.OneOf(
	rapid.Map(someNumber, func(s string) any { return json.Number(s) }),
	rapid.Map(someNumber, func(s string) any { return s }),
	rapid.SampledFrom([]any{"", "a", "A", "b", "007", "+1", "1,000", "NaN", "Infinity", ".5", "5.", "1e", " 1", "0x1", true, false, "true", "False", nil,
		json.Number("1e999999"), "1e999999"}),
)

// ratOf returns v as a number of math/big. Nil means that v is not numeric.
func ratOf(v any) *big.Rat {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = string(v)
	case string:
		if !json.Valid([]byte(v)) || strings.TrimSpace(v) != v || v == "" || !strings.ContainsAny(v[:1], "-0123456789") {
			return nil
		}
		s = v
	default:
		return nil
	}
	if strings.Contains(s, "e999999") {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}

// Sums equal the sums of math/big, to the last digit.
func TestSumsAreExact(t *testing.T) {
	soak.Sequential(t)
	set := data.New(nil)
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(someValue, 1, 12).Draw(rt, "values")
		want, n := new(big.Rat), 0
		var least, most *big.Rat
		var records []object
		for _, v := range values {
			records = append(records, object{"v": v})
			if r := ratOf(v); r != nil {
				n++
				want.Add(want, r)
				if least == nil || r.Cmp(least) < 0 {
					least = r
				}
				if most == nil || r.Cmp(most) > 0 {
					most = r
				}
			}
		}
		text := call(t, set.Aggregate, object{"records": records, "metrics": []object{
			{"column": "v", "op": "sum"}, {"column": "v", "op": "avg"}, {"column": "v", "op": "min"}, {"column": "v", "op": "max"}, {"column": "v", "op": "count"}}})
		got := read(t, text).Groups[0]
		if r := ratOf(got["sum_v"]); r == nil || r.Cmp(want) != 0 || got["count_v"] != json.Number(fmt.Sprint(len(values))) {
			rt.Fatalf("%v: %s, want the sum %s of %d", values, text, want.RatString(), len(values))
		}
		if n == 0 {
			if got["avg_v"] != nil || got["min_v"] != nil || got["max_v"] != nil {
				rt.Fatalf("%v: figures of nothing: %s", values, text)
			}
			return
		}
		if ratOf(got["min_v"]).Cmp(least) != 0 || ratOf(got["max_v"]).Cmp(most) != 0 {
			rt.Fatalf("%v: %s, want min %s and max %s", values, text, least.RatString(), most.RatString())
		}
		off := new(big.Rat).Sub(ratOf(got["avg_v"]), want.Quo(want, big.NewRat(int64(n), 1)))
		if off.Abs(off).Cmp(big.NewRat(1, 20_000_000_000)) > 0 {
			rt.Fatalf("%v: the average in %s is off by %s", values, text, off.FloatString(15))
		}
	})
}

// met implements the comparison rules of the package comment a second time.
func met(cell any, op string, value any) bool {
	order, ordered := 0, true
	a, b := ratOf(cell), ratOf(value)
	sa, texta := cell.(string)
	sb, textb := value.(string)
	switch {
	case a != nil && b != nil:
		order = a.Cmp(b)
	case texta && textb:
		order = strings.Compare(sa, sb)
	default:
		ordered = false
	}
	equal := ordered && order == 0
	if !ordered {
		ba, boola := cell.(bool)
		bb, boolb := value.(bool)
		equal = cell == value || boola && textb && strings.EqualFold(fmt.Sprint(ba), sb) || boolb && texta &&
			strings.EqualFold(fmt.Sprint(bb), sa)
	}
	switch op {
	case "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	}
	return ordered && order >= 0
}

func TestComparisons(t *testing.T) {
	set := data.New(nil)
	rapid.Check(t, func(rt *rapid.T) {
		cell, value := someValue.Draw(rt, "cell"), someValue.Draw(rt, "value")
		for _, op := range []string{"==", "!=", "<", "<=", ">", ">="} {
			text := call(t, set.Filter, object{"records": []object{{"a": cell}}, "where": []object{{"column": "a", "op": op, "value": value}}})
			if _, ok := value.(bool); (ok || value == nil) && strings.ContainsAny(op, "<>") {
				if !strings.HasPrefix(text, "error: ") {
					rt.Fatalf("%#v %s %#v: %s", cell, op, value, text)
				}
				continue
			}
			if got, want := read(t, text).Count == 1, met(cell, op, value); got != want {
				rt.Fatalf("%#v %s %#v: %t, want %t", cell, op, value, got, want)
			}
		}
	})
}

// Sorting keeps every record, gives an order that does not depend on the initial order of unequal
// records, and is stable.
func TestSorting(t *testing.T) {
	set := data.New(nil)
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(someValue, 1, 15).Draw(rt, "values")
		desc := rapid.Bool().Draw(rt, "desc")
		var records []object
		for i, v := range values {
			records = append(records, object{"v": v, "i": json.Number(fmt.Sprint(i))})
		}
		sort := func(records []object) []object {
			return read(t, call(t, set.Transform, object{"records": records, "sort_by": "v", "sort_desc": desc})).Records
		}
		once := sort(records)
		if len(once) != len(records) {
			rt.Fatalf("%d records of %d", len(once), len(records))
		}
		for i := range once[1:] {
			a, b := once[i], once[i+1]
			op := ">"
			if desc {
				op = "<"
			}
			empty := a["v"] == "" || a["v"] == nil || b["v"] == "" || b["v"] == nil
			first, second := ratOf(a["v"]) != nil, ratOf(b["v"]) != nil
			if !first && second || first == second && !empty && met(a["v"], op, b["v"]) {
				rt.Fatalf("%v is before %v, desc %t", a["v"], b["v"], desc)
			}
			if a["v"] == b["v"] && ratOf(a["i"]).Cmp(ratOf(b["i"])) > 0 {
				rt.Fatalf("equal records changed places: %v, %v", a, b)
			}
		}
		if diff := cmp.Diff(once, sort(once)); diff != "" {
			rt.Fatalf("sorted again:\n%s", diff)
		}
	})
}
