package agentfile

// limits.go: makes the limits of a run of the key limits.

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// limits returns the limits of the agent. The runtime takes 0 as no limit; in a file 0 is an error,
// except for the limits that have a value for none.
func (b *builder) limits(model llm.Model) (l pawl.Limits, err error) {
	from := &b.agent.Limits
	stated := reflect.ValueOf(from).Elem()
	fields := fieldsOf(stated.Type())
	for _, info := range pawl.LimitInfos() {
		i := fieldNamed(fields, string(info.Name))
		if i < 0 || stated.FieldByIndex(fields[i].Index).IsNil() {
			continue
		}

		number := stated.FieldByIndex(fields[i].Index).Elem()
		into := reflect.ValueOf(&l).Elem().FieldByName(strings.TrimPrefix(info.Setting, "Limits."))
		switch {
		case number.IsZero() && info.None != 0:
			into.SetInt(int64(info.None))
		case isPositive(number):
			into.Set(number.Convert(into.Type()))
		default:
			return l, badLimit(info, number)
		}
	}

	if n := from.Parallel; n != nil && *n <= 0 {
		return l, finding(CodeBadValue, "limits.parallel", "without it there are 10", "%d is not more than 0", *n)
	}
	l.AtLimit = atLimit(from.AtLimit, l)
	return l, b.priced(model)
}

// atLimit returns what the last request at a limit asks for. The default for an agent that executes
// no calls is to return them.
func atLimit(stated string, l pawl.Limits) pawl.AtLimit {
	switch {
	case stated == "answer":
		return pawl.AtLimitAnswer
	case stated == "return" || l.Rounds == pawl.NoRounds:
		return pawl.AtLimitReturn
	}
	return l.AtLimit
}

// isPositive reports whether a number is more than 0, and finite.
func isPositive(v reflect.Value) bool {
	if v.CanInt() {
		return v.Int() > 0
	}
	return v.Float() > 0 && !math.IsInf(v.Float(), 0)
}

// badLimit returns the finding for a limit that is too small.
func badLimit(info pawl.LimitInfo, v reflect.Value) error {
	shown := v.Interface()
	hint := "without it there is no such limit; 0 rounds execute no call"
	switch info.Unit {
	case "TIME":
		shown = time.Duration(v.Int())
		hint = "a time such as 90s or 10m; without it there is no limit"
	case "USD":
		hint = "a number of US dollars, such as 0.50; without it there is no limit"
	}

	path := "limits." + string(info.Name)
	if info.None != 0 {
		return finding(CodeBadValue, path, info.Help, "%v is less than 0", shown)
	}
	return finding(CodeBadValue, path, hint, "%v is not more than 0", shown)
}

// priced returns an error for a limit on cost without a known price, before anything is sent.
func (b *builder) priced(model llm.Model) error {
	if b.agent.Limits.Cost == nil {
		return nil
	}
	if p, ok := llm.As[llm.Pricer](model); ok {
		if _, known := p.MaxCost(new(llm.Request)); known {
			return nil
		}
	}
	named := b.agent.Model[0].Name
	name, id, _ := strings.Cut(named, ":")
	hint := fmt.Sprintf(`give it one in a catalogue of your own: `+
		`[{"provider":%q,"id":%q,"price":{"input":1.5,"output":6}}], dollars for a million tokens`, name, id)
	return finding(CodeUnavailable, "limits.cost", hint, "it cannot be enforced: the price of %s is not known", named)
}
