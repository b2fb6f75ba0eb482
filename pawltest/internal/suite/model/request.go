package model

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// requestParts are the parts about requests: what arrives must equal what was sent.
func requestParts[TT mutant.T[TT]](api string, open Opener[TT]) []suite.Part[TT] {
	return suite.Each("request/", cases.Requests(), func(t TT, change func(*llm.Request)) { Arrives(t, api, open, change) })
}

// Arrives sends Question with a change, streamed and whole, and compares the request with what
// arrives over api.
func Arrives[TT mutant.T[TT]](t TT, api string, open Opener[TT], change func(*llm.Request)) {
	t.Helper()
	behind := script.New(script.Loop(script.Say("yes")))
	m := open(t, behind)
	for _, whole := range []bool{false, true} {
		req := Question()
		req.Whole = whole
		change(req)
		before := Form(req)
		if _, err := Streamed(t, m, req); err != nil {
			t.Errorf("whole %t: %v", whole, err)
			continue
		}
		if got := Form(req); got != before {
			t.Errorf("whole %t: the request was changed:\nbefore: %s\nafter:  %s", whole, before, got)
		}

		all := behind.Requests()
		if len(all) == 0 {
			t.Fatalf("whole %t: no request arrived", whole)
		}
		arrived := *all[len(all)-1]
		if api != "" && arrived.Whole != whole {
			t.Errorf("whole %t: arrived with whole %t", whole, arrived.Whole)
		}
		allow(api, &arrived, req)
		if got, want := requestForm(api, &arrived), requestForm(api, req); got != want {
			t.Errorf("whole %t: arrived:\n%s\nwas sent:\n%s", whole, got, want)
		}
	}
}
