package code

// number.go: the functions of Python for numbers.

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	starmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

func sum(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("sum takes a list and a start")
	}
	v, _, err := r.through(args[0])
	if err != nil {
		return nil, err
	}
	it := starlark.Iterate(v)
	if it == nil {
		return nil, fmt.Errorf("sum: %s is no list", args[0].Type())
	}
	defer it.Done()

	total := starlark.Value(starlark.MakeInt(0))
	if len(args) == 2 {
		total = args[1]
	}
	for e := starlark.Value(nil); it.Next(&e); {
		total, err = r.binary(syntax.PLUS, total, e)
		if err != nil {
			return nil, err
		}
	}
	return total, nil
}

func round(_ *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("round takes a number and a number of digits")
	}
	digits := 0
	whole := len(args) == 1 || args[1] == starlark.None
	if !whole {
		var err error
		digits, err = starlark.AsInt32(args[1])
		if err != nil || digits < -300 || digits > 300 {
			return nil, fmt.Errorf("round: the number of digits is no number, or too large")
		}
	}

	switch x := args[0].(type) {
	case starlark.Int:
		return roundInt(x, digits), nil
	case starlark.Float:
		if whole {
			// Half to even, as Python rounds.
			return starlark.NumberToInt(starlark.Float(math.RoundToEven(float64(x))))
		}
		if digits < 0 {
			return nil, fmt.Errorf("round: of a float with fewer than 0 digits is not here")
		}
		f, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'f', digits, 64), 64)
		return starlark.Float(f), err
	}
	return nil, fmt.Errorf("round: %s is no number", args[0].Type())
}

// roundInt rounds to a multiple of a power of ten if digits is less than 0. A half goes to the even
// multiple, as in Python.
func roundInt(x starlark.Int, digits int) starlark.Int {
	if digits >= 0 {
		return x
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	n, rest := new(big.Int).DivMod(x.BigInt(), ten, new(big.Int))
	half := rest.Lsh(rest, 1).Cmp(ten)
	if half > 0 || half == 0 && n.Bit(0) == 1 {
		n.Add(n, big.NewInt(1))
	}
	return starlark.MakeBigInt(n.Mul(n, ten))
}

func pow(r *embeddedRun, t *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) < 2 || len(args) > 3 {
		return nil, fmt.Errorf("pow takes two or three numbers")
	}
	x, ok1 := args[0].(starlark.Int)
	y, ok2 := args[1].(starlark.Int)
	// A negative exponent gives a float in Python too.
	if !ok1 || !ok2 || y.Sign() < 0 {
		if len(args) == 3 {
			return nil, fmt.Errorf("pow with three numbers takes whole ones")
		}
		return starlark.Call(t, starmath.Module.Members["pow"], args[:2], nil)
	}

	size := intBytes(x)
	if len(args) == 3 {
		mod, ok := args[2].(starlark.Int)
		if !ok || mod.Sign() == 0 {
			return nil, fmt.Errorf("pow: the third is a whole number other than 0")
		}
		return r.power(x, y, mod.BigInt(), max(size, intBytes(mod)))
	}
	return r.power(x, y, nil, size)
}

// power returns x to the power of y, modulo mod unless it is nil. size is the number of bytes of
// the larger of x and mod.
func (r *embeddedRun) power(x, y starlark.Int, mod *big.Int, size int64) (starlark.Value, error) {
	bits := int64(x.BigInt().BitLen())
	exponent, small := y.Int64()
	tooLong := !small || bits > 1 && exponent > 8*maxDigits/bits // of a result without mod
	if mod == nil && tooLong || size > 1024 {
		return nil, fmt.Errorf("pow: a number of more than %d bytes", maxDigits)
	}

	// With mod, no intermediate value is longer than mod.
	err := r.takes(size * min(max(exponent, 1), maxDigits))
	if mod == nil && err != nil {
		return nil, err
	}
	return starlark.MakeBigInt(new(big.Int).Exp(x.BigInt(), y.BigInt(), mod)), nil
}

func divMod(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("divmod takes two numbers")
	}
	q, err := r.binary(syntax.SLASHSLASH, args[0], args[1])
	if err != nil {
		return nil, err
	}
	m, err := r.binary(syntax.PERCENT, args[0], args[1])
	return starlark.Tuple{q, m}, err
}
