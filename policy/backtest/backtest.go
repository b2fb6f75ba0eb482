// Package backtest compares approval rules with the answers of people. Test says what rules would
// have allowed of what people denied, which must be nothing. Learn proposes rules from answers.
//
//	rules := policy.Rules{Allow: []string{"refund(amount <= 100)"}}
//	report, err := backtest.Test(ctx, rules, answers)
//	…
//	if len(report.LetThrough) > 0 { … }
package backtest

// backtest.go: Test, and what it reports.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
)

// Answer is the answer of a person to the question whether a call may run.
type Answer struct {
	// Run is the ID of the run. Empty means unknown.
	Run string
	// Key is the key of the call. Empty means unknown.
	Key llm.Key
	// Call is the call.
	Call llm.ToolCall
	// Effect is the effect of its tool.
	Effect pawl.Effect
	// Allowed means that the call was approved unchanged.
	Allowed bool

	args map[string]json.RawMessage // of the call, by their names: for Learn
}

// tool returns the tool of the call, as rules need it.
func (a *Answer) tool() *pawl.Tool { return &pawl.Tool{Name: a.Call.Name, Effect: a.Effect} }

// Report says what rules would have done with answered questions.
type Report struct {
	// Asked is the number of questions.
	Asked int `json:"asked"`
	// Left is the number of questions that people would still have been asked.
	Left int `json:"left"`
	// Refused is the number of calls that people allowed and the rules deny.
	Refused int `json:"refused"`
	// Entries has the entries of Allow, and what each alone would have allowed.
	Entries []Entry `json:"entries"`
	// LetThrough has the indexes of the answers that denied a call which the rules allow.
	LetThrough []int `json:"let_through"`
}

// Entry is what one entry of Allow would have allowed. Deny and Ask of the rules count too.
type Entry struct {
	// Entry is the rule.
	Entry string `json:"entry"`
	// Allowed is the number of calls that people allowed, too.
	Allowed int `json:"allowed"`
	// Denied is the number of calls that people denied.
	Denied int `json:"denied"`
}

// Test returns what the rules would have done with the answered questions. The error is one of a
// rule that cannot be read.
func Test(ctx context.Context, rules policy.Rules, answers []Answer) (*Report, error) {
	if err := check(rules, answers); err != nil {
		return nil, err
	}

	report := &Report{Asked: len(answers), Entries: []Entry{}, LetThrough: []int{}}
	for i := range answers {
		a := &answers[i]
		verdict, err := verdictOf(ctx, rules, a)
		switch {
		case err != nil:
			return nil, err
		case verdict == pawl.VerdictAsk:
			report.Left++
		case verdict == pawl.VerdictAllow && !a.Allowed:
			report.LetThrough = append(report.LetThrough, i)
		case verdict == pawl.VerdictDeny && a.Allowed:
			report.Refused++
		}
	}
	for _, entry := range rules.Allow {
		one, err := alone(ctx, rules, entry, answers)
		if err != nil {
			return nil, err
		}
		report.Entries = append(report.Entries, one)
	}
	return report, nil
}

// check returns the first entry that cannot be read or that is about no tool of the answers.
func check(rules policy.Rules, answers []Answer) error {
	known := map[string]bool{}
	var tools []*pawl.Tool
	for i := range answers {
		if name := answers[i].Call.Name; !known[name] {
			known[name] = true
			tools = append(tools, answers[i].tool())
		}
	}
	return rules.Check(tools)
}

// alone returns what one entry of Allow would have allowed.
func alone(ctx context.Context, rules policy.Rules, entry string, answers []Answer) (Entry, error) {
	rules.Allow = []string{entry}
	rules.Default = pawl.VerdictAsk
	one := Entry{Entry: entry}
	for i := range answers {
		verdict, err := verdictOf(ctx, rules, &answers[i])
		switch {
		case err != nil:
			return one, err
		case verdict != pawl.VerdictAllow:
		case answers[i].Allowed:
			one.Allowed++
		default:
			one.Denied++
		}
	}
	return one, nil
}

// verdictOf returns the verdict of the rules on the call of a. The origin of values is not known,
// so that Rules.Flow does not count.
func verdictOf(ctx context.Context, rules policy.Rules, a *Answer) (pawl.Verdict, error) {
	rules.Flow = nil
	got, err := rules.Approve(ctx, a.Call, a.tool())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.Call.Name, err)
	}
	return got.Verdict, nil
}
