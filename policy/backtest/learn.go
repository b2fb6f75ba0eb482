package backtest

// learn.go: Learn, which proposes rules from answers.

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/policy"
)

// Learn proposes entries of policy.Rules.Allow from answers: for each tool the entries that cover
// most calls that people allowed and no call that they denied. Each entry covers at least so many
// calls that no entry before it covers; less than 1 means 20. An entry has an upper bound for a
// number, a fixed value, or both, and both are values that people have allowed. A tool whose calls
// have no arguments is an entry by its name.
//
// The entries are proposals: a person decides. What no person has denied yet, they may allow.
func Learn(ctx context.Context, answers []Answer, least int) ([]Entry, error) {
	if least < 1 {
		least = 20
	}
	byTool := map[string][]Answer{}
	for _, a := range answers {
		a.args = jsonform.Leaves(a.Call.Args)
		byTool[a.Call.Name] = append(byTool[a.Call.Name], a)
	}
	out := []Entry{}
	for _, name := range slices.Sorted(maps.Keys(byTool)) {
		more, err := learnTool(ctx, name, byTool[name], least)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// learnTool proposes entries for one tool: the best one, then the best one for what is left.
func learnTool(ctx context.Context, name string, answers []Answer, least int) (out []Entry, err error) {
	var denied, left []Answer
	for _, a := range answers {
		if a.Allowed {
			left = append(left, a)
		} else {
			denied = append(denied, a)
		}
	}
	for len(left) >= least {
		best := Entry{}
		for _, entry := range candidates(name, left, denied, least) {
			one, err := alone(ctx, policy.Rules{}, entry, slices.Concat(left, denied))
			if err != nil {
				return nil, err
			}
			if one.Denied == 0 && one.Allowed > best.Allowed {
				best = one
			}
		}
		if best.Allowed < least {
			break
		}
		out = append(out, best)
		left = slices.DeleteFunc(left, func(a Answer) bool {
			one, err := alone(ctx, policy.Rules{}, best.Entry, []Answer{a})
			return err == nil && one.Allowed == 1
		})
	}
	return out, nil
}

// candidates returns entries that may cover allowed calls, the most plausible first.
func candidates(name string, allowed, denied []Answer, least int) (out []string) {
	if !slices.ContainsFunc(slices.Concat(allowed, denied), func(a Answer) bool { return len(a.args) > 0 }) {
		return []string{name} // its calls have no arguments
	}
	out = bounds(name, "", allowed, denied)

	count := map[string]int{}
	for _, a := range allowed {
		for arg, value := range a.args {
			if fixed, ok := fixedValue(value); ok {
				count[arg+" = "+fixed]++
			}
		}
	}
	for _, condition := range slices.Sorted(maps.Keys(count)) {
		if count[condition] < least {
			continue
		}
		out = append(out, name+"("+condition+")")
		out = append(out, bounds(name, condition, meeting(condition, allowed), meeting(condition, denied))...)
	}
	return out
}

// meeting returns the answers whose calls have the fixed value of a condition.
func meeting(condition string, answers []Answer) (out []Answer) {
	arg, value, _ := strings.Cut(condition, " = ")
	for _, a := range answers {
		if fixed, ok := fixedValue(a.args[arg]); ok && fixed == value {
			out = append(out, a)
		}
	}
	return out
}

// bounds returns entries with an upper bound for each number: the highest allowed value below every
// denied one. Numbers with few values come first, because a number that is always another one
// rather names something than measures it.
func bounds(name, condition string, allowed, denied []Answer) (out []string) {
	numbers := map[string]map[float64]string{}
	for _, a := range allowed {
		for arg, value := range a.args {
			number, ok := jsonform.Number(value)
			if !ok {
				continue
			}
			if numbers[arg] == nil {
				numbers[arg] = map[float64]string{}
			}
			numbers[arg][number] = string(value)
		}
	}

	args := slices.Sorted(maps.Keys(numbers))
	slices.SortStableFunc(args, func(a, b string) int { return cmp.Compare(len(numbers[a]), len(numbers[b])) })
	for _, arg := range args {
		if bound := highest(arg, numbers[arg], denied); bound != "" {
			parts := []string{arg + " <= " + bound}
			if condition != "" {
				parts = append([]string{condition}, parts...)
			}
			out = append(out, name+"("+strings.Join(parts, " and ")+")")
		}
	}
	return out
}

// highest returns the highest of the allowed values that is below every denied value. Empty means
// none.
func highest(arg string, allowed map[float64]string, denied []Answer) string {
	limit := math.Inf(1)
	for _, a := range denied {
		number, ok := jsonform.Number(a.args[arg])
		if ok {
			limit = min(limit, number)
		}
	}

	tooHigh := func(v float64) bool { return v >= limit }
	below := slices.DeleteFunc(slices.Collect(maps.Keys(allowed)), tooHigh)
	if len(below) == 0 {
		return ""
	}
	return allowed[slices.Max(below)]
}

// fixedValue returns a text or a truth value as a condition writes it. False means that it has no
// such form.
func fixedValue(value json.RawMessage) (string, bool) {
	if string(value) == "true" || string(value) == "false" {
		return string(value), true
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return "", false
	}
	plain := text != "" && len(text) <= 60 && text == strings.TrimSpace(text)
	if !plain || strings.Contains(text, " and ") || strings.ContainsAny(text, "()\n") {
		return "", false
	}
	return text, true
}
