package data

import (
	"cmp"
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
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	s, d.neg = strings.CutPrefix(s, "-")
	whole, s := leadingDigits(s)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return decimal{}, false
	}
	var fraction string
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if fraction, s = leadingDigits(rest); fraction == "" {
			return decimal{}, false
		}
	}
	if s != "" {
		if s[0] != 'e' && s[0] != 'E' {
			return decimal{}, false
		}
		power, rest := leadingDigits(strings.TrimLeft(s[1:min(2, len(s))], "+-") + s[min(2, len(s)):])
		if power == "" || rest != "" {
			return decimal{}, false
		}
		n, err := strconv.Atoi(power)
		if err != nil || n > 1e6 {
			n = 1e6 // out of bounds in either direction, unless the number is 0
		}
		if d.exp = n; s[1] == '-' {
			d.exp = -n
		}
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	d.exp += len(whole) - (len(whole) + len(fraction) - len(digits))
	if d.digits = strings.TrimRight(digits, "0"); d.digits == "" {
		return decimal{}, true
	}
	if d.exp > maxExp || d.exp <= -maxExp {
		return decimal{}, false
	}
	return d, true
}

func leadingDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
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

// A sum adds decimals exactly. Its value is n / 10^scale. The zero value is 0.
type sum struct {
	n     big.Int
	scale int
}

func (s *sum) add(d decimal) {
	if d.digits == "" {
		return
	}
	var m big.Int
	m.SetString(d.digits, 10)
	if d.neg {
		m.Neg(&m)
	}
	scale := len(d.digits) - d.exp // may be negative: zeros follow
	switch {
	case scale > s.scale:
		s.n.Mul(&s.n, pow10(scale-s.scale))
		s.scale = scale
	case scale < s.scale:
		m.Mul(&m, pow10(s.scale-scale))
	}
	s.n.Add(&s.n, &m)
}

func (s *sum) String() string { return format(&s.n, s.scale) }

// over returns s divided by n > 0, with ten decimals more than s, the last one rounded.
func (s *sum) over(n int) string {
	const more = 10
	var num, rem big.Int
	num.Mul(&s.n, pow10(more))
	den := big.NewInt(int64(n))
	num.QuoRem(&num, den, &rem)
	if rem.Abs(&rem).Lsh(&rem, 1).Cmp(den) >= 0 {
		num.Add(&num, big.NewInt(int64(s.n.Sign())))
	}
	return format(&num, s.scale+more)
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// format writes n / 10^scale as a JSON number without unnecessary zeros.
func format(n *big.Int, scale int) string {
	digits, neg := strings.CutPrefix(n.String(), "-")
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		whole, fraction := digits[:len(digits)-scale], strings.TrimRight(digits[len(digits)-scale:], "0")
		if digits = whole; fraction != "" {
			digits = whole + "." + fraction
		}
	}
	if neg && digits != "0" {
		digits = "-" + digits
	}
	return digits
}
