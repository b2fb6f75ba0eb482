package model

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// opaqueParts are the parts about data that only the provider can read: it comes back unchanged,
// with the part of the reply that it belongs to.
func opaqueParts[TT mutant.T[TT]](open Opener[TT]) []suite.Part[TT] {
	return suite.Each("opaque/", cases.Opaque(), func(t TT, turn script.Turn) { testOpaque(t, open, turn) })
}

// testOpaque sends a reply with opaque data back to its provider.
func testOpaque[TT mutant.T[TT]](t TT, open Opener[TT], turn script.Turn) {
	behind := script.New(turn, script.Say("There."))
	m := open(t, behind)
	for _, whole := range []bool{false, true} {
		req := Question()
		req.Whole = whole
		resp, err := Streamed(t, m, req)
		if err != nil {
			t.Fatalf("whole %t: %v", whole, err)
		}
		results := Answer(resp.Message)
		if results == nil {
			t.Fatalf("whole %t: the reply lost its call: %s", whole, Form(resp))
		}
		req.Messages = append(req.Messages, resp.Message, *results)
		if _, err := Streamed(t, m, req); err != nil {
			t.Fatalf("whole %t: %v", whole, err)
		}

		all := behind.Requests()
		back := all[len(all)-1].Messages
		got := forms(back[len(back)-2].Parts, opaqueForm)
		want := forms(turn.Parts, opaqueForm)
		if !slices.Equal(got, want) {
			t.Errorf("whole %t: the reply came back to its provider as\n%s\nthe provider wrote\n%s", whole,
				strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
