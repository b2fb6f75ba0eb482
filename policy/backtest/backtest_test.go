package backtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/policy/backtest"
)

// answer returns the answer to a question about a refund.
func answer(n int, currency string, amount int, allowed bool) backtest.Answer {
	args := fmt.Sprintf(`{"order":%d,"currency":%q,"amount":%d}`, n, currency, amount)
	return backtest.Answer{
		Run:     fmt.Sprintf("run-%d", n),
		Call:    llm.ToolCall{Name: "refund", Args: []byte(args)},
		Effect:  pawl.EffectWrite,
		Allowed: allowed,
	}
}

// log5000 returns 5,000 answers. People allow refunds up to 100 in euros and dollars, and deny most
// of the rest: the planted denials.
func log5000() (answers []backtest.Answer) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		currency := []string{"EUR", "USD", "GBP"}[random.IntN(3)]
		amount := 1 + random.IntN(125)
		allowed := amount <= 100 && currency != "GBP" || amount > 100 && random.IntN(3) == 0
		answers = append(answers, answer(random.IntN(100000), currency, amount, allowed))
	}
	return answers
}

// Rules learned from 5,000 answers halve the questions and let no denied call through. A rule that
// lets a single one through is found.
func TestLearnedRulesPass(t *testing.T) {
	ctx := context.Background()
	answers := log5000()
	learned, err := backtest.Learn(ctx, answers, 0)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Rules{}
	for _, e := range learned {
		rules.Allow = append(rules.Allow, e.Entry)
	}
	want := []string{"refund(currency = EUR and amount <= 100)", "refund(currency = USD and amount <= 100)"}
	got := slices.Sorted(slices.Values(rules.Allow))
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	report, err := backtest.Test(ctx, rules, answers)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.LetThrough) != 0 || report.Refused != 0 {
		t.Errorf("%d denied calls are let through, %d allowed ones are refused", len(report.LetThrough), report.Refused)
	}
	if report.Left > report.Asked/2 || report.Left == 0 {
		t.Errorf("%d of %d questions are left", report.Left, report.Asked)
	}

	// One higher lets the cheapest denied call through.
	rules.Allow = []string{"refund(currency = EUR and amount <= 101)"}
	report, err = backtest.Test(ctx, rules, answers)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.LetThrough) == 0 || report.Entries[0].Denied != len(report.LetThrough) {
		t.Errorf("the rule lets denied calls through, and the report has %+v", report.Entries)
	}
	for _, i := range report.LetThrough {
		if answers[i].Allowed {
			t.Errorf("answer %d allowed the call", i)
		}
	}
}

// Nothing is proposed where equal calls were allowed and denied, or where there are too few.
func TestNothingIsProposed(t *testing.T) {
	var mixed, few []backtest.Answer
	for n := range 100 {
		mixed = append(mixed, answer(n%2, "EUR", 50, n%2 == 0), answer(n%2, "EUR", 50, n%2 == 1))
	}
	for n := range 19 {
		few = append(few, answer(n, "EUR", 50, true))
	}
	for name, answers := range map[string][]backtest.Answer{"mixed": mixed, "few": few} {
		learned, err := backtest.Learn(context.Background(), answers, 0)
		if err != nil || len(learned) > 0 {
			t.Errorf("%s: got %v, %v", name, learned, err)
		}
	}
}

// A rule that cannot be read, or names no tool, is an error.
func TestBadRules(t *testing.T) {
	for _, entry := range []string{"refund(amount ~ 3)", "refnud"} {
		_, err := backtest.Test(context.Background(), policy.Rules{Allow: []string{entry}}, log5000()[:5])
		if err == nil {
			t.Errorf("%s: want an error", entry)
		}
	}
}

func ExampleTest() {
	rules := policy.Rules{Allow: []string{"refund(amount <= 100)"}}
	report, err := backtest.Test(context.Background(), rules, []backtest.Answer{
		answer(1, "EUR", 30, true),
		answer(2, "EUR", 90, false),
		answer(3, "EUR", 300, false),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Left, "question left,", len(report.LetThrough), "let through that was denied")
	// Output:
	// 1 question left, 1 let through that was denied
}
