package pawltest

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/script"
)

// requestParts are the parts about requests: what arrives must equal what was sent.
func requestParts[TT T[TT]](open func(t TT, behind llm.Model) llm.Model) []part[TT] {
	var parts []part[TT]
	changes := cases.Requests()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		parts = append(parts, part[TT]{"request/" + name, func(t TT) { testArrives(t, open, changes[name]) }})
	}
	return parts
}

// testArrives sends a request, streamed and whole, and compares it with the request that arrives.
func testArrives[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model, change func(*llm.Request)) {
	behind := script.New(script.Loop(script.Say("yes")))
	m := open(t, behind)
	for _, whole := range []bool{false, true} {
		req := question()
		req.Whole = whole
		change(req)
		before := form(req)
		if _, err := streamed(t, m, req); err != nil {
			t.Errorf("whole %t: %v", whole, err)
			continue
		}
		if got := form(req); got != before {
			t.Errorf("whole %t: the request was changed:\nbefore: %s\nafter:  %s", whole, before, got)
		}

		all := behind.Requests()
		if len(all) == 0 {
			t.Fatalf("whole %t: no request arrived", whole)
		}
		if got, want := requestForm("", all[len(all)-1]), requestForm("", req); got != want {
			t.Errorf("whole %t: arrived:\n%s\nwas sent:\n%s", whole, got, want)
		}
	}
}

// opaqueParts are the parts about data that only the provider can read: it comes back unchanged,
// with the part of the reply that it belongs to.
func opaqueParts[TT T[TT]](open func(t TT, behind llm.Model) llm.Model) []part[TT] {
	turns := cases.Opaque()
	var parts []part[TT]
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		parts = append(parts, part[TT]{"opaque/" + name, func(t TT) { testOpaque(t, open, turns[name]) }})
	}
	return parts
}

// testOpaque sends a reply with opaque data back to its provider.
func testOpaque[TT T[TT]](t TT, open func(TT, llm.Model) llm.Model, turn script.Turn) {
	behind := script.New(turn, script.Say("There."))
	m := open(t, behind)
	for _, whole := range []bool{false, true} {
		req := question()
		req.Whole = whole
		resp, err := streamed(t, m, req)
		if err != nil {
			t.Fatalf("whole %t: %v", whole, err)
		}
		results := answer(resp.Message)
		if results == nil {
			t.Fatalf("whole %t: the reply lost its call: %s", whole, form(resp))
		}
		req.Messages = append(req.Messages, resp.Message, *results)
		if _, err := streamed(t, m, req); err != nil {
			t.Fatalf("whole %t: %v", whole, err)
		}

		all := behind.Requests()
		back := all[len(all)-1].Messages
		var got []string
		for _, p := range back[len(back)-2].Parts {
			got = append(got, opaqueForm(p))
		}
		var want []string
		for _, p := range turn.Parts {
			want = append(want, opaqueForm(p))
		}
		if !slices.Equal(got, want) {
			t.Errorf("whole %t: the reply came back to its provider as\n%s\nthe provider wrote\n%s", whole,
				strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// opaqueForm is the content of a part with its opaque data.
func opaqueForm(p llm.Part) string {
	var o *llm.Opaque
	switch p := p.(type) {
	case llm.Text:
		o = p.Opaque
	case llm.Reasoning:
		o = p.Opaque
	case llm.ToolCall:
		o = p.Opaque
	}
	if o == nil {
		return partForm(p)
	}
	return partForm(p) + " with " + sorted(string(o.Data))
}
