package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestClarity gives each rule sources that break it, and sources that look alike and follow it.
func TestClarity(t *testing.T) {
	for r, samples := range map[rule][]clarityCase{
		ruleHeader: {
			{"error", "if err := f(); err != nil {\n}", 0},
			{"assigned error", "if err = f(); err != nil {\n}", 0},
			{"value in a map", "if v, ok := m[k]; ok {\n}", 0},
			{"field that is read", "if x.n = f(); x.n > 0 {\n}", 0},
			{"value that is switched over", "switch x := f(); x {\n}", 0},
			{"type switch", "switch x := f(); x.(type) {\n}", 0},
			{"loop", "for i := 0; i < n; i++ {\n}", 0},
			{"lock", "if mu.Lock(); n > 0 {\n}", 1},
			{"counter", "if n++; n > 0 {\n}", 1},
			{"sum", "if n += x; n > 0 {\n}", 1},
			{"send", "if c <- x; n > 0 {\n}", 1},
			{"value that is not read", "if x = f(); n > 0 {\n}", 1},
			{"field that is not read", "if x.n = f(); x.m > 0 {\n}", 1},
			{"two assignments", "if a, b = f(), g(); a > b {\n}", 1},
			{"switch without a tag", "switch x := f(); {\ncase x > 0:\n}", 1},
			{"switch over another value", "switch x := f(); n {\ncase x:\n}", 1},
			{"type switch over another value", "switch x = f(); v.(type) {\n}", 1},
		},
		rulePacked: {
			{"results", "a, b, c = f()", 0},
			{"rotation", "a, b, c = b, c, a", 0},
			{"elements", "m[i], m[j], m[k] = m[k], m[i], m[j]", 0},
			{"pair", "a, b = 1, 2", 0},
			{"three", "a, b, c = 1, 2, 3", 1},
			{"three new", "a, b, c := x, y, z", 1},
			{"same names on both sides", "a, b, c := a, b, c", 1},
			{"fields", "x.a, x.b, x.c = 1, 2, 3", 1},
		},
		rulePair: {
			{"results", "a, b = f()", 0},
			{"swap", "a, b = b, a", 0},
			{"elements", "m[i], m[j] = m[j], m[i]", 0},
			{"pair", "a, b = 1, 2", 1},
			{"new pair", "low, high := 0, n", 1},
			{"three", "a, b, c = 1, 2, 3", 0},
		},
		ruleCondition: {
			{"two operators", "if a && b || c {\n}", 0},
			{"three operators", "if a && b || c && d {\n}", 1},
			{"loop", "for a && b && c && d {\n}", 1},
			{"case", "switch {\ncase a && b && c && d:\n}", 1},
			{"cases", "switch {\ncase a && b, c && d:\n}", 0},
			{"result", "x()\nreturn a && b && c && d", 1},
			{"value", "ok := a && b && c && d", 1},
			{"declaration", "var ok = a && b && c && d", 1},
			{"argument", "f(a && b && c && d)", 1},
			{"in a function literal", "f(func() bool { return a && b }, func() bool { return c && d || e })", 0},
			{"literal predicate", "ok := func() bool { return a && b && c && d }", 1},
			{"predicate", "return a && b && c && d", 0},
		},
		ruleComplexity: {
			{"sixteen branches", strings.Repeat("if a {\n}\n", maxComplexity), 1},
			{"fifteen branches", strings.Repeat("if a {\n}\n", maxComplexity-1), 0},
			{"loops", strings.Repeat("for a {\n}\nfor range a {\n}\n", 8), 1},
			{"operators", "ok(" + strings.Repeat("a && b || ", 8) + "c)", 1},
			{"cases", "switch {\n" + strings.Repeat("case a:\n", 15) + "}", 1},
			{"default", "switch {\n" + strings.Repeat("case a:\n", 14) + "default:\n}", 0},
			{"channels", "select {\n" + strings.Repeat("case <-a:\n", 14) + "default:\n}", 0},
		},
		ruleLong: {
			{"at the limit", strings.Repeat("x()\n", maxFunction-2), 0},
			{"over", strings.Repeat("x()\n", maxFunction-1), 1},
			{"with blank lines and comments", strings.Repeat("x()\n\n// Why.\n", maxFunction-2), 0},
		},
		ruleRun: {
			{"at the limit", strings.Repeat("x()\n", maxRun), 0},
			{"over", strings.Repeat("x()\n", maxRun+1), 1},
			{"blank line", strings.Repeat("x()\n", maxRun) + "\nx()", 0},
			{"comment", strings.Repeat("x()\n", maxRun) + "// Why.\nx()", 0},
			{"comment behind code", strings.Repeat("x()\n", maxRun) + "x() // why", 0},
			{"rows of a table", "x := []int{\n" + strings.Repeat("1,\n", maxRun) + "}", 0},
			{"string of many lines", "x := `\n" + strings.Repeat("a\n\n", maxRun) + "`", 1},
		},
	} {
		for _, tt := range samples {
			t.Run(fmt.Sprintf("%s/%s", r, tt.name), func(t *testing.T) {
				head := "package x\n\nfunc f() {\n"
				if r == ruleCondition && tt.name != "predicate" {
					head += "x()\n"
				}
				tt.check(t, r, head+tt.src+"\n}\n")
			})
		}
	}
}

// TestClarityOfDeclarations is TestClarity for what stands outside of functions.
func TestClarityOfDeclarations(t *testing.T) {
	wide := strings.Repeat("x", codeColumns)
	for r, samples := range map[rule][]clarityCase{
		ruleField: {
			{"comment above", "type T struct {\n// A is a.\nA int\n}", 0},
			{"comment behind", "type T struct {\nA int // a\n}", 0},
			{"none", "type T struct {\nA, B int\nC int\n}", 3},
			{"unexported field", "type T struct {\na int\n}", 0},
			{"unexported type", "type t struct {\nA int\n}", 0},
			{"embedded", "type T struct {\nU\n}", 0},
		},
		ruleLetter: {
			{"point", "type point struct{ x, y int }", 0},
			{"three fields", "type t struct{ a, b, c int }", 0},
			{"four fields", "type t struct{ a, word, other, more int }", 1},
			{"blank", "type t struct{ _, word, other, more int }", 0},
		},
		ruleAnonymous: {
			{"named", "type t interface{ M() }", 0},
			{"named in a function", "func f() {\ntype t interface{ M() }\n}", 0},
			{"any", "var x interface{}", 0},
			{"type set", "func f[T interface{ int | string }]() {}", 0},
			{"assertion", "var _, ok = x.(interface{ M() })", 1},
			{"field", "type t struct {\na interface{ M() }\n}", 1},
		},
		ruleVague: {
			{"method", "func (t) put() {}", 1},
			{"longer name", "func (t) putBack() {}", 0},
			{"function", "func put() {}", 0},
			{"exported", "func (t) Put() {}", 0},
		},
		ruleWide: {
			{"at the limit", "var " + wide[:codeColumns-8] + " int", 0},
			{"over", "var " + wide[:codeColumns-7] + " int", 1},
			{"tab", "var (\n\t" + wide[:codeColumns-7] + " int\n)", 1},
			{"string", "var a = `" + wide + "`", 1},
			{"comment", "// " + wide, 0},
		},
	} {
		for _, tt := range samples {
			t.Run(fmt.Sprintf("%s/%s", r, tt.name), func(t *testing.T) {
				tt.check(t, r, "package x\n\n"+tt.src+"\n")
			})
		}
	}

	for path, want := range map[string]int{"x/a.go": 1, "internal/x/a.go": 0, "x/internal/a.go": 0} {
		c := clarityOf(parseFile(t, path, "package x\n\ntype T struct {\n\tA int\n}\n"))
		if got := len(c.over(ruleField, -1)); got != want {
			t.Errorf("%s: %d fields without a comment, want %d", path, got, want)
		}
	}
	if c := clarityOf(parseFile(t, "x.go", "package main\n\ntype T struct {\n\tA int\n}\n")); len(c.findings) > 0 {
		t.Error("the fields of a command need comments")
	}
	made := clarityOf(parseFile(t, "x.go", "// Code generated by a test. DO NOT EDIT.\n\npackage x\n\nfunc (t) put() {}\n"))
	if len(made.findings) > 0 {
		t.Error("a generated file has findings")
	}
}

type clarityCase struct {
	name string
	src  string
	want int
}

func (c clarityCase) check(t *testing.T, r rule, src string) {
	t.Helper()
	found := clarityOf(parseFile(t, "x.go", src)).over(r, -1)
	if len(found) != c.want {
		t.Errorf("got %d findings, want %d: %q in\n%s", len(found), c.want, placesOf(found), src)
	}
}

// TestPredicates expects that a long condition with a name is counted apart.
func TestPredicates(t *testing.T) {
	c := clarityOf(parseFile(t, "x.go", "package x\n\nfunc named() bool { return a && b && c && d }\n"))
	if len(c.predicates) != 1 || len(c.findings) != 0 {
		t.Errorf("got %d predicates and the findings %q, want one predicate", len(c.predicates), placesOf(c.findings))
	}
}

// TestParagraphs counts what stands between the lines of code.
func TestParagraphs(t *testing.T) {
	body := strings.Repeat("\tx()\n", bigFunction)
	for _, tt := range []struct {
		name, body string
		want       clarity
	}{
		{"small", body[5:] + "\n\t// Why.\n", clarity{bodyLines: bigFunction + 1, bodyComments: 1}},
		{"dense", body, clarity{big: 1, bodyLines: bigFunction}},
		{"blank line", body + "\n", clarity{big: 1, bigBlank: 1, bodyLines: bigFunction + 1}},
		{"comment", body + "\t// Why.\n", clarity{big: 1, bigCommented: 1, bodyLines: bigFunction + 1, bodyComments: 1}},
		{"block comment", body + "\t/* Why:\n\n\t   so. */\n", clarity{big: 1, bigCommented: 1, bodyLines: bigFunction + 3, bodyComments: 3}},
		{"comment behind code", body + "\tx() // why\n", clarity{big: 1, bodyLines: bigFunction + 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clarityOf(parseFile(t, "x.go", "package x\n\nfunc f() {\n"+tt.body+"}\n"))
			got := clarity{big: c.big, bigBlank: c.bigBlank, bigCommented: c.bigCommented, bodyLines: c.bodyLines,
				bodyComments: c.bodyComments}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestWaivers(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		findings  int
		want      string // part of the only fault; empty means no fault
	}{
		{"statement", "func f() {\n\t//house:packed a reason\n\ta, b, c = 1, 2, 3\n}", 0, ""},
		{"before a comment", "func f() {\n\t//house:packed a reason\n\n\t// Why.\n\ta, b, c = 1, 2, 3\n}", 0, ""},
		{"function", "// put is vague.\n//\n//house:vague a reason\nfunc (t) put() {}", 0, ""},
		{"another place", "func f() {\n\t//house:packed a reason\n\tx()\n\ta, b, c = 1, 2, 3\n}", 1, "excuses nothing"},
		{"behind the place", "func f() {\n\ta, b, c = 1, 2, 3 //house:packed a reason\n}", 1, "excuses nothing"},
		{"another rule", "func f() {\n\t//house:pair a reason\n\ta, b, c = 1, 2, 3\n}", 1, "excuses nothing"},
		{"no reason", "func f() {\n\t//house:packed\n\ta, b, c = 1, 2, 3\n}", 0, "gives no reason"},
		{"no rule", "func f() {\n\t//house:packing a reason\n\ta, b, c = 1, 2, 3\n}", 1, `no rule is named "packing"`},
		{"prose", "// A waiver begins with house:packed.\nfunc f() {}", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clarityOf(parseFile(t, "x.go", "package x\n\n"+tt.src+"\n"))
			if len(c.findings) != tt.findings {
				t.Errorf("got the findings %q, want %d", placesOf(c.findings), tt.findings)
			}
			wantComplaint(t, checkWaivers(c), tt.want)
		})
	}

	many := &clarity{waivers: slices.Repeat([]*waiver{{}}, maxWaivers+1)}
	wantComplaint(t, checkWaivers(many), "21 waivers, at most 20")
}

// TestProduct expects that the packages which the command links are the product.
func TestProduct(t *testing.T) {
	product := theTree(t).product()
	for dir, want := range map[string]bool{
		".": true, "llm": true, "cmd/pawl": true, "server/client": true, "pawltest": true,
		"store/storetest": false, "durable/durabletest": false, "internal/test/soak": false, "examples/guide": false,
	} {
		if product[dir] != want {
			t.Errorf("%s is part of the product: %t, want %t", dir, product[dir], want)
		}
	}
}
