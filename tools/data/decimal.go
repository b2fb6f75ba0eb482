package data

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

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
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || s[len(s)-1] < '0' || s[len(s)-1] > '9' ||
		!json.Valid([]byte(s)) {
		return d, false
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	mantissa, d.neg = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if d.digits = strings.TrimRight(digits, "0"); d.digits == "" {
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
	if text = strings.TrimSuffix(strings.TrimRight(text, "0"), "."); text == "-0" {
		return "0"
	}
	return text
}
