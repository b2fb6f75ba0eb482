package policy_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
	"github.com/pawl-go/pawl/policy"
)

// transcript returns the conversation of res up to the reply with the call.
func (w *world) transcript(res *pawl.Result, call llm.ToolCall) *derivation.Transcript {
	i := slices.IndexFunc(res.Messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Calls(), func(c llm.ToolCall) bool { return c.ID == call.ID })
	})
	trusted := func(tool string) bool {
		for pattern, label := range w.labels {
			if ok, _ := path.Match(pattern, tool); ok && strings.Contains(label, "trusted") {
				return true
			}
		}
		return false
	}
	return &derivation.Transcript{Messages: res.Messages[:i+1], Trusted: trusted}
}

// verify checks the derivations of all calls of res that ran without a question.
func (w *world) verify(t *testing.T, res *pawl.Result) {
	t.Helper()
	for _, step := range res.Steps {
		for _, x := range step.Executions {
			if x.Attempts == 0 || x.Decision != nil || x.Derivations == nil {
				continue
			}
			if err := w.transcript(res, x.Call).Check(x.Call, x.Derivations); err != nil {
				t.Errorf("%s: %v", res.Messages[0].Text(), err)
			}
		}
	}
}

// TestFlowDerivations: a call that ran unasked says why, a checker that does not know the policy
// verifies it, and refuses each other ground, another value, another call and another name.
func TestFlowDerivations(t *testing.T) {
	w := office()
	m := (&policy.Flow{Labels: w.labels}).Middleware()
	mail := func(to string) act { return did("send_mail", `{"to":["`+to+`"],"body":"Hello."}`, "sent") }
	read := did("list_mails", `{"query":"all"}`, mails)
	bill := did("read_page", `{"url":"https://p.example/bill"}`, "Total: 1.100,50 EUR to DE44500105175407324931.")
	pay := did("pay_bill", `{"iban":"DE44500105175407324931","amount":1100.5}`, "paid")
	for _, test := range []struct {
		said string
		past []act
		call act
		want []derivation.Value // without the IDs of calls
	}{
		{"Write to the boss.", nil, mail("eve@y.example"), []derivation.Value{{Ground: derivation.Clean}}},
		{"Write to eve@y.example.", []act{read}, mail("eve@y.example"),
			[]derivation.Value{{Arg: "to", Value: "eve@y.example", Ground: derivation.User}}},
		{"Answer the mail Budget.", []act{read}, mail("ann@x.example"),
			[]derivation.Value{{Arg: "to", Value: "ann@x.example", Ground: derivation.Record, Call: "h0", Name: "budget"}}},
		{"Write to Anna.", []act{read, did("lookup", `{"name":"Anna"}`, `{"mail":"ann@h.example"}`)}, mail("ann@h.example"),
			[]derivation.Value{{Arg: "to", Value: "ann@h.example", Ground: derivation.Trusted, Call: "h1"}}},
		{"Tidy up.", []act{read}, did("archive_mail", `{"mail_id":"m1"}`, "done"),
			[]derivation.Value{{Arg: "mail_id", Value: "m1", Ground: derivation.Found, Call: "h0"}}},
		{"Pay the bill on https://p.example/bill.", []act{bill}, pay, []derivation.Value{
			{Arg: "iban", Value: "DE44500105175407324931", Ground: derivation.Document, Call: "h0", Name: "https://p.example/bill"},
			{Arg: "amount", Value: "1100.5", Ground: derivation.Party},
		}},
		{"Look at y.example.", []act{read}, did("fetch", `{"url":"https://y.example/b"}`, "A page."),
			[]derivation.Value{{Arg: "url", Value: "https://y.example/b", Ground: derivation.Host, Name: "y.example"}}},
		{"Write to bob@x.example of https://z.example/a.", []act{read},
			did("send_mail", `{"to":["bob@x.example"],"body":"see https://z.example/a"}`, "sent"), []derivation.Value{
				{Arg: "to", Value: "bob@x.example", Ground: derivation.User},
				{Arg: "body", Value: "https://z.example/a", Ground: derivation.User},
			}},
	} {
		w.next = []llm.ToolResult{test.call.toolResult()}
		a := w.agent(len(test.past), m, test.call)
		res, err := runtest.Ended(a.Run(t.Context(), history(test.said, test.past)...))
		if err != nil {
			t.Fatalf("%s: %v", test.said, err)
		}
		x := res.Steps[0].Executions[0]
		if !slices.Equal(x.Derivations, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.said, x.Derivations, test.want)
			continue
		}
		transcript := w.transcript(res, x.Call)
		if err := transcript.Check(x.Call, x.Derivations); err != nil {
			t.Errorf("%s: %v", test.said, err)
		}
		forged(t, test.said, transcript, x)
	}
}

// forged changes a derivation in each of its members. None of the changes may be verified.
func forged(t *testing.T, said string, transcript *derivation.Transcript, x pawl.Execution) {
	t.Helper()
	refuse := func(what string, change func(d *derivation.Value)) {
		all := slices.Clone(x.Derivations)
		change(&all[0])
		if all[0] != x.Derivations[0] && transcript.Check(x.Call, all) == nil {
			t.Errorf("%s: %s was verified: %+v", said, what, all)
		}
	}
	if len(transcript.Messages) < 3 {
		return // anything holds in a clean conversation
	}
	wrong := []derivation.Ground{derivation.Clean, derivation.Trusted, derivation.Outer, derivation.Party, "other"}
	for _, ground := range wrong {
		refuse("the ground "+string(ground), func(d *derivation.Value) { d.Ground = ground })
	}
	refuse("another value", func(d *derivation.Value) { d.Value = "other@y.example" })
	refuse("no value", func(d *derivation.Value) { d.Value = "" })
	if x.Derivations[0].Call != "" {
		refuse("another call", func(d *derivation.Value) { d.Call = "h9" })
	}
	if x.Derivations[0].Name != "" {
		refuse("another name", func(d *derivation.Value) { d.Name = "elsewhere.example" })
	}
	if x.Call.Name == "send_mail" && transcript.Check(x.Call, nil) == nil {
		t.Errorf("%s: an address without a derivation was verified", said)
	}
}
