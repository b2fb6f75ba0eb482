package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
)

// Conditions on arguments: y means that the entry matches the call as allow and as deny, n as
// neither, and u (unsure) as deny alone. Each row with n is the control of a row with y.
func TestArguments(t *testing.T) {
	for _, test := range []struct{ condition, args, want string }{
		{"path in notes/**", `{"path":"notes/a/b.txt"}`, "y"},
		{"path in notes/**", `{"path":"./notes//a.txt"}`, "y"},
		{"path in notes/**", `{"path":"notes"}`, "y"},
		{"path in notes/**", `{"path":"notesx/a"}`, "n"},
		{"path in notes/**", `{"path":"notes/../agent.yaml"}`, "n"},
		{"path in notes/**", `{"path":"notes/../../x"}`, "u"},
		{"path in notes/**", `{"path":"/srv/notes/a"}`, "u"},
		{"path in notes/**", `{"path":"~/notes/a"}`, "u"},
		{"path in notes/**", `{"path":"notes\\..\\x"}`, "u"},
		{"path in notes/**", `{"path":"NOTES/a"}`, "u"},
		{"path in notes/**", `{"path":7}`, "u"},
		{"path in notes/**", `{"path":null}`, "u"},
		{"path in notes/**", `{"path":""}`, "u"},
		{"path in notes/**", `{}`, "n"},
		{"path in notes/**", ``, "n"},
		{"path in notes/**", `{"path":"notes/a","path":"x"}`, "u"},
		{"path in notes/**", `{"path":"notes/a","PATH":"x"}`, "u"},
		{"path in notes/**", `{"Path":"notes/a"}`, "u"},
		{"path in **/*.md", `{"path":"a/b/c.md"}`, "y"},
		{"path in **/*.md", `{"path":"c.md"}`, "y"},
		{"path in **/*.md", `{"path":"c.mdx"}`, "n"},
		{"path in *", `{"path":"a/b"}`, "n"},
		{"path in a/**/b/**/c", `{"path":"a/x/b/b/y/b/c"}`, "y"},
		{"path in a/**/b/**/c", `{"path":"a/x/y/c"}`, "n"},
		{"path in /srv/**", `{"path":"/srv/x"}`, "y"},
		{"path in /srv/**", `{"path":"/srv/../etc/x"}`, "n"},
		{"path in notes/*", `{"path":["notes/a","notes/b"]}`, "y"},
		{"path in notes/*", `{"path":["notes/a","x"]}`, "u"},
		{"path in notes/*", `{"path":["x"]}`, "n"},
		{"path in notes/*", `{"path":[]}`, "n"},
		{"url host *.example.com", `{"url":"https://a.example.com/x"}`, "y"},
		{"url host *.example.com", `{"url":"https://A.EXAMPLE.com.:443/"}`, "y"},
		{"url host *.example.com", `{"url":"https://example.com/"}`, "n"},
		{"url host *.example.com", `{"url":"https://evil.com/?x=.example.com"}`, "n"},
		{"url host *.example.com", `{"url":"https://evil.com#a.example.com"}`, "n"},
		{"url host *.example.com", `{"url":"https://a.example.com.evil.com/"}`, "n"},
		{"url host *.example.com", `{"url":"https://a.example.com@evil.com/"}`, "u"},
		{"url host *.example.com", `{"url":"https://evil.com\\@a.example.com/"}`, "u"},
		{"url host *.example.com", `{"url":"https://evil.com\u3002x.example.com/"}`, "u"},
		{"url host *.example.com", `{"url":"a.example.com/x"}`, "u"},
		{"url host *.example.com", `{"url":"wss://a.example.com/x"}`, "y"},
		{"url host *.example.com", `{"url":"HTTP://a.example.com/x"}`, "y"},
		{"url host *.example.com", `{"url":"file://a.example.com/etc/passwd"}`, "u"},
		{"url host *.example.com", `{"url":"javascript://a.example.com/%0aalert(1)"}`, "u"},
		{"url host *.example.com", `{"url":"//a.example.com/x"}`, "u"},
		{"url host *.example.com", `{"url":"file://evil.com/x"}`, "n"},
		{"url host example.com:8443", `{"url":"https://example.com:8443/"}`, "y"},
		{"url host example.com:8443", `{"url":"https://example.com/"}`, "n"},
		{"url host 10.0.0.0/8", `{"url":"http://10.1.2.3/"}`, "y"},
		{"url host 10.0.0.0/8", `{"url":"http://0x0a.1.2.3/"}`, "u"},
		{"url host 10.0.0.0/8", `{"url":"http://11.1.2.3/"}`, "n"},
		{"url host 10.0.0.0/8", `{"url":"http://167837955/"}`, "u"},
		{"amount <= 100", `{"amount":100}`, "y"},
		{"amount <= 100", `{"amount":1e2}`, "y"},
		{"amount <= 100", `{"amount":100.01}`, "n"},
		{"amount <= 100", `{"amount":"5"}`, "u"},
		{"amount <= 100", `{"amount":-1e999}`, "u"},
		{"amount > 100", `{"amount":101}`, "y"},
		{"amount > 100", `{"amount":100.01}`, "y"},
		{"amount > 100", `{"amount":100.0000000000000000000001}`, "u"},
		{"amount <= 100", `{"amount":100.0000000000000000000001}`, "u"},
		{"amount <= 9007199254740992", `{"amount":9007199254740993}`, "u"},
		{"amount <= 9007199254740992", `{"amount":9007199254740992}`, "y"},
		{"amount <= 9007199254740992", `{"amount":9007199254740994}`, "n"},
		{"amount > 0", `{"amount":1e-500}`, "u"},
		{"amount < 1", `{"amount":0.` + strings.Repeat("1", 500) + `}`, "u"},
		{"amount < 1", `{"amount":0.` + strings.Repeat("1", 300) + `}`, "y"},
		{"amount >= 0.1", `{"amount":0.1}`, "y"},
		{"amount = 1e999", `{"amount":10e998}`, "u"},
		{"amount >= 100", `{"amount":99}`, "n"},
		{"amount < 100", `{"amount":true}`, "u"},
		{"order.total < 10", `{"order":{"total":9}}`, "y"},
		{"order.total < 10", `{"order":{"total":10}}`, "n"},
		{"order.total < 10", `{"order":9}`, "u"},
		{"order.total < 10", `{"order":{}}`, "n"},
		{"mode = dry run", `{"mode":"dry run"}`, "y"},
		{"mode = dry run", `{"mode":"Dry Run"}`, "u"},
		{"mode = dry run", `{"mode":"wet"}`, "n"},
		{"force = true", `{"force":true}`, "y"},
		{"force = true", `{"force":false}`, "n"},
		{"force = true", `{"force":{}}`, "u"},
		{"amount <= 100 and currency = EUR", `{"amount":7,"currency":"EUR"}`, "y"},
		{"amount <= 100 and currency = EUR", `{"amount":7,"currency":"USD"}`, "n"},
		{"amount <= 100 and currency = EUR", `{"amount":7}`, "n"},
		{"amount <= 100 and currency = EUR", `{"amount":"7","currency":"EUR"}`, "u"},
	} {
		tool := says("act", pawl.EffectWrite)
		e := []string{"a*(" + test.condition + ")"}
		verdict := func(r policy.Rules) pawl.Verdict {
			a, err := r.Approve(t.Context(), llm.ToolCall{Name: "act", Args: json.RawMessage(test.args)}, tool)
			if err != nil {
				t.Fatal(err)
			}
			return a.Verdict
		}
		allows := verdict(policy.Rules{Allow: e, Default: pawl.VerdictAsk}) == pawl.VerdictAllow
		denies := verdict(policy.Rules{Deny: e, Default: pawl.VerdictAllow}) == pawl.VerdictDeny
		asks := verdict(policy.Rules{Ask: e, Default: pawl.VerdictAllow}) == pawl.VerdictAsk
		if allows != (test.want == "y") || denies != (test.want != "n") || asks != denies {
			t.Errorf("(%s) and %s: allows %t, denies %t, asks %t; want %s", test.condition, test.args, allows, denies, asks, test.want)
		}
		both := policy.Rules{Allow: e, Deny: e, Default: pawl.VerdictAllow}
		if denied := verdict(both) == pawl.VerdictDeny; denied != denies {
			t.Errorf("(%s) and %s: allowed and denied at once: denied %t", test.condition, test.args, denied)
		}
	}
}

// A condition that cannot be read, or that is about no argument, ends a run before it begins.
func TestWrongConditions(t *testing.T) {
	tool := says("pay", pawl.EffectWrite)
	tool.Input = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"}}}`)
	for entry, want := range map[string]string{
		"pay(amount <= 100": "does not end in )", "pay()": "an argument, an operator and a value", "pay(amount ~ 3)": `"~" is no operator`,
		"pay(amount <= much)": "invalid syntax", "pay(amount <= 1/3)": "invalid syntax", "pay(amount < 1e500)": "invalid syntax", "pay(to in [a)": "syntax error in pattern", `pay(to in a\b)`: `a path has /`,
		"pay(to host http://x)": "is no port", "pay(sum <= 3)": `no argument is named "sum"; there are: amount, to`, "pax(amount <= 3)": `no tool is named "pax"`,
		"pay(amount <= 100 and to = Anna)": "", "p*(amount.value > 1)": "",
	} {
		err := policy.Rules{Allow: []string{entry}}.Check([]*pawl.Tool{tool})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if err := (policy.Breaker{Tools: []string{"pay(amount <= 3)"}}).Middleware().Check([]*pawl.Tool{tool}); err == nil {
		t.Error("a breaker takes conditions on arguments")
	}
}

// Long paths and patterns are compared in little time.
func FuzzArguments(f *testing.F) {
	f.Add("path in **/a/**/b", `{"path":"a/a/a/b"}`)
	f.Add("url host *.x.y", `{"url":"http://a.x.y"}`)
	f.Fuzz(func(t *testing.T, condition, args string) {
		r := policy.Rules{Allow: []string{"act(" + condition + ")"}, Default: pawl.VerdictDeny}
		if r.Check([]*pawl.Tool{says("act", pawl.EffectWrite)}) != nil {
			return
		}
		call, tool := llm.ToolCall{Name: "act", Args: json.RawMessage(args)}, says("act", pawl.EffectWrite)
		a, err := r.Approve(t.Context(), call, tool)
		if err != nil {
			t.Fatal(err)
		}
		d := policy.Rules{Deny: r.Allow, Default: pawl.VerdictAllow}
		b, _ := d.Approve(t.Context(), call, tool)
		if a.Verdict == pawl.VerdictAllow && b.Verdict != pawl.VerdictDeny {
			t.Errorf("%q: %s is allowed by an entry and not denied by the same", condition, args)
		}
	})
}
