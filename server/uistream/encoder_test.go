package uistream_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
)

var update = flag.Bool("update", false, "write the golden files")

// events reads a file of events.
func events(t *testing.T, name string) (all []pawl.Event) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var e pawl.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, s.Bytes())
		}
		all = append(all, e)
	}
	return all
}

// ordered are the protocols whose order misordered checks. Package server checks AG-UI with the
// verifier of its client.
var ordered = []uistream.Protocol{uistream.AISDK6, uistream.AISDK7}

func options(p uistream.Protocol) uistream.Options {
	o := uistream.Options{Protocol: p, Run: "ui_x_y", Agent: "clerk",
		Passive: func(name string) bool { return name == "ask" }}
	if p == uistream.AGUI0 || p == uistream.AGUI1 {
		o.Thread, o.Request, o.Inner = "t", "r", true
		o.Messages = []map[string]any{{"id": "u1", "role": "user", "content": "pay"}}
	}
	return o
}

func stream(o uistream.Options, all []pawl.Event) (frames [][]byte) {
	e := uistream.New(o)
	frames = e.Begin()
	for _, ev := range all {
		frames = append(frames, e.Event(ev)...)
	}
	return append(frames, e.Fail("the events ended")...)
}

// One run in all protocols: text before calls, a failure, a file, a retraction, lost fragments, a
// question of a nested run. Then the same run goes on, for a client that saw it up to the
// questions.
func TestStreams(t *testing.T) {
	for _, p := range append(ordered, uistream.AGUI0, uistream.AGUI1) {
		for _, name := range []string{"asks", "goes_on"} {
			o := options(p)
			if name == "goes_on" {
				o.After = 3
				o.Open = map[llm.Key]bool{"run/3/0": true, "run/3/1": false, "run/3/1/clerk/1/0": true}
			}
			got := append(bytes.Join(stream(o, events(t, name)), []byte("\n")), '\n')
			file := filepath.Join("testdata", name+"."+string(p)+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(want), "\n")); diff != "" {
				t.Errorf("%s: got -, want +\n%s", file, diff)
			}
		}
	}
}

// The message of a page that is loaded again.
func TestHistory(t *testing.T) {
	h := uistream.NewHistory(options(uistream.AISDK6))
	for _, e := range events(t, "asks") {
		h.Event(e)
	}
	got, err := json.MarshalIndent(h.Message(), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "history.golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if diff := cmp.Diff(string(got), string(want)); err != nil || diff != "" {
		t.Errorf("%v: got -, want +\n%s", err, diff)
	}
}

// If events are lost, repeated or shuffled, the frames keep the order that clients require: nothing
// about a part or a call that was not begun, nothing open at the end, and one end.
func TestOrderHoldsForAnyEvents(t *testing.T) {
	all := events(t, "asks")
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var some []pawl.Event
		for _, e := range all {
			for n := r.IntN(4); n > 0; n -= 2 {
				some = append(some, e)
			}
		}
		if r.IntN(3) == 0 {
			r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		}
		for _, p := range ordered {
			if fault := misordered(p, stream(options(p), some)); fault != "" {
				t.Errorf("seed %d, %s: %s", seed, p, fault)
			}
		}
	}
	if fault := misordered(uistream.AISDK6, [][]byte{[]byte(`{"type":"start"}`), []byte(`{"type":"text-delta","id":"1"}`), []byte(`{"type":"finish"}`)}); fault == "" {
		t.Error("a delta without its start is not found")
	}
}

// misordered returns what is wrong with the order of frames. "" means nothing.
func misordered(p uistream.Protocol, frames [][]byte) string {
	open, calls, step := map[string]bool{}, map[string]int{}, false
	var now []string // calls of the step
	for i, b := range frames {
		var f struct {
			Type, ID, ToolCallID string
			ProviderExecuted     *bool
		}
		if err := json.Unmarshal(b, &f); err != nil {
			return err.Error()
		}
		last := i == len(frames)-1
		id := f.ID
		switch f.Type {
		case "text-start", "reasoning-start":
			if open[id] || !step {
				return fmt.Sprintf("frame %d begins what is open, or stands in no step: %s", i, b)
			}
			open[id] = true
		case "text-delta", "reasoning-delta":
			if !open[id] {
				return fmt.Sprintf("frame %d continues what is not open: %s", i, b)
			}
		case "text-end", "reasoning-end":
			if !open[id] {
				return fmt.Sprintf("frame %d ends what is not open: %s", i, b)
			}
			delete(open, id)
		case "tool-input-start":
			if calls[f.ToolCallID] == 2 && f.ProviderExecuted != nil && !*f.ProviderExecuted {
				calls[f.ToolCallID] = 3 // a question takes the mark from the call
				continue
			}
			if calls[f.ToolCallID] > 0 {
				return fmt.Sprintf("frame %d begins a call again: %s", i, b)
			}
			calls[f.ToolCallID] = 1
			now = append(now, f.ToolCallID)
		case "tool-input-delta":
			if calls[f.ToolCallID]%2 != 1 {
				return fmt.Sprintf("frame %d continues no open call: %s", i, b)
			}
		case "tool-input-available":
			calls[f.ToolCallID] = 2
		case "tool-approval-request":
			if calls[f.ToolCallID] != 3 {
				return fmt.Sprintf("frame %d asks about a call that has the mark: %s", i, b)
			}
			calls[f.ToolCallID] = 2
		case "tool-output-available", "tool-output-error", "tool-output-denied":
			if calls[f.ToolCallID] != 2 {
				return fmt.Sprintf("frame %d is about an unknown call: %s", i, b)
			}
		case "start-step", "finish-step":
			if f.Type == "start-step" == step || len(open) > 0 {
				return fmt.Sprintf("frame %d: a step in a step, or an open part: %s", i, b)
			}
			if step = !step; step {
				now = nil
			}
		case "reset-step":
			for _, id := range now {
				delete(calls, id)
			}
			// the client drops open calls of earlier steps, too
			maps.DeleteFunc(calls, func(_ string, state int) bool { return state == 1 })
		case "finish", "abort", "error":
			if !last || len(open) > 0 || step {
				return fmt.Sprintf("frame %d of %d is an end: %s", i, len(frames), b)
			}
			return ""
		}
	}
	return "it has no end"
}

// The list of the tool todo is a part of the message, and a later list replaces it. The list of an
// agent within the run is not shown.
func TestTodo(t *testing.T) {
	call := func(key llm.Key, list string) pawl.Event {
		return pawl.Event{Kind: pawl.EventCallCompleted, Run: "run", Step: 1, Path: key, Execution: &pawl.Execution{
			Key: key, Call: llm.ToolCall{ID: "c", Name: "todo"}, Outcome: pawl.OutcomeOK, Result: llm.TextResult("0 of 1 done"),
			Values: pawl.Values{"pawl.todo": json.RawMessage(list)}}}
	}
	for _, p := range append(ordered, uistream.AGUI1) {
		got := string(bytes.Join(stream(options(p), []pawl.Event{call("run/1/0", `{"items":[1]}`),
			call("run/2/0", `{"items":[2]}`), call("run/3/0/clerk/1/0", `{"items":[3]}`)}), []byte("\n")))
		for list, times := range map[string]int{"1": 1, "2": 1, "3": 0} {
			part := `{"data":{"items":[` + list + `]},"id":"todo","type":"data-pawl-todo"}`
			if p == uistream.AGUI1 {
				part = `{"snapshot":{"todo":{"items":[` + list + `]}},"type":"STATE_SNAPSHOT"}`
			}
			if strings.Count(got, part) != times {
				t.Errorf("%s: %d times %s, want %d in\n%s", p, strings.Count(got, part), part, times, got)
			}
		}
	}
}
