package match_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/eval/internal/match"
)

// matchers has for each matcher the values that fit, and mutants of them that do not. absent stands
// for a value that is not there.
var matchers = []struct {
	name    string // the operator; "" is a literal
	matcher string
	fit     []string
	unfit   []string
}{
	{"", `1`, []string{`1`, `1.0`, `10e-1`}, []string{`true`, `"1"`, `2`, `null`, `[1]`, ``}},
	{"", `true`, []string{`true`}, []string{`1`, `false`, `"true"`}},
	{"", `null`, []string{`null`}, []string{``, `0`, `""`, `{}`}},
	{"", `"a"`, []string{`"a"`, `"\u0061"`}, []string{`"A"`, `"a "`, `["a"]`}},
	{"", `9007199254740993`, []string{`9007199254740993`}, []string{`9007199254740992`}},
	{"", `{"a":1,"b":[1,2]}`, []string{`{"b":[1,2.0],"a":1}`}, []string{`{"a":1}`, `{"a":1,"b":[2,1]}`, `{"a":1,"b":[1,2],"c":0}`}},
	{"", `{"$$x":1}`, []string{`{"$x":1}`}, []string{`{"$$x":1}`, `{"x":1}`}},
	{"", `[]`, []string{`[]`}, []string{`[1]`, `{}`, ``}},
	{"$regex", `{"$regex":"\\b70\\b"}`, []string{`"pay 70."`}, []string{`"pay 700."`, `70`, ``}},
	{"$contains", `{"$contains":"b"}`, []string{`"abc"`, `["a","b"]`}, []string{`"ac"`, `["abc"]`, ``}},
	{"$one_of", `{"$one_of":[1,{"$regex":"x"}]}`, []string{`1`, `"axa"`}, []string{`2`, `"a"`, ``}},
	{"$near", `{"$near":{"value":0.3,"within":0.1}}`, []string{`0.2`, `0.4`, `3e-1`}, []string{`0.41`, `"0.3"`, ``}},
	{"$any", `{"a":{"$any":true}}`, []string{`{"a":null}`, `{"a":[]}`}, []string{`{}`}},
	{"$absent", `{"a":{"$absent":true},"b":1}`, []string{`{"b":1}`}, []string{`{"a":null,"b":1}`}},
	{"$optional", `{"a":{"$optional":1}}`, []string{`{}`, `{"a":1}`}, []string{`{"a":2}`, `{"a":null}`}},
	{"$subset", `{"$subset":{"a":{"b":1}}}`, []string{`{"a":{"b":1,"c":2},"d":3}`}, []string{`{"a":{"c":2}}`, `{"a":{"b":2}}`}},
	{"$unordered", `{"$unordered":[1,{"$any":true}]}`, []string{`[1,2]`, `[2,1]`}, []string{`[2,3]`, `[1]`, `[1,2,3]`}},
	{"$schema", `{"$schema":{"type":"integer","minimum":3}}`, []string{`3`}, []string{`2`, `"3"`, ``}},
	{"$not", `{"$not":{"$contains":"x"}}`, []string{`"a"`, `1`}, []string{`"axe"`, ``}},
	{"$loose", `{"$loose":"New York, 'NY'"}`, []string{`"new-york \"ny\""`}, []string{`"new yor"`, `1`, ``}},
}

// TestMatchers matches values that fit and their mutants, for each operator.
func TestMatchers(t *testing.T) {
	var tested []string
	for _, row := range matchers {
		tested = append(tested, row.name)
		m, err := match.Parse(json.RawMessage(row.matcher))
		if err != nil {
			t.Errorf("%s: %v", row.matcher, err)
			continue
		}
		for _, value := range row.fit {
			if !m.Fits(json.RawMessage(value)) {
				t.Errorf("%s does not fit %s", value, row.matcher)
			}
		}
		for _, value := range row.unfit {
			if m.Fits(json.RawMessage(value)) {
				t.Errorf("%q fits %s", value, row.matcher)
			}
		}
	}
	for _, name := range match.Operators() {
		if !slices.Contains(tested, name) {
			t.Errorf("no row tests %s", name)
		}
	}
}

// TestWrongMatchers reports matchers that all values fit, or none, and mistakes.
func TestWrongMatchers(t *testing.T) {
	for _, row := range []struct{ matcher, want string }{
		{`{"$regex":"x*"}`, "cannot fail"},
		{`{"a":{"$regex":"("}}`, "/a/$regex: error parsing"},
		{`{"$regex":1}`, "want a text"},
		{`{"$contains":""}`, "cannot fail"},
		{`{"$one_of":[]}`, "no value fits"},
		{`{"$subset":{}}`, "every object fits"},
		{`{"$schema":{}}`, "cannot fail"},
		{`{"$schema":true}`, "cannot fail"},
		{`{"$near":{"value":1}}`, "want {value"},
		{`{"$regx":"a"}`, "did you mean $regex?"},
		{`{"$regex":"a","b":1}`, "stands alone"},
		{`{`, "EOF"},
	} {
		_, err := match.Parse(json.RawMessage(row.matcher))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.matcher, err, row.want)
		}
	}
}

// plans compares calls, written as their names, with plans.
var plans = []struct {
	order, extra string
	expect       string // w1 and w2 write, r1 and r2 read
	made         string
	good         bool
}{
	{match.InAnyOrder, match.ExtraReads, "w1 w2", "w2 w1", true},
	{match.InAnyOrder, match.ExtraReads, "w1", "r1 w1 r2", true},
	{match.InAnyOrder, match.ExtraReads, "w1", "w1 w2", false},
	{match.InAnyOrder, match.ExtraReads, "w1 w1", "w1", false},
	{match.InAnyOrder, match.ExtraAllow, "w1", "w1 w2", true},
	{match.InAnyOrder, match.ExtraForbid, "w1", "w1 r1", false},
	{match.InOrder, match.ExtraReads, "w1 w2", "w1 r1 w2", true},
	{match.InOrder, match.ExtraReads, "w1 w2", "w2 w1", false},
	{match.Exactly, match.ExtraAllow, "w1 w2", "w1 w2", true},
	{match.Exactly, match.ExtraAllow, "w1 w2", "w1 r1 w2", false},
	{match.Exactly, match.ExtraAllow, "w1", "w1 r1", false},
	{match.Exactly, match.ExtraReads, "", "r1", false},
}

// TestPlans compares plans with runs.
func TestPlans(t *testing.T) {
	for _, row := range plans {
		p := match.Plan{Order: row.order, Extra: row.extra}
		for _, name := range strings.Fields(row.expect) {
			p.Expect = append(p.Expect, match.Call{Tool: name})
		}
		got := p.Compare(made(row.made))
		if good(got) != row.good {
			t.Errorf("%s with extra %s: expected %q, made %q: got %+v", row.order, row.extra, row.expect, row.made, got)
		}
	}
}

// good reports whether a run did what its plan says.
func good(c *match.Comparison) bool { return len(c.Missing) == 0 && len(c.Extra) == 0 }

// made returns successful calls of these names.
func made(names string) (all []match.Made) {
	for _, name := range strings.Fields(names) {
		all = append(all, match.Made{Tool: name, Outcome: "ok", Reads: name[0] == 'r'})
	}
	return all
}

// TestMaximum pairs calls whose first partner is wanted by another expected call.
func TestMaximum(t *testing.T) {
	only, err := match.Parse(json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	p := match.Plan{
		Expect: []match.Call{{Tool: "pay"}, {Tool: "pay", Args: only}},
		Order:  match.InAnyOrder,
	}
	var calls []match.Made
	for n := 1; n <= 2; n++ {
		calls = append(calls, match.Made{Tool: "pay", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Outcome: "ok"})
	}
	if got := p.Compare(calls); !good(got) || got.F1 != 1 {
		t.Errorf("got %+v, want both paired", got)
	}
}

// TestAfter wants one call after another one, with the rest in any order.
func TestAfter(t *testing.T) {
	p := match.Plan{
		Expect: []match.Call{{Tool: "pay", After: "asked"}, {Tool: "ask", ID: "asked"}, {Tool: "log"}},
		Order:  match.InAnyOrder,
	}
	for names, want := range map[string]bool{"log ask pay": true, "ask pay log": true, "pay ask log": false} {
		if got := p.Compare(made(names)); good(got) != want {
			t.Errorf("%s: got %+v, want good %t", names, got, want)
		}
	}
}

// TestFailedCalls counts calls that were done, unless another outcome is expected.
func TestFailedCalls(t *testing.T) {
	failed := match.Made{Tool: "pay", Outcome: "error", Result: "no funds"}
	call := match.Call{Tool: "pay"}
	if call.Fits(failed) || !call.Asks(failed) {
		t.Errorf("a failed call counts as done, or not as asked for")
	}
	call.Outcome = "error"
	if !call.Fits(failed) {
		t.Errorf("a failed call does not fit the outcome error")
	}
}
