package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/eval/internal/trial"
	"github.com/pawl-go/pawl/internal/agentfile"
)

// good is a run that writes a note.
func good() *trial.Record {
	text := "Pay Anna 70.\n"
	milk := "Buy milk.\n"
	cost := 0.01
	return &trial.Record{
		Stop:   "answer",
		Answer: "The note is written: 70 euros.",
		Output: json.RawMessage(`{"sum":70,"items":[{"n":1},{"n":2}]}`),
		Calls: []trial.Call{
			{Tool: "file_list", Args: json.RawMessage(`{}`), Outcome: "ok", Effect: "read"},
			{
				Tool:    "file_write",
				Args:    json.RawMessage(`{"path":"note.txt","content":"Pay Anna 70."}`),
				Outcome: "ok",
				Effect:  "write",
				State:   "completed",
				Result:  "written",
			},
			{Tool: "plan", Args: json.RawMessage(`{}`), Outcome: "ok", Effect: "compose"},
			{Tool: "pay", Args: json.RawMessage(`{"sum":7}`), Outcome: "denied", Effect: "write", Depth: 1},
		},
		Asked: []trial.Question{
			{Tool: "file_write", Args: json.RawMessage(`{"path":"note.txt"}`), Answer: "approve"},
		},
		Before: map[string]trial.File{"milk.txt": {SHA256: "1", Text: &milk}},
		After: map[string]trial.File{
			"milk.txt": {SHA256: "1", Text: &milk},
			"note.txt": {SHA256: "2", Text: &text},
			"big.bin":  {SHA256: "3"},
		},
		Spent: trial.Spent{
			Cost:     &cost,
			Time:     3 * time.Second,
			Rounds:   2,
			Requests: 3,
			Calls:    3,
			Input:    100,
			Output:   20,
		},
	}
}

// rows are checks that the good run passes, and mutants of them, which it fails.
var rows = []struct{ kind, pass, fail string }{
	{"not", `{not: {stop: limit}}`, `{not: {stop: answer}}`},
	{"any", `{any: [{stop: limit}, {stop: answer}]}`, `{any: [{stop: limit}, {stop: failed}]}`},
	{"at_least", `{at_least: {n: 1, of: [{stop: limit}, {stop: answer}]}}`, `{at_least: {n: 2, of: [{stop: limit}, {stop: answer}]}}`},
	{"answer", `{answer: {contains: written}}`, `{answer: {contains: Written}}`},
	{"answer", `{answer: {contains: [note, THENOTE], fold: true}}`, `{answer: {contains: [note, letter]}}`},
	{"answer", `{answer: {contains_any: [letter, note]}}`, `{answer: {contains_any: [letter]}}`},
	{"answer", `{answer: {excludes: letter}}`, `{answer: {excludes: [letter, note]}}`},
	{"answer", `{answer: {equals: "The note is written: 70 euros."}}`, `{answer: {equals: The note}}`},
	{"answer", `{answer: {regex: '\b70\b'}}`, `{answer: {regex: '\b7\b'}}`},
	{"answer", `{answer: {starts: The, ends: euros.}}`, `{answer: {starts: the}}`},
	{"answer", `{answer: {ends: euros.}}`, `{answer: {ends: euros}}`},
	{"answer", `{answer: {number: {value: 70}}}`, `{answer: {number: {value: 700}}}`},
	{"answer", `{answer: {number: {value: 68, percent: 3}}}`, `{answer: {number: {value: 68, within: 1}}}`},
	{"answer", `{answer: {excludes: x}}`, `{answer: {json: {at: {/a: 1}}}}`},
	{"output", `{output: {at: {/sum: 70}}}`, `{output: {at: {/sum: 71}}}`},
	{"output", `{output: {at: {"/items/*/n": {$one_of: [1, 2]}}}}`, `{output: {at: {"/items/*/n": 1}}}`},
	{"output", `{output: {at: {/items/0/n: 1}}}`, `{output: {at: {/none/*: {$any: true}}}}`},
	{"output", `{output: {schema: {type: object, required: [sum]}}}`, `{output: {schema: {type: object, required: [total]}}}`},
	{"calls", `{calls: {expect: [{tool: file_write, args: {path: note.txt, content: {$contains: Anna}}}]}}`,
		`{calls: {expect: [{tool: file_write, args: {path: note.txt}}]}}`},
	{"calls", `{calls: {expect: [{tool: file_write}]}}`, `{calls: {expect: [{tool: file_write}, {tool: file_write}]}}`},
	{"calls", `{calls: {expect: [{tool: file_write, times: 1}]}}`, `{calls: {expect: [{tool: file_write, times: {min: 2, max: 3}}]}}`},
	{"calls", `{calls: {expect: [{tool: file_list}], extra: allow}}`, `{calls: {expect: [{tool: file_list}], extra: forbid}}`},
	{"calls", `{calls: {expect: [{tool: file_list}, {tool: file_write}], order: in_order}}`,
		`{calls: {expect: [{tool: file_write}, {tool: file_list}], order: in_order}}`},
	{"calls", `{calls: {expect: [{tool: file_list}, {tool: file_write}, {tool: plan}], order: exact}}`,
		`{calls: {expect: [{tool: file_write}, {tool: file_list}, {tool: plan}], order: exact}}`},
	{"calls", `{calls: {expect: [{tool: pay, outcome: denied}, {tool: file_write}]}}`, `{calls: {expect: [{tool: pay}, {tool: file_write}]}}`},
	{"calls", `{calls: {expect: [{tool: file_write, result: written}]}}`, `{calls: {expect: [{tool: file_write, result: failed}]}}`},
	{"calls", `{calls: {forbid: [file_delete]}}`, `{calls: {forbid: [pay]}}`},
	{"calls", `{calls: {forbid: [{tool: pay, args: {sum: 70}}]}}`, `{calls: {forbid: [{tool: pay, args: {sum: 7}}]}}`},
	{"calls", `{calls: {forbid: [pay], within: top}}`, `{calls: {forbid: ["p*"], within: top}}`},
	{"calls", `{calls: {count: {"file_*": {min: 2, max: 2}}}}`, `{calls: {count: {"file_*": {max: 1}}}}`},
	{"calls", `{not: {calls: {none: all}}}`, `{calls: {none: writes}}`},
	{"effects", `{effects: {completed: {file_write: {max: 1}}}}`, `{effects: {completed: {file_write: {max: 0}}}}`},
	{"effects", `{effects: {unknown: {"*": {max: 0}}}}`, `{effects: {unknown: {"*": {min: 1}}}}`},
	{"effects", `{effects: {failed: {"*": {max: 0}}}}`, `{effects: {failed: {"*": {min: 1}}}}`},
	{"files", `{files: {at: {note.txt: {contains: Anna}, big.bin: {sha256: "3"}}}}`, `{files: {at: {note.txt: {contains: Anna}}}}`},
	{"files", `{files: {at: {note.txt: {regex: '\b70\b'}}, others: any}}`, `{files: {at: {note.txt: {regex: '\b7\b'}}, others: any}}`},
	{"files", `{files: {at: {gone.txt: {absent: true}}, others: any}}`, `{files: {at: {note.txt: {absent: true}}, others: any}}`},
	{"files", `{files: {at: {milk.txt: {unchanged: true}}, others: any}}`, `{files: {at: {note.txt: {unchanged: true}}, others: any}}`},
	{"files", `{not: {files: {at: {milk.txt: {equals: Buy bread}}, others: any}}}`, `{files: {at: {milk.txt: {equals: Buy bread}}, others: any}}`},
	{"asked", `{asked: [{tool: file_write, times: 1}]}`, `{asked: {none: true}}`},
	{"asked", `{not: {asked: {none: true}}}`, `{asked: [{tool: file_write, times: 2}]}`},
	{"stop", `{stop: [answer, finished]}`, `{stop: limit}`},
	{"spent", `{spent: {rounds: {max: 2}, tokens: {min: 120, max: 120}, cost: {max: 0.02}, time: {max: 3}}}`, `{spent: {rounds: {max: 1}}}`},
	{"spent", `{spent: {requests: {max: 3}, calls: {max: 3}, input: {max: 100}, output: {max: 20}}}`, `{spent: {tokens: {max: 100}}}`},
	{"spent", `{spent: {corrections: {max: 0}, invalid: {max: 0}, repairs: {max: 0}}}`, `{spent: {cost: {max: 0.001}}}`},
}

// compile compiles a check as a suite has it, and returns the faults.
func compile(t *testing.T, text string) (*check.Check, []string) {
	t.Helper()
	var d check.Definition
	if err := agentfile.ReadDocument("suite", []byte(text), &d, nil).Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var faults []string
	c := check.Compiler{Report: func(path, hint, message string) { faults = append(faults, path+": "+message) }}
	return c.Compile(&d, ""), faults
}

// TestKinds judges a good run by checks that it passes, and by mutants of them, for every kind.
func TestKinds(t *testing.T) {
	var tested []string
	for _, row := range rows {
		tested = append(tested, row.kind)
		for text, want := range map[string]bool{row.pass: true, row.fail: false} {
			one, faults := compile(t, text)
			if one == nil {
				t.Errorf("%s: %v", text, faults)
				continue
			}
			got := one.Judge(good())
			if got.Pass != want || got.Error != "" {
				t.Errorf("%s: got %+v, want pass %t", text, got, want)
			}
		}
	}
	for _, kind := range check.Kinds() {
		if !slices.Contains(tested, kind) {
			t.Errorf("no row tests the kind %s", kind)
		}
	}
}

// TestOnce fails on two equal effects.
func TestOnce(t *testing.T) {
	once, _ := compile(t, `{effects: {once: ["*"]}}`)
	if got := once.Judge(good()); !got.Pass {
		t.Errorf("one effect: %+v", got)
	}
	twice := good()
	twice.Calls = append(twice.Calls, twice.Calls[1])
	twice.Calls[4].Args = json.RawMessage(`{"content":"Pay Anna 70.","path":"note.txt"}`)
	if got := once.Judge(twice); got.Pass {
		t.Error("two effects with equal arguments pass once")
	}
}

// TestUnknown has no verdict without what it needs.
func TestUnknown(t *testing.T) {
	unpriced := good()
	unpriced.Spent.Cost = nil
	for text, r := range map[string]*trial.Record{
		`{spent: {cost: {max: 1}}}`:                               unpriced,
		`{files: {at: {big.bin: {contains: a}}, others: any}}`:    good(),
		`{not: {spent: {cost: {max: 1}}}}`:                        unpriced,
		`{any: [{stop: limit}, {spent: {cost: {max: 1}}}]}`:       unpriced,
		`{at_least: {n: 1, of: [{spent: {cost: {max: 0.001}}}]}}`: unpriced,
	} {
		one, faults := compile(t, text)
		if one == nil {
			t.Fatal(faults)
		}
		check.Judge(r, []*check.Check{one})
		if r.Verdict != trial.Error {
			t.Errorf("%s: got the verdict %s, want error", text, r.Verdict)
		}
	}
}

// TestWrong reports checks that cannot fail, that cannot pass, and mistakes.
func TestWrong(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{}`, "a check has one kind, and this has 0"},
		{`{stop: answer, spent: {rounds: {max: 1}}}`, "and this has 2"},
		{`{answer: {}}`, "nothing is said"},
		{`{answer: {contains: ""}}`, "contains: every text contains"},
		{`{answer: {contains: [a, ""]}}`, "contains: every text contains"},
		{`{answer: {contains_any: []}}`, "contains_any: every text"},
		{`{answer: {regex: "a*"}}`, "regex: the expression"},
		{`{answer: {json: {schema: {}}}}`, "schema"},
		{`{output: {}}`, "nothing is said"},
		{`{output: {at: {sum: 1}}}`, "no JSON Pointer"},
		{`{output: {schema: true}}`, "cannot fail"},
		{`{calls: {}}`, "nothing is said"},
		{`{calls: {expect: [], extra: allow}}`, "cannot fail"},
		{`{calls: {forbid: [a], extra: allow}}`, "extra and order"},
		{`{calls: {expect: [{tool: a}], forbid: ["a*"]}}`, "expected and forbidden"},
		{`{calls: {expect: [{tool: a}], none: all}}`, "cannot pass"},
		{`{calls: {expect: [{tool: a, times: 0}]}}`, "times"},
		{`{calls: {expect: [{tool: a, after: b}]}}`, "no call has the id"},
		{`{calls: {expect: [{tool: a, args: {$one_of: []}}]}}`, "no value fits"},
		{`{calls: {count: {a: {min: 0}}}}`, "min: 0 alone"},
		{`{calls: {count: {a: {min: 3, max: 2}}}}`, "cannot pass"},
		{`{effects: {}}`, "nothing is said"},
		{`{effects: {completed: {a: {}}}}`, "cannot fail"},
		{`{files: {others: any}}`, "nothing is said"},
		{`{files: {at: {a: {}}}}`, "nothing is said of the file"},
		{`{files: {at: {a: {absent: true, contains: b}}}}`, "cannot pass"},
		{`{asked: {none: false}}`, "no list of questions"},
		{`{asked: []}`, "empty"},
		{`{stop: answr}`, "no run stops with"},
		{`{stop: [answer, finished, pending, limit, stalled, cancelled, failed]}`, "cannot fail"},
		{`{spent: {}}`, "nothing is bounded"},
		{`{spent: {round: {max: 1}}}`, "there is no figure"},
		{`{any: []}`, "list of checks is empty"},
		{`{at_least: {n: 2, of: [{stop: answer}]}}`, "cannot pass"},
	} {
		one, faults := compile(t, row.text)
		if one != nil || !strings.Contains(strings.Join(faults, "\n"), row.want) {
			t.Errorf("%s: got %q, want %q", row.text, faults, row.want)
		}
	}
}

// TestPanics gives no verdict for a check that fails itself.
func TestPanics(t *testing.T) {
	one, _ := compile(t, `{spent: {rounds: {max: 2}}}`)
	got := one.Judge(nil)
	if got.Pass || !strings.Contains(got.Error, "the check failed") {
		t.Errorf("got %+v, want an error", got)
	}
}

// TestScore weighs checks, and lets only the gating ones decide.
func TestScore(t *testing.T) {
	var checks []*check.Check
	for _, text := range []string{`{stop: answer, weight: 3}`, `{stop: limit, observe: true}`} {
		one, _ := compile(t, text)
		checks = append(checks, one)
	}
	r := good()
	check.Judge(r, checks)
	if got := fmt.Sprintf("%s %.2f", r.Verdict, r.Score); got != "pass 0.75" {
		t.Errorf("got %s, want pass 0.75", got)
	}
}
