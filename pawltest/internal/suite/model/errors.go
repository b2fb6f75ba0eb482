package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/cases"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// errorParts are the parts about errors of the provider: the kind of the error, its status and the
// wait that it asks for arrive.
func errorParts[TT mutant.T[TT]](open Opener[TT]) []suite.Part[TT] {
	parts := suite.Each("errors/", cases.Refusals(), func(t TT, want llm.ProviderError) { testRefusal(t, open, want) })
	return append(parts,
		suite.Part[TT]{Name: "errors/broken", Test: func(t TT) { testBroken(t, open) }},
		suite.Part[TT]{Name: "errors/once", Test: func(t TT) { testOnce(t, open) }},
		suite.Part[TT]{Name: "errors/ended early", Test: func(t TT) { testEndedEarly(t, open) }},
	)
}

// testRefusal asks a provider that answers with an error, streamed and whole.
func testRefusal[TT mutant.T[TT]](t TT, open Opener[TT], want llm.ProviderError) {
	want.Provider = "suite"
	want.Message = "no luck with " + string(want.Code)
	m := open(t, script.New(script.Fail(&want)))
	for _, whole := range []bool{false, true} {
		req := Question()
		req.Whole = whole
		resp, err := Streamed(t, m, req)
		if resp.Finish != "" || len(resp.Message.Parts) > 0 {
			t.Errorf("whole %t: a refused request has the reply %s", whole, Form(resp))
		}
		var got *llm.ProviderError
		if !errors.As(err, &got) {
			t.Errorf("whole %t: got the error %v, want a *llm.ProviderError", whole, err)
			continue
		}
		if is, must := factsOf(got), factsOf(&want); is != must {
			t.Errorf("whole %t: got %s; want %s (%v)", whole, is, must, err)
		}
		if !strings.Contains(err.Error(), want.Message) {
			t.Errorf("whole %t: the error %q does not have the provider's text %q", whole, err, want.Message)
		}
	}
}

// factsOf is what a caller decides by.
func factsOf(e *llm.ProviderError) string {
	return fmt.Sprintf("status %d, code %s, retryable %t, retry after %v", e.Status, e.Code, e.Retryable, e.RetryAfter)
}

// testOnce checks that the Model sends a refused request once. Retries belong to the caller here.
func testOnce[TT mutant.T[TT]](t TT, open Opener[TT]) {
	behind := script.New(script.Fail(&llm.ProviderError{Provider: "suite", Status: 500, Code: llm.CodeServer, Retryable: true,
		Message: "no"}))
	if _, err := Streamed(t, open(t, behind), Question()); err == nil {
		t.Errorf("a refused request has no error")
	}
	if n := len(behind.Requests()); n != 1 {
		t.Errorf("a refused request was sent %d times", n)
	}
}

// testEndedEarly asks a provider whose reply ends without a finish, as a broken connection does. An
// error is expected; the core also finds a reply without a finish. A reply that looks complete is
// the fault.
func testEndedEarly[TT mutant.T[TT]](t TT, open Opener[TT]) {
	for name, deltas := range cases.EndedEarly() {
		req := Question()
		resp := new(llm.Response)
		var failed error
		for d, err := range open(t, script.New(script.Turn{Deltas: deltas})).Stream(t.Context(), req) {
			if err == nil {
				err = resp.Add(d)
			}
			failed = errors.Join(failed, err)
		}
		if resp.Finish != "" {
			t.Errorf("%s: a reply that ended early has the finish %q, error %v", name, resp.Finish, failed)
		}
	}
}

// testBroken breaks replies off: what came before the error is no complete reply.
func testBroken[TT mutant.T[TT]](t TT, open Opener[TT]) {
	for name, turn := range cases.Broken() {
		for _, whole := range []bool{false, true} {
			req := Question()
			req.Whole = whole
			resp, err := Streamed(t, open(t, script.New(turn)), req)
			if err == nil {
				t.Errorf("%s, whole %t: no error, but %s", name, whole, Form(resp))
			}
			if resp.Finish != "" {
				t.Errorf("%s, whole %t: a reply that failed has finish %q", name, whole, resp.Finish)
			}
		}
	}
	if _, err := Streamed(t, open(t, script.New()), Question()); err == nil {
		t.Errorf("a script without turns: no error")
	}
}
