package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
)

func args(s string) llm.ToolCall { return llm.ToolCall{Args: json.RawMessage(s)} }

// joined adds ds to a fresh Response.
func joined(ds ...llm.Delta) (*llm.Response, error) {
	r := new(llm.Response)
	for _, d := range ds {
		if err := r.Add(d); err != nil {
			return r, err
		}
	}
	return r, nil
}

func TestAddJoinsFragments(t *testing.T) {
	sig := &llm.Opaque{Provider: "p", Data: json.RawMessage(`"s"`)}
	got, err := joined(
		llm.Delta{Index: 0, Part: llm.Reasoning{Text: "let me "}, Model: "m-1", ID: "r-1"},
		llm.Delta{Index: 1, Part: text("Hel")},
		llm.Delta{Index: 0, Part: llm.Reasoning{Text: "see", Opaque: sig}, Done: true},
		llm.Delta{Index: 2, Part: llm.ToolCall{ID: "c", Name: "look"}, Usage: &llm.Usage{Input: 3}},
		llm.Delta{Index: 1, Part: text("lo")},
		llm.Delta{Index: 3, Part: llm.Media{MIME: "image/png", URL: "https://example.org/x.png"}},
		llm.Delta{Index: 2, Part: args(`{"a":`)},
		llm.Delta{Index: 2, Part: llm.ToolCall{ID: "late", Name: "late", Args: json.RawMessage(`1}`), Opaque: sig}},
		llm.Delta{Index: 2, Done: true},
		llm.Delta{Usage: &llm.Usage{Input: 3, Output: 4}, Finish: llm.FinishReasonStop},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := &llm.Response{Message: llm.Assistant(
		llm.Reasoning{Text: "let me see", Opaque: sig},
		text("Hello"),
		llm.ToolCall{ID: "c", Name: "look", Args: json.RawMessage(`{"a":1}`), Opaque: sig},
		llm.Media{MIME: "image/png", URL: "https://example.org/x.png"},
	), Finish: llm.FinishReasonToolCalls, Usage: llm.Usage{Input: 3, Output: 4}, Model: "m-1", ID: "r-1"}
	if diff := cmp.Diff(got, want, sameReply); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
}

// A model that breaks the contract of Delta gets an error, and never a panic.
func TestAddRefusesWhatBreaksTheContract(t *testing.T) {
	for name, test := range map[string]struct {
		deltas []llm.Delta
		want   string
	}{
		"skipped part":        {[]llm.Delta{{Index: 1, Part: text("a")}}, "part 1 came when part 0 was next"},
		"negative part":       {[]llm.Delta{{Index: -1, Part: text("a")}}, "part -1"},
		"sealed too early":    {[]llm.Delta{{Index: 0, Done: true}}, "part 0 was sealed before it began"},
		"negative seal":       {[]llm.Delta{{Index: 0, Part: text("a")}, {Index: -1, Done: true}}, "part -1"},
		"negative whole seal": {[]llm.Delta{{Index: 0, Part: text("a"), Done: true}, {Index: -1, Done: true}}, "part -1"},
		"continued":           {[]llm.Delta{{Index: 0, Part: text("a"), Done: true}, {Index: 0, Part: text("b")}}, "part 0 was continued after it was sealed"},
		"continued media":     {[]llm.Delta{{Index: 0, Part: llm.Media{URL: "u"}}, {Index: 0, Part: llm.Media{URL: "v"}}}, "part 0 was continued"},
		"text to call":        {[]llm.Delta{{Index: 0, Part: text("a")}, {Index: 0, Part: args("b")}}, "part 0 changed"},
		"call to text":        {[]llm.Delta{{Index: 0, Part: args("a")}, {Index: 0, Part: text("b")}}, "part 0 changed"},
		"call to reasoning":   {[]llm.Delta{{Index: 0, Part: args("a")}, {Index: 0, Part: llm.Reasoning{}}}, "part 0 changed"},
		"text to media":       {[]llm.Delta{{Index: 0, Part: text("a")}, {Index: 0, Part: llm.Media{}}}, "cannot come in fragments"},
		"result in a reply":   {[]llm.Delta{{Index: 0, Part: llm.ToolResult{}}}, "a reply cannot hold"},
		"decision in a reply": {[]llm.Delta{{Index: 0, Part: llm.Decision{}, Done: true}}, "a reply cannot hold"},
		"after the end":       {[]llm.Delta{{Finish: llm.FinishReasonStop}, {Part: text("a")}}, "after the reply had ended"},
		"finished twice":      {[]llm.Delta{{Finish: llm.FinishReasonStop}, {Finish: llm.FinishReasonStop}}, "after the reply had ended"},
	} {
		_, err := joined(test.deltas...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestFinishRules(t *testing.T) {
	for _, test := range []struct {
		said  llm.FinishReason
		calls bool
		want  llm.FinishReason
		cut   bool
	}{
		{llm.FinishReasonStop, true, llm.FinishReasonToolCalls, false},
		{llm.FinishReasonOther, true, llm.FinishReasonToolCalls, false},
		{llm.FinishReasonToolCalls, true, llm.FinishReasonToolCalls, false},
		{llm.FinishReasonLength, true, llm.FinishReasonLength, true},
		{llm.FinishReasonContentFilter, true, llm.FinishReasonContentFilter, true},
		{llm.FinishReasonError, true, llm.FinishReasonError, true},
		{llm.FinishReasonToolCalls, false, llm.FinishReasonStop, false},
		{llm.FinishReasonStop, false, llm.FinishReasonStop, false},
		{llm.FinishReasonOther, false, llm.FinishReasonOther, false},
		{llm.FinishReasonLength, false, llm.FinishReasonLength, true},
	} {
		ds := []llm.Delta{{Index: 0, Part: text("x"), Done: true}}
		if test.calls {
			ds = append(ds, llm.Delta{Index: 1, Part: call("c", "f", "{}"), Done: true})
		}
		r, err := joined(append(ds, llm.Delta{Finish: test.said})...)
		if err != nil || r.Finish != test.want || r.Finish.Cut() != test.cut {
			t.Errorf("said %s, calls %t: got %s, cut %t, error %v; want %s, cut %t", test.said, test.calls, r.Finish, r.Finish.Cut(), err, test.want, test.cut)
		}
	}
	empty, err := joined(llm.Delta{Finish: llm.FinishReasonStop})
	if err != nil || empty.Message.Role != llm.RoleAssistant {
		t.Errorf("an empty reply: got role %q, %v", empty.Message.Role, err)
	}
}

// For any IDs of calls and any order of sealing, each call of a reply ends with a unique ID, and a
// usable ID is kept.
func TestCallsGetIDsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "calls")
		given := make([]string, n)
		seen := map[string]int{}
		var ds []llm.Delta
		for i := range n {
			given[i] = rapid.SampledFrom([]string{"", "", "a", "call_0", "call_1", "call_2", "a_1"}).Draw(t, "id")
			seen[given[i]]++
			ds = append(ds, llm.Delta{Index: i, Part: call(given[i], "f", "{}"), Done: rapid.Bool().Draw(t, "whole")})
		}
		order := rapid.Permutation(ds).Draw(t, "order of sealing")
		for _, d := range order {
			if !d.Done && rapid.Bool().Draw(t, "sealed") {
				ds = append(ds, llm.Delta{Index: d.Index, Done: true})
			}
		}
		r, err := joined(append(ds, llm.Delta{Finish: llm.FinishReasonToolCalls})...)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for i, c := range r.Message.Calls() {
			if c.ID == "" || got[c.ID] {
				t.Fatalf("given %q: call %d has id %q, which is empty or taken", given, i, c.ID)
			}
			got[c.ID] = true
		}
	})
	r, err := joined(llm.Delta{Index: 0, Part: call("x", "f", ""), Done: true}, llm.Delta{Index: 1, Part: call("y", "f", "")},
		llm.Delta{Index: 2, Part: call("x", "f", ""), Done: true}, llm.Delta{Finish: llm.FinishReasonStop})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Message.Calls(); c[0].ID != "x" || c[1].ID != "y" || c[2].ID == "x" {
		t.Errorf("got ids %q, %q, %q", c[0].ID, c[1].ID, c[2].ID)
	}
}

// cut draws a sequence of fragments for parts, interleaved as a provider may send them.
func cut(t *rapid.T, parts []llm.Part) []llm.Delta {
	var queues [][]llm.Delta
	for i, p := range parts {
		pieces := func(s string, part func(string) llm.Part) []llm.Delta {
			var q []llm.Delta
			for s != "" && rapid.Bool().Draw(t, "cut") {
				n := rapid.IntRange(0, len(s)).Draw(t, "at")
				q = append(q, llm.Delta{Index: i, Part: part(s[:n])})
				s = s[n:]
			}
			return append(q, llm.Delta{Index: i, Part: part(s)})
		}
		var q []llm.Delta
		switch p := p.(type) {
		case llm.Text:
			q = pieces(p.Text, func(s string) llm.Part { return text(s) })
		case llm.Reasoning:
			q = pieces(p.Text, func(s string) llm.Part { return llm.Reasoning{Text: s} })
		case llm.ToolCall:
			first := true
			q = pieces(string(p.Args), func(s string) llm.Part {
				c := args(s)
				if first {
					c.ID, c.Name = p.ID, p.Name
				}
				first = false
				return c
			})
		}
		switch rapid.IntRange(0, 2).Draw(t, "seal") {
		case 0:
			q[len(q)-1].Done = true
		case 1:
			q = append(q, llm.Delta{Index: i, Done: true})
		}
		queues = append(queues, q)
	}
	var ds []llm.Delta
	began := 0
	for {
		var ready []int
		for i := range queues {
			if len(queues[i]) > 0 && i <= began {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return append(ds, llm.Delta{Finish: llm.FinishReasonStop})
		}
		i := rapid.SampledFrom(ready).Draw(t, "next")
		ds = append(ds, queues[i][0])
		queues[i] = queues[i][1:]
		began = max(began, i+1)
	}
}

// A reply joins to the same value for any cut into fragments and any interleaving.
func TestAnyCutJoinsToTheSameReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "parts")
		parts := make([]llm.Part, n)
		for i := range n {
			s := rapid.StringN(0, 40, -1).Draw(t, "text")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				parts[i] = text(s)
			case 1:
				parts[i] = llm.Reasoning{Text: s}
			default:
				parts[i] = call(fmt.Sprint("c", i), "f", s)
			}
		}
		var whole []llm.Delta
		for i, p := range parts {
			whole = append(whole, llm.Delta{Index: i, Part: p, Done: true})
		}
		want, err := joined(append(whole, llm.Delta{Finish: llm.FinishReasonStop})...)
		if err != nil {
			t.Fatal(err)
		}
		ds := cut(t, parts)
		got, err := joined(ds...)
		if err != nil {
			t.Fatalf("%v in %+v", err, ds)
		}
		if diff := cmp.Diff(got, want, sameReply, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("got -, want +\n%s", diff)
		}
		again := new(llm.Response)
		for d, err := range got.Deltas() {
			if err == nil {
				err = again.Add(d)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(again, got, sameReply); diff != "" {
			t.Fatalf("played again: got -, want +\n%s", diff)
		}
	})
}

// Joining is linear in the size of the arguments: allocations grow linearly for any number of
// fragments. The test counts bytes, because time depends on the machine.
func TestJoiningIsLinear(t *testing.T) {
	soak.Sequential(t)
	spent := func(size, fragment int) uint64 {
		piece := json.RawMessage(strings.Repeat("x", fragment))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := new(llm.Response)
		for range size / fragment {
			if err := r.Add(llm.Delta{Part: llm.ToolCall{Args: piece}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Add(llm.Delta{Finish: llm.FinishReasonStop}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := len(r.Message.Calls()[0].Args); n != size {
			t.Fatalf("%d bytes were joined, want %d", n, size)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	const mib = 1 << 20
	for _, fragment := range []int{1, 16, 4096} {
		if got := spent(mib, fragment); got > 10*mib {
			// Each Delta boxes its part in 80 bytes. The joiner does not cause this allocation.
			if boxed := uint64(mib / fragment * 96); got > 10*mib+boxed {
				t.Errorf("1 MiB in fragments of %d: %d bytes allocated", fragment, got)
			}
		}
		small, large := spent(mib/4, fragment), spent(mib, fragment)
		if large > 8*small {
			t.Errorf("fragments of %d: four times the size took %d bytes in place of %d", fragment, large, small)
		}
	}
}

func TestCompleteAsksOnceAndWhole(t *testing.T) {
	boom := errors.New("boom")
	var seen *llm.Request
	reply := func(ds ...llm.Delta) llm.Model {
		return modelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			seen = req
			return func(yield func(llm.Delta, error) bool) {
				for _, d := range ds {
					if !yield(d, nil) {
						return
					}
				}
				if len(ds) == 0 {
					yield(llm.Delta{}, boom)
				}
			}
		})
	}
	req := &llm.Request{Messages: []llm.Message{llm.User("hi")}}
	res, err := llm.Complete(t.Context(), reply(llm.Delta{Part: text("ho"), Finish: llm.FinishReasonStop}), req)
	if err != nil || res.Message.Text() != "ho" {
		t.Errorf("got %v, %v", res, err)
	}
	if !seen.Whole || req.Whole {
		t.Errorf("Whole: sent %t, the caller's request has %t; want true and false", seen.Whole, req.Whole)
	}
	if _, err := llm.Complete(t.Context(), reply(), req); err != boom {
		t.Errorf("got %v, want the model's error", err)
	}
	if _, err := llm.Complete(t.Context(), reply(llm.Delta{Index: 3, Part: text("ho")}), req); err == nil {
		t.Error("a broken contract gave no error")
	}
	var pe *llm.ProviderError
	if _, err := llm.Complete(t.Context(), reply(llm.Delta{Part: text("ho")}), req); !errors.As(err, &pe) ||
		pe.Code != llm.CodeStream || !pe.Retryable {
		t.Errorf("a reply that broke off: got %v", err)
	}
}
