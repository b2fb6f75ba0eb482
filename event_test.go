package pawl_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// everyEvent has one event of each kind with all its fields set, and its text.
func everyEvent() []struct {
	event pawl.Event
	text  string
} {
	c := call("c1", "look", `{"a":1}`)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	x := &pawl.Execution{Key: "run/1/0", Index: 2, Call: c, Outcome: pawl.OutcomePending, Error: "e",
		Ends: pawl.StopFailed, Repairs: []string{"r"},
		Result: answer("c1", "x"),
		Pending: []pawl.PendingCall{{Key: "run/1/0", Call: c, Outcome: pawl.OutcomePending, Digest: "d", Attempt: 1,
			Why: "w", Passive: true}},
		Values: pawl.Values{"v": json.RawMessage(`1`)}, Spent: pawl.Spent{Rounds: 1, Requests: 2, Calls: 3,
			Usage: llm.Usage{Input: 4, Cost: 0.5}},
		Attempts: 2, Decision: &llm.Decision{Key: "run/1/0", By: "ann"}, Started: at, Ended: at.Add(time.Second)}
	const callText = `{"type":"tool_call","id":"c1","name":"look","args":{"a":1}}`
	const noUsage = `{"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}`
	return []struct {
		event pawl.Event
		text  string
	}{
		{pawl.Event{Kind: pawl.EventRunStarted, Agent: "a"}, `"agent":"a"`},
		{pawl.Event{Kind: pawl.EventSteered, Path: "run/1/model",
			Message: &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{text("a")}}},
			`"path":"run/1/model","message":{"role":"user","parts":[{"type":"text","text":"a"}]}`},
		{pawl.Event{Kind: pawl.EventStepStarted}, ``},
		{pawl.Event{Kind: pawl.EventRequestStarted, Path: "run/0/model", Model: "m", Messages: 2, Tools: 1, Choice: &llm.ToolChoice{}},
			`"path":"run/0/model","model":"m","messages":2,"tools":1,"choice":"auto"`},
		{pawl.Event{Kind: pawl.EventText, Index: 1, Text: "hi"}, `"index":1,"text":"hi"`},
		{pawl.Event{Kind: pawl.EventTextRetracted, Index: 1, Text: "hi"}, `"index":1,"text":"hi"`},
		{pawl.Event{Kind: pawl.EventReasoning, Text: "hm"}, `"index":0,"text":"hm"`},
		{pawl.Event{Kind: pawl.EventCallDelta, Index: 1, Text: `{"a`, Call: &llm.ToolCall{ID: "c1", Name: "look"}}, `"index":1,"text":"{\"a","id":"c1","name":"look"`},
		{pawl.Event{Kind: pawl.EventCallReady, Index: 1, Call: &c}, `"index":1,"call":` + callText},
		{pawl.Event{Kind: pawl.EventResponseReceived, Path: "run/0/model",
			Response: &llm.Response{Message: llm.Assistant(), Finish: llm.FinishReasonStop}},
			`"path":"run/0/model","response":{"message":{"role":"assistant","parts":[]},"finish":"stop","usage":` + noUsage + `,"model":"","id":""}`},
		{pawl.Event{Kind: pawl.EventCallStarted, Path: "run/1/0", Call: &c, Attempt: 1}, `"path":"run/1/0","call":` + callText + `,"attempt":1`},
		{pawl.Event{Kind: pawl.EventProgress, Path: "run/1/0", Text: "half", Data: json.RawMessage(`50`)}, `"path":"run/1/0","text":"half","data":50`},
		{pawl.Event{Kind: pawl.EventCallCompleted, Path: "run/1/0", Execution: x},
			`"path":"run/1/0","execution":{"key":"run/1/0","index":2,"call":` + callText + `,"outcome":"pending",` +
				`"result":{"type":"tool_result","call_id":"c1","parts":[{"type":"text","text":"x"}]},"error":"e","ends":"failed","repairs":["r"],` +
				`"waiting":[{"key":"run/1/0","call":` + callText + `,"outcome":"pending","digest":"d","attempt":1,"why":"w","passive":true}],"values":{"v":1},` +
				`"spent":{"rounds":1,"requests":2,"calls":3,"usage":{"input":4,"output":0,"reasoning":0,"cache_read":0,"cache_write":0,"cost":0.5}},"attempts":2,` +
				`"decision":{"type":"decision","key":"run/1/0","digest":"","approve":false,"by":"ann","reason":""},"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06Z"}`},
		{pawl.Event{Kind: pawl.EventNotice, Code: "retry", Text: "again", Data: json.RawMessage(`{}`)}, `"code":"retry","text":"again","data":{}`},
		{pawl.Event{Kind: pawl.EventGap, Text: "t", Lost: map[pawl.EventKind]int{pawl.EventText: 2}}, `"lost":{"text":2},"text":"t"`},
		{pawl.Event{Kind: pawl.EventStep, Outcomes: []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeSkipped},
			Spent: &pawl.Spent{Rounds: 1}},
			`"outcomes":["ok","skipped"],"spent":{"rounds":1,"requests":0,"calls":0,"usage":` + noUsage + `}`},
		{pawl.Event{Kind: pawl.EventRunEnded, Error: "e",
			Result: &pawl.Result{Messages: []llm.Message{llm.User("a")}, Stop: pawl.StopFailed, Cause: "c"}},
			`"result":{"messages":[{"role":"user","parts":[{"type":"text","text":"a","label":{"by":"typed"}}]}],"spent":{"rounds":0,"requests":0,"calls":0,"usage":` + noUsage + `},` +
				`"stop":"failed","cause":"c"},"error":"e"`},
	}
}

func TestEventsRoundTrip(t *testing.T) {
	for i, test := range everyEvent() {
		e := test.event
		e.Run, e.Step, e.Seq = "run", i, int64(i+1)
		b, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%s: %v", e.Kind, err)
			continue
		}
		var got, want map[string]json.RawMessage
		text := strings.TrimSuffix(`{"event":"`+string(e.Kind)+`","run":"run","step":`+jsonOf(t, i)+`,"seq":`+jsonOf(t, i+1)+`,`+test.text, ",") + "}"
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strs(got), strs(want)); diff != "" {
			t.Errorf("%s: got -, want +\n%s", e.Kind, diff)
		}
		var back pawl.Event
		if err := json.Unmarshal(b, &back); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if diff := cmp.Diff(back, e, sameData); diff != "" {
			t.Errorf("%s: got -, want +\n%s", e.Kind, diff)
		}
	}
}

func strs(m map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// The list of kinds is closed in the code, in the docs and in both directions of the JSON form.
func TestEventKindsAreAClosedList(t *testing.T) {
	var kinds []string
	for _, test := range everyEvent() {
		kinds = append(kinds, string(test.event.Kind))
	}
	docs, err := os.ReadFile("docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	_, table, _ := strings.Cut(string(docs), "## Kinds")
	table, _, _ = strings.Cut(table, "## What")
	for line := range strings.Lines(table) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			told = append(told, name)
		}
	}
	if !slices.Equal(kinds, told) {
		t.Errorf("tested %q,\n docs: %q", kinds, told)
	}
	if b, err := json.Marshal(pawl.Event{Kind: "began"}); err == nil {
		t.Errorf("an unknown kind was written as %s", b)
	}
	// an empty event of each kind is written without a panic and read again
	for _, k := range kinds {
		b, err := json.Marshal(pawl.Event{Kind: pawl.EventKind(k)})
		if err != nil {
			t.Errorf("%s: %v", k, err)
			continue
		}
		if err := json.Unmarshal(b, new(pawl.Event)); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}

// A run's Result in an event leaves out the steps, because each was emitted on its own.
func TestRunEndedLeavesOutTheSteps(t *testing.T) {
	res := &pawl.Result{Stop: pawl.StopAnswer, Steps: []pawl.Step{{}}}
	b := jsonOf(t, pawl.Event{Kind: pawl.EventRunEnded, Result: res})
	if strings.Contains(b, "steps") || len(res.Steps) != 1 {
		t.Errorf("got %s, and the Result has %d steps", b, len(res.Steps))
	}
}

// Every exported field of Event names the kinds that carry it, or is not part of the JSON form.
func TestFieldsOfEventsNameTheirKinds(t *testing.T) {
	kinds := []string{"all"}
	for _, test := range everyEvent() {
		kinds = append(kinds, string(test.event.Kind))
	}
	if wrong := withoutKinds(reflect.TypeFor[pawl.Event](), kinds); len(wrong) > 0 {
		t.Error(wrong)
	}
	type control struct {
		None  int `json:"none"`
		Wrong int `json:"wrong" on:"text began"`
		Out   int `json:"-"`
		Right int `json:"right" on:"text"`
	}
	if got := withoutKinds(reflect.TypeFor[control](), kinds); !slices.Equal(got, []string{"None", "Wrong"}) {
		t.Errorf("the control has fields without kinds: %q", got)
	}
}

// withoutKinds returns the fields of an event type whose tag "on" names no kind or an unknown kind.
func withoutKinds(event reflect.Type, kinds []string) (wrong []string) {
	for i := range event.NumField() {
		f := event.Field(i)
		on := strings.Fields(f.Tag.Get("on"))
		unknown := slices.ContainsFunc(on, func(k string) bool { return !slices.Contains(kinds, k) })
		if f.Tag.Get("json") != "-" && (len(on) == 0 || unknown) {
			wrong = append(wrong, f.Name)
		}
	}
	return wrong
}
