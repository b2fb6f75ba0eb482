package data

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// String returns the name of the kind for texts.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a text", "an array", "an object"}[k]
}

// A value is a cell. For text, s is the text; otherwise s is compact JSON in which numbers keep
// their spelling.
type value struct {
	kind kind
	s    string
}

// valueOf returns the value of valid JSON.
func valueOf(raw json.RawMessage) value {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case 'n':
		return value{}
	case 't', 'f':
		return value{boolean, string(raw)}
	case '"':
		var s string
		json.Unmarshal(raw, &s)
		return value{text, s}
	case '[', '{':
		var b bytes.Buffer
		json.Compact(&b, raw)
		if raw[0] == '[' {
			return value{list, b.String()}
		}
		return value{object, b.String()}
	}
	return value{number, string(raw)}
}

// append appends v as JSON.
func (v value) append(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case text:
		return jsonscan.AppendString(b, v.s)
	}
	return append(b, v.s...)
}

// decimal returns v as a number, if it is numeric.
func (v value) decimal() (decimal, bool) {
	if v.kind != number && v.kind != text {
		return decimal{}, false
	}
	return parseDecimal(v.s)
}

// equal reports whether a and b are the same value.
func equal(a, b value) bool {
	if x, ok := a.decimal(); ok {
		if y, ok := b.decimal(); ok {
			return x.cmp(y) == 0
		}
	}
	switch {
	case a.kind == b.kind:
		return a.s == b.s
	case a.kind == boolean && b.kind == text, a.kind == text && b.kind == boolean:
		return strings.EqualFold(a.s, b.s)
	}
	return false
}

// compare returns the order of a and b. ok is false if they have no order.
func compare(a, b value) (order int, ok bool) {
	if x, ok := a.decimal(); ok {
		if y, ok := b.decimal(); ok {
			return x.cmp(y), true
		}
	}
	if a.kind == text && b.kind == text {
		return strings.Compare(a.s, b.s), true
	}
	return 0, false
}

// empty reports whether v has no value: null, or "", the text of an empty CSV cell.
func (v value) empty() bool { return v.kind == null || v.kind == text && v.s == "" }

// The ranks order values of different kinds for sorting.
const (
	rankNumeric = iota
	rankText
	rankBoolean
	rankOther
	rankEmpty
)

// A sortKey is a value prepared for sorting, with its row.
type sortKey struct {
	rank   int
	row    int
	number decimal // for rankNumeric
	text   string  // for other ranks
}

func (v value) sortKey(row int) sortKey {
	k := sortKey{row: row, text: v.s}
	if v.empty() {
		k.rank = rankEmpty
		return k
	}
	// Numbers in CSV are text. They are sorted as numbers, since 9 before 10 is what is meant.
	if d, ok := v.decimal(); ok {
		k.number = d
		k.text = ""
		return k
	}

	switch v.kind {
	case text:
		k.rank = rankText
	case boolean:
		k.rank = rankBoolean
	default:
		k.rank = rankOther
	}
	return k
}

// order is a total order of values: by rank, and within a rank ascending or descending. "n/a" is
// after the numbers in either direction.
func (k *sortKey) order(o *sortKey, down bool) int {
	if k.rank != o.rank {
		return cmp.Compare(k.rank, o.rank)
	}
	n := 0
	if k.rank == rankNumeric {
		n = k.number.cmp(o.number)
	} else if k.rank != rankEmpty {
		n = strings.Compare(k.text, o.text)
	}
	if down {
		return -n
	}
	return n
}

// group appends the grouping key of v: for a number its numeric value, however it is written; for
// anything else the value itself.
func (v value) group(b []byte) []byte {
	if v.kind == number {
		if d, ok := v.decimal(); ok {
			if d.digits == "" {
				return append(b, '0')
			}
			if d.neg {
				b = append(b, '-')
			}
			return strconv.AppendInt(append(append(b, d.digits...), 'e'), int64(d.exp), 10)
		}
	}
	return v.append(b)
}

// A decimal is the number 0.digits × 10^exp. Its digits neither begin nor end with 0. Zero has no
// digits.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// maxExp limits the size of numbers, about as a double does: 1e999999999 is easy to write and hard
// to add.
const maxExp = 308

// parseDecimal parses exactly the numbers that JSON allows.
func parseDecimal(s string) (d decimal, ok bool) {
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	if s == "" || !isDigit(s[len(s)-1]) {
		return d, false
	}
	if s[0] != '-' && !isDigit(s[0]) || !json.Valid([]byte(s)) {
		return d, false
	}

	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	mantissa, d.neg = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	// Digits without zeros at their ends, and an exponent: equal numbers are equal in this form,
	// however they were written.
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	exp, err := strconv.Atoi(cmp.Or(power, "0"))
	d.exp = exp + len(digits) - len(fraction)
	return d, err == nil && d.exp <= maxExp && d.exp > -maxExp
}

// cmp returns -1, 0 or 1 as d is less than, equal to or more than o.
func (d decimal) cmp(o decimal) int {
	if order := cmp.Compare(d.sign(), o.sign()); order != 0 {
		return order
	}
	n := cmp.Or(cmp.Compare(d.exp, o.exp), strings.Compare(d.digits, o.digits))
	if d.neg {
		return -n
	}
	return n
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// A sum is an exact sum of numbers.
type sum struct {
	n        big.Rat
	decimals int // the most of a number
}

// add adds d, which is written as the text.
func (s *sum) add(d decimal, written string) {
	var m big.Rat
	m.SetString(written)
	s.n.Add(&s.n, &m)
	s.decimals = max(s.decimals, len(d.digits)-d.exp)
}

// over returns s divided by n > 0, with ten decimals more than the numbers, the last one rounded.
func (s *sum) over(n int) string {
	var q big.Rat
	text := q.Quo(&s.n, big.NewRat(int64(n), 1)).FloatString(s.decimals + 10)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}
