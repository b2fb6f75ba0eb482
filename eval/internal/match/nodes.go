package match

import (
	"context"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"github.com/pawl-go/pawl/internal/schema"
)

// literal fits a scalar that is equal to it.
type literal struct{ value any }

func (l literal) fits(value any, present bool) bool {
	if !present {
		return false
	}
	want, isNumber := rational(l.value)
	got, isToo := rational(value)
	if isNumber || isToo {
		return isNumber && isToo && want.Cmp(got) == 0
	}
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return l.value == value
}

// mostExponent bounds the numbers that are compared exactly. Larger ones would fill the memory.
const mostExponent = 400

// rational returns the value of a JSON number.
func rational(value any) (*big.Rat, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return nil, false
	}
	if f, err := number.Float64(); err != nil || f == 0 && strings.ContainsAny(string(number), "123456789") {
		return nil, false
	}
	if len(number) > mostExponent {
		return nil, false
	}
	return new(big.Rat).SetString(string(number))
}

// object fits an object whose fields all fit. An open one may have more.
type object struct {
	fields map[string]node
	open   bool
}

func (o object) fits(value any, present bool) bool {
	got, ok := value.(map[string]any)
	if !present || !ok {
		return false
	}
	for name, field := range o.fields {
		v, has := got[name]
		if !field.fits(v, has) {
			return false
		}
	}
	if o.open {
		return true
	}
	for name := range got {
		if o.fields[name] == nil {
			return false
		}
	}
	return true
}

// sequence fits a list whose values fit one after another.
type sequence []node

func (s sequence) fits(value any, present bool) bool {
	got, ok := value.([]any)
	if !present || !ok || len(got) != len(s) {
		return false
	}
	for i, n := range s {
		if !n.fits(got[i], true) {
			return false
		}
	}
	return true
}

// unordered fits a list whose values fit in some order.
type unordered []node

func (u unordered) fits(value any, present bool) bool {
	got, ok := value.([]any)
	if !present || !ok || len(got) != len(u) {
		return false
	}
	pairs := pair(len(u), len(got), func(i, j int) bool { return u[i].fits(got[j], true) })
	return paired(pairs) == len(u)
}

type present struct{}

func (present) fits(_ any, there bool) bool { return there }

type absent struct{}

func (absent) fits(_ any, there bool) bool { return !there }

// optional fits an absent value, and what its matcher fits.
type optional struct{ inner node }

func (o optional) fits(value any, present bool) bool {
	return !present || o.inner.fits(value, present)
}

// negated fits a value that is there and that its matcher does not fit.
type negated struct{ inner node }

func (n negated) fits(value any, present bool) bool {
	return present && !n.inner.fits(value, present)
}

type matching struct{ expression *regexp.Regexp }

func (m matching) fits(value any, present bool) bool {
	text, ok := value.(string)
	return present && ok && m.expression.MatchString(text)
}

// containing fits a text with its text in it, and a list with a value that its matcher fits.
type containing struct {
	text  string
	inner node
}

func (c containing) fits(value any, present bool) bool {
	switch value := value.(type) {
	case string:
		return present && c.text != "" && strings.Contains(value, c.text)
	case []any:
		for _, v := range value {
			if c.inner.fits(v, true) {
				return true
			}
		}
	}
	return false
}

type either []node

func (e either) fits(value any, present bool) bool {
	for _, n := range e {
		if n.fits(value, present) {
			return true
		}
	}
	return false
}

type near struct{ value, within *big.Rat }

func (n near) fits(value any, present bool) bool {
	got, ok := rational(value)
	if !present || !ok {
		return false
	}
	distance := new(big.Rat).Sub(got, n.value)
	return distance.Abs(distance).Cmp(n.within) <= 0
}

type conforming struct{ schema *schema.Schema }

func (c conforming) fits(value any, present bool) bool {
	if !present {
		return false
	}
	text, err := json.Marshal(value)
	if err != nil {
		return false
	}
	_, _, faults, err := c.schema.Read(context.Background(), text, false)
	return err == nil && len(faults) == 0
}

// loose fits a text that is equal after Loose.
type loose string

func (l loose) fits(value any, present bool) bool {
	text, ok := value.(string)
	return present && ok && Loose(text) == string(l)
}

// Loose returns a text in lower case, without the characters that $loose ignores, and with one
// kind of quotation marks.
func Loose(text string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case strings.ContainsRune(" ,./-_*^", r):
		case r == '\'':
			out.WriteRune('"')
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
