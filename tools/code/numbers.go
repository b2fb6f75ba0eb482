package code

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// pythonFloat formats a float as Python does.
func pythonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func roundEven(f float64) float64 { return math.RoundToEven(f) }

// halfEven returns the integer nearest to f; of two it returns the even one.
func halfEven(f *big.Rat) string {
	n := new(big.Int).Div(f.Num(), f.Denom()) // rounds towards minus infinity
	rest := new(big.Rat).Sub(f, new(big.Rat).SetInt(n))
	switch rest.Cmp(big.NewRat(1, 2)) {
	case 1:
		n.Add(n, big.NewInt(1))
	case 0:
		if n.Bit(0) == 1 {
			n.Add(n, big.NewInt(1))
		}
	}
	return n.String()
}
