package model

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/mutant"
)

// Streamed sends a request to m, and checks the contract of Delta.
func Streamed[TT mutant.T[TT]](t TT, m llm.Model, req *llm.Request) (*llm.Response, error) {
	t.Helper()
	resp := new(llm.Response)
	sealed := map[int]bool{}
	owner := map[string]int{} // the part of a call, by its id
	next := 0
	var failed error
	for d, err := range m.Stream(t.Context(), req) {
		if failed != nil {
			t.Errorf("after the error %v came %+v, %v", failed, d, err)
		}
		if err != nil {
			failed = err
			continue
		}
		if resp.Finish != "" {
			t.Errorf("a delta came after the one with Finish: %+v", d)
		}
		if d.Part != nil {
			switch {
			case d.Index > next || d.Index < 0:
				t.Errorf("part %d came when part %d was next", d.Index, next)
			case d.Index == next:
				next++
			}
			if sealed[d.Index] {
				t.Errorf("part %d was continued after it was sealed", d.Index)
			}
		}
		// The joiner makes ids unique, so that only the fragments show an id that comes twice.
		if c, ok := d.Part.(llm.ToolCall); ok && c.ID != "" {
			if first, known := owner[c.ID]; known && first != d.Index {
				t.Errorf("the id %q belongs to the parts %d and %d", c.ID, first, d.Index)
			}
			owner[c.ID] = d.Index
		}
		sealed[d.Index] = sealed[d.Index] || d.Done
		if err := resp.Add(d); err != nil {
			t.Fatalf("the joiner refuses %+v: %v", d, err)
		}
	}
	if resp.Finish == "" && failed == nil {
		t.Errorf("the reply ended without a delta with Finish, and without an error")
	}
	return resp, failed
}
