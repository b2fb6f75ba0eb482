package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/script"
)

const lost = "error: No result was recorded: the run was interrupted. The call may or may not have been executed; look before you send it again."

func TestRepair(t *testing.T) {
	ask, one, two := llm.User("go"), llm.Assistant(call("a", "x", "{}")), llm.Assistant(text("so"), call("a", "x", "{}"), call("b", "x", "{}"))
	ra, rb, hi := llm.Results(answer("a", "1")), llm.Results(answer("b", "2")), llm.Assistant(text("hi"))
	part := func(role llm.Role, parts ...llm.Part) llm.Message { return llm.Message{Role: role, Parts: parts} }
	for name, test := range map[string]struct {
		msgs  []llm.Message
		want  string
		codes string
	}{
		"a call that was never answered": {[]llm.Message{ask, one, ask, hi}, "user: go\nassistant: a x {}\ntool: a = " + lost + "\nuser: go\nassistant: hi\n", "no_result@1"},
		"one of two":                     {[]llm.Message{two, rb, hi}, "assistant: so\nassistant: a x {}\nassistant: b x {}\ntool: a = " + lost + "\ntool: b = 2\nassistant: hi\n", "no_result@0"},
		"the calls of the last reply":    {[]llm.Message{one, hi, two, ra, ask}, "assistant: a x {}\ntool: a = " + lost + "\nassistant: hi\nassistant: so\nassistant: a x {}\nassistant: b x {}\ntool: a = 1\nuser: go\n", "no_result@0"},
		"a word before the results":      {[]llm.Message{ask, one, ask, ra}, "user: go\nassistant: a x {}\ntool: a = 1\nuser: go\n", "misplaced_result@3"},
		"results behind the next reply":  {[]llm.Message{one, hi, ra}, "assistant: a x {}\ntool: a = 1\nassistant: hi\n", "misplaced_result@2"},
		"results by the user":            {[]llm.Message{two, part(llm.RoleUser, answer("b", "2"), text("and?"), answer("a", "1"))}, "assistant: so\nassistant: a x {}\nassistant: b x {}\ntool: a = 1\ntool: b = 2\nuser: and?\n", "misplaced_result@1 misplaced_result@1"},
		"results in two messages":        {[]llm.Message{two, ra, rb}, "assistant: so\nassistant: a x {}\nassistant: b x {}\ntool: a = 1\ntool: b = 2\n", "misplaced_result@2"},
		"results out of order":           {[]llm.Message{two, llm.Results(answer("b", "2"), answer("a", "1"))}, "assistant: so\nassistant: a x {}\nassistant: b x {}\ntool: a = 1\ntool: b = 2\n", "result_order@0"},
		"a result without its call":      {[]llm.Message{ra, ask}, "user: go\n", "no_call@0"},
		"a result before its call":       {[]llm.Message{ask, ra, one}, "user: go\nassistant: a x {}\n", "no_call@1"},
		"a second result":                {[]llm.Message{one, ra, ra}, "assistant: a x {}\ntool: a = 1\n", "second_result@2"},
		"a second result, next to it":    {[]llm.Message{one, llm.Results(answer("a", "1"), answer("a", "2")), hi}, "assistant: a x {}\ntool: a = 1\nassistant: hi\n", "second_result@1"},
		"an id that begins anew":         {[]llm.Message{one, hi, one, ra}, "assistant: a x {}\ntool: a = " + lost + "\nassistant: hi\nassistant: a x {}\ntool: a = 1\n", "no_result@0"},
		"calls with the same id": {[]llm.Message{llm.Assistant(call("a", "x", "1"), call("a", "y", "2"),
			call("a_1", "z", "3")), llm.Results(answer("a", "1"), answer("a", "2"))}, "assistant: a x 1\nassistant: a_2 y 2\nassistant: a_1 z 3\ntool: a = 1\ntool: a_2 = 2\n", "call_id@0"},
		"calls without an id": {[]llm.Message{llm.Assistant(call("", "x", ""), call("", "y", "")), llm.Results(answer("", "1"), answer("", "2"))}, "assistant: call_1 x \nassistant: call_2 y \ntool: call_1 = 1\ntool: call_2 = 2\n", "call_id@0 call_id@0"},
		"empty messages":      {[]llm.Message{part(llm.RoleUser), ask, part(llm.RoleTool), part(llm.RoleSystem), hi}, "user: go\nassistant: hi\n", "empty_message@0 empty_message@2 empty_message@3"},
		"parts where they cannot be": {[]llm.Message{part(llm.RoleUser, call("a", "x", ""), text("go")),
			part(llm.RoleSystem, llm.Reasoning{Text: "hm"}), one, part(llm.RoleTool, text("no"), answer("a", "1"))}, "user: go\nassistant: a x {}\ntool: a = 1\n", "misplaced_part@0 misplaced_part@1 misplaced_part@3"},
		"a call within a result": {[]llm.Message{one,
			llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{call("x", "y", ""), text("1")}})}, "assistant: a x {}\ntool: a = 1\n", "misplaced_part@1"},
		"decisions":                        {[]llm.Message{ask, llm.DecisionMessage(llm.Decision{Key: "run/1/0"}), one}, "user: go\nassistant: a x {}\n", "misplaced_part@1"},
		"a result within the reply itself": {[]llm.Message{llm.Assistant(call("a", "x", "{}"), answer("a", "1"), text("so"))}, "assistant: a x {}\nassistant: so\ntool: a = 1\n", "misplaced_result@0"},
	} {
		before := jsonOf(t, test.msgs)
		healed, mends := llm.Repair(test.msgs)
		if diff := cmp.Diff(say(healed), test.want); diff != "" {
			t.Errorf("%s: got\n%s%s", name, say(healed), diff)
		}
		var codes []string
		for _, m := range mends {
			codes = append(codes, fmt.Sprintf("%s@%d", m.Code, m.Message))
			if m.Text == "" || m.Action == "" {
				t.Errorf("%s: a mend without words: %+v", name, m)
			}
		}
		if got := strings.Join(codes, " "); got != test.codes {
			t.Errorf("%s: got the mends %s, want %s", name, got, test.codes)
		}
		if err := valid(healed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(llm.Check(test.msgs)); n != len(mends) {
			t.Errorf("%s: %d faults and %d mends", name, n, len(mends))
		}
		if jsonOf(t, test.msgs) != before {
			t.Errorf("%s: the input has changed", name)
		}
	}
}

// If one fault has no repair, all faults are reported and nothing is repaired.
func TestRepairLeavesFaultsWithoutARepair(t *testing.T) {
	for name, bad := range map[string]llm.Message{
		"unknown_role": {Role: "human", Parts: []llm.Part{text("a")}},
		"unknown_part": llm.Assistant(text("a"), nil),
	} {
		msgs := []llm.Message{llm.Results(answer("x", "")), bad, llm.Results(llm.ToolResult{Parts: []llm.Part{nil}})}
		healed, mends := llm.Repair(msgs)
		if &healed[0] != &msgs[0] || len(healed) != 3 || mends != nil {
			t.Errorf("%s: got %v, %v", name, healed, mends)
		}
		faults := llm.Check(msgs)
		if len(faults) != 4 || faults[0].Code != "no_call" || faults[1].Code != name || faults[2].Code != "unknown_part" {
			t.Errorf("%s: got %+v", name, faults)
		}
	}
}

func TestRules(t *testing.T) {
	think := func(kind string) llm.Reasoning {
		return llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(`{"type":"` + kind + `"}`)}}
	}
	msgs := []llm.Message{llm.System("be brief"), llm.Assistant(text("hi"), think("thinking"), think("redacted_thinking")), llm.User("go"),
		llm.Assistant(think("thinking"), text("hi")), llm.User("go"), llm.Assistant(think("web_search_tool_result"))}
	for api, want := range map[string]int{"openai-chat": 0, "openai-responses": 0, "gemini": 1, "anthropic": 2, "another": 0} {
		r := rulesOf(api)
		healed, mends := r.Repair(msgs)
		if len(mends) != want || len(r.Check(msgs)) != want || len(r.Check(healed)) != 0 {
			t.Errorf("%s: got %+v, then %+v", api, mends, r.Check(healed))
		}
	}
	healed, _ := rulesOf("anthropic").Repair(msgs)
	if got := say(healed[:3]); got != "system: be brief\nuser: What was said before this is not recorded.\nassistant: hi\n" {
		t.Errorf("got %s", got)
	}
}

// The transcript of n messages has no fault: a question, then replies with two calls, and their
// results.
func soundHistory(n int) []llm.Message {
	msgs := []llm.Message{llm.User("go")}
	for len(msgs) < n {
		msgs = append(msgs, llm.Assistant(llm.Reasoning{Text: "hm"}, call("a", "x", "{}"), call("b", "x", "{}")),
			llm.Results(answer("a", "1"), answer("b", "2")))
	}
	return msgs
}

func TestValidHistoriesAreUnchanged(t *testing.T) {
	msgs := soundHistory(201)
	if n := testing.AllocsPerRun(20, func() {
		healed, mends := llm.Repair(msgs)
		if &healed[0] != &msgs[0] || len(healed) != len(msgs) || mends != nil {
			t.Fatal("a valid transcript comes back changed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for _, msgs := range [][]llm.Message{nil, {}, {llm.Assistant()}, {llm.Assistant(call("a", "x", "")), llm.User("and")}} {
		if f := llm.Check(msgs); f != nil {
			t.Errorf("got %+v for %s", f, say(msgs))
		}
	}
}

// anyHistory draws messages that follow no rule except the closed set of parts.
func anyHistory(t *rapid.T) []llm.Message {
	id := func() string {
		return rapid.SampledFrom([]string{"a", "a", "b", "c", "", "a_1", "call_1"}).Draw(t, "id")
	}
	var msgs []llm.Message
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		m := llm.Message{Role: rapid.SampledFrom([]llm.Role{"user", "assistant", "assistant", "tool", "tool", "system", "developer"}).Draw(t, "role")}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			kind := rapid.IntRange(0, 9).Draw(t, "part")
			switch {
			case kind == 0:
				m.Parts = append(m.Parts, llm.Decision{})
			case kind == 1:
				m.Parts = append(m.Parts, llm.Reasoning{Text: "hm"})
			case kind == 2:
				m.Parts = append(m.Parts, text("x"))
			case kind == 3:
				m.Parts = append(m.Parts, llm.ToolResult{CallID: id(), Parts: []llm.Part{call("x", "y", "")}})
			case kind < 5 || m.Role == llm.RoleAssistant:
				m.Parts = append(m.Parts, call(id(), "x", "{}"))
			default:
				m.Parts = append(m.Parts, answer(id(), fmt.Sprint(len(msgs), len(m.Parts))))
			}
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// mustRepair checks the guarantees of a repair for the given messages.
func mustRepair(t fataler, msgs []llm.Message, r llm.HistoryRules) {
	t.Helper()
	before := jsonOf(t, msgs)
	healed, mends := r.Repair(msgs)
	if err := valid(healed); err != nil {
		t.Fatal(err, "in\n"+say(healed)+"from\n"+say(msgs))
	}
	if r.Settled { // as text after another reply
		if err := valid(append(slices.Clip(healed), llm.Assistant(text("end")))); err != nil {
			t.Fatal(err, "in\n"+say(healed)+"from\n"+say(msgs))
		}
	}
	if again, more := r.Repair(healed); len(more) > 0 || len(again) != len(healed) {
		t.Fatal("healed again:", more, "in\n"+say(healed))
	}
	if faults := r.Check(msgs); len(faults) != len(mends) || (len(mends) == 0) != (say(healed) == say(msgs)) {
		t.Fatal("faults", faults, "mends", mends, "of\n"+say(msgs))
	}
	if jsonOf(t, msgs) != before {
		t.Fatal("the input has changed:\n" + say(msgs) + before)
	}
	// A repair invents no text and no result, except the result that reports a missing result. It
	// drops no reply.
	said := say(msgs)
	replies := func(msgs []llm.Message) (n int) {
		for _, m := range msgs {
			if m.Role == llm.RoleAssistant {
				n++
			}
			for _, p := range m.Parts {
				if x, ok := p.(llm.ToolResult); ok && !strings.Contains(said, x.Text()) &&
					!strings.HasPrefix(x.Text(), "No result was recorded") {
					t.Fatal("a result is made up: " + x.Text())
				}
			}
		}
		return n
	}
	if replies(healed) != replies(msgs) {
		t.Fatal("a reply got lost:\n" + say(healed) + "from\n" + said)
	}
}

func TestAnyHistoryIsRepaired(t *testing.T) {
	soak.Sequential(t)
	rapid.Check(t, func(t *rapid.T) {
		mustRepair(t, anyHistory(t), rulesOf(rapid.SampledFrom([]string{"", "openai-chat", "anthropic", "gemini"}).Draw(t, "api")))
	})
}

// The history is a valid transcript that is cut at any message, shuffled, or without some messages.
func TestCutAndShuffledHistoriesAreRepaired(t *testing.T) {
	soak.Sequential(t)
	whole := append(soundHistory(9), llm.Assistant(text("done")), llm.User("and"),
		llm.Assistant(call("c", "x", "{}"), call("d", "x", "{}")), llm.Results(answer("d", "4")))
	for from := range whole {
		for to := from; to <= len(whole); to++ {
			mustRepair(t, whole[from:to], llm.HistoryRules{})
			mustRepair(t, whole[from:to], rulesOf("openai-responses"))
			if from == 0 { // after a crash all text is kept
				if healed, mends := llm.Repair(whole[:to]); len(mends) > 0 {
					t.Errorf("cut at %d: %v\n%s", to, mends, say(healed))
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		msgs := rapid.Permutation(whole).Draw(t, "messages")
		mustRepair(t, msgs[:rapid.IntRange(0, len(msgs)).Draw(t, "to")], llm.HistoryRules{})
	})
}

// The cost of a fault is proportional to its message, so that a hostile history is repaired in
// linear time.
func TestRepairIsLinear(t *testing.T) {
	soak.Sequential(t)
	cost := func(n int) float64 {
		m, r := llm.Assistant(), llm.Results()
		for range n {
			m.Parts, r.Parts = append(m.Parts, call("a", "x", "{}")), append(r.Parts, answer("a", "1"))
		}
		slices.Reverse(r.Parts)
		msgs := []llm.Message{m, llm.User("go"), r, llm.Assistant(text("hi"))}
		return testing.AllocsPerRun(1, func() { llm.Repair(msgs) })
	}
	if small, large := cost(1000), cost(8000); large > 9*small {
		t.Errorf("1000 calls cost %v allocations, 8000 %v", small, large)
	}
}

func FuzzRepair(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"x","args":{}}]},{"role":"user","parts":[{"type":"text","text":"go"}]},{"role":"tool","parts":[{"type":"tool_result","call_id":"a","parts":[]}]}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var msgs []llm.Message
		if json.Unmarshal(in, &msgs) != nil {
			return
		}
		for _, c := range llm.Check(msgs) {
			if c.Code == "unknown_role" || c.Code == "unknown_part" {
				return
			}
		}
		mustRepair(t, msgs, llm.HistoryRules{})
	})
}

// A run repairs a stored history, emits a notice and continues.
func TestRunsRepairStoredHistories(t *testing.T) {
	ask, one := llm.User("go"), llm.Assistant(call("a", "active", "{}"))
	m := script.New(script.Loop(script.Say("hi")))
	a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{says("active", "did")}}
	for name, test := range map[string]struct {
		msgs []llm.Message
		want string
	}{
		"dangling":           {[]llm.Message{ask, one, llm.Assistant(text("hi")), ask}, "message 1: call \"a\" has no result; it is answered with an error that says so"},
		"same id in a reply": {[]llm.Message{ask, llm.Assistant(call("a", "active", "{}"), call("a", "active", "{}"))}, "the call is now a_1"},
		"no id":              {[]llm.Message{ask, llm.Assistant(call("", "active", "{}"))}, "the call is now call_1"},
	} {
		for _, stored := range []bool{false, true} {
			seq := a.Stream(t.Context(), test.msgs...)
			if stored {
				seq = a.ResumeStream(t.Context(), &pawl.Result{Messages: test.msgs})
			}
			events, res, err := collect(seq)
			if err != nil || res.Stop != pawl.StopAnswer {
				t.Errorf("%s, stored %t: got %v, %+v", name, stored, err, res)
				continue
			}
			mustBeValid(t, res)
			e := events[1]
			if events[0].Kind != pawl.EventRunStarted || e.Kind != pawl.EventNotice || e.Code != "healed" ||
				!strings.Contains(e.Text, test.want) || !strings.Contains(string(e.Data), `"did":`) {
				t.Errorf("%s, stored %t: got %+v", name, stored, e)
			}
		}
	}
	// New messages of the caller are not repaired: a fault in them is an error.
	for name, msg := range map[string]llm.Message{"no call": llm.Results(answer("b", "")), "twice": llm.Results(answer("a", ""), answer("a", ""))} {
		if _, err := a.Resume(t.Context(), &pawl.Result{Messages: []llm.Message{ask, one}}, msg); err == nil {
			t.Errorf("%s: a result that answers nothing is taken", name)
		}
	}
}

func BenchmarkRepair(b *testing.B) {
	whole := soundHistory(200)
	broken := slices.Concat(whole[:100], whole[102:150], whole[151:])
	for name, msgs := range map[string][]llm.Message{"whole": whole, "broken": broken} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				llm.Repair(msgs)
			}
		})
	}
}

// The rows are requirements of an API beyond a valid transcript, each with its smallest repair.
func TestRulesOfEachAPI(t *testing.T) {
	ask, hi, open := llm.User("go"), llm.Assistant(text("hi")), llm.Assistant(call("a", "x", "{}"))
	thought := llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(`{"type":"thinking"}`)}}
	for _, test := range []struct {
		name string
		msgs []llm.Message
		want map[string]string // notice codes by API
	}{
		{"sound", []llm.Message{llm.System("s"), ask, hi}, nil},
		{"an open call", []llm.Message{ask, open}, map[string]string{"openai-chat": "no_result", "openai-responses": "no_result", "anthropic": "no_result", "gemini": "no_result"}},
		{"the model first", []llm.Message{llm.System("s"), hi, ask}, map[string]string{"anthropic": "start", "gemini": "start"}},
		{"the user's silence first", []llm.Message{llm.User(" "), hi, ask}, map[string]string{"anthropic": "start", "gemini": "start"}},
		{"silence alone", []llm.Message{llm.User("")}, nil},
		{"a thought at the end", []llm.Message{ask, llm.Assistant(text("hi"), thought), ask}, map[string]string{"anthropic": "reply_end"}},
	} {
		for _, api := range []string{"", "openai-chat", "openai-responses", "anthropic", "gemini"} {
			got := ""
			for _, f := range rulesOf(api).Check(test.msgs) {
				got += string(f.Code)
			}
			if got != test.want[api] {
				t.Errorf("%s, %q: got %q, want %q", test.name, api, got, test.want[api])
			}
			mustRepair(t, test.msgs, rulesOf(api))
		}
	}
}

// rulesOf returns the rules of an API for histories. An empty name means the rules of every API.
func rulesOf(api string) llm.HistoryRules {
	a, _ := provider.FindAPI(api)
	return a.Rules
}
