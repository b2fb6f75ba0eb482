package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/llm/derivation"
	"github.com/pawl-go/pawl/team"
)

// The complete values have every exported field set. A new field makes TestJSONFormsAreComplete
// fail until it is set here.
var (
	formTime   = time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC)
	formData   = json.RawMessage(`{"n":1,"text":"<&>"}`)
	formOpaque = &llm.Opaque{Provider: "openai", Data: json.RawMessage(`{"id":"rs_1"}`)}
	formFloat  = 0.25
	formBool   = true

	formLabel = &llm.Label{
		By:      llm.Attached,
		From:    []llm.Source{{Kind: "tool", Name: "look"}},
		Readers: []string{"server:bank"},
	}
	formText      = llm.Text{Text: "so, <b> & \u2028 ü", Opaque: formOpaque, Label: formLabel}
	formReasoning = llm.Reasoning{Text: "hm", Opaque: formOpaque}
	formMediaURL  = llm.Media{MIME: "image/png", URL: "https://example.org/a.png", Label: formLabel}
	formMediaData = llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}, Label: formLabel}
	formCall      = llm.ToolCall{ID: "c1", Name: "pay", Args: formData, Opaque: formOpaque}
	formBroken    = llm.ToolCall{ID: "c2", Name: "pay", Args: json.RawMessage(`{"to":`), Opaque: formOpaque}
	formAnswer    = llm.ToolResult{CallID: "c1", Parts: []llm.Part{formText, formMediaURL, formMediaData},
		IsError: true, Data: formData, Key: "run/1/0", LeftOut: 40, Label: formLabel}
	formDecision = llm.Decision{Key: "run/1/0", Digest: "d1", Approve: true, Args: formData, By: "ann", Reason: "fits", Result: &formAnswer,
		Identity: "token ann", At: formTime}
	formMessage = llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{formText, formReasoning, formMediaURL,
		formMediaData, formCall, formBroken, formAnswer, formDecision}}

	formUsage = llm.Usage{Input: 1, Output: 2, Reasoning: 3, CacheRead: 4, CacheWrite: 5, CacheWriteLong: 4,
		Cost: 0.5, Priced: 3, Raw: formData}
	formSpent    = pawl.Spent{Rounds: 1, Requests: 2, Calls: 3, Usage: formUsage, Corrections: 4}
	formChoice   = llm.ToolChoice{Mode: llm.ToolNamed, Names: []string{"pay", "look"}}
	formSettings = llm.Settings{MaxTokens: 1, Temperature: &formFloat, TopP: &formFloat,
		StopSequences: []string{"END"}, Effort: "high", Parallel: &formBool,
		// one element: the order of several is not part of the form
		Options: map[string]json.RawMessage{"openai": formData}}
	formTool = &pawl.Tool{Name: "pay", Server: "bank", Deferred: true, NoRepair: true, StatesSending: true, Description: "Pays.",
		Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"string"}`)}
	formRequest = llm.Request{Key: "run/1/model", Model: "m", Background: formOpaque, Messages: []llm.Message{formMessage},
		Tools: []*llm.ToolSpec{formTool.Spec()}, Choice: formChoice,
		Output: json.RawMessage(`{"type":"object"}`), Settings: formSettings, Whole: true, Turn: 1, Edited: 1, Summarize: true}
	formResponse = llm.Response{Message: formMessage, Finish: llm.FinishReasonToolCalls, Usage: formUsage,
		Model: "m-1", ID: "r1", Requests: 2}
	formNotice = llm.Notice{Code: "retry", Text: "again", Data: formData}

	formWaiting = pawl.PendingCall{Key: "run/1/0", Call: formCall, Outcome: pawl.OutcomePending, Digest: "d1",
		Attempt: 1, Why: "it pays", Passive: true, Expires: formTime,
		Doubts: []pawl.Doubt{{Class: "stranger", Arg: "iban", Value: "DE44", Source: "text that look returned",
			Sentence: "to DE44", Said: "Pay."}},
		ValidFor: time.Minute, Schema: formData,
		Granted: []llm.Decision{formDecision}}
	formValues    = pawl.Values{"a": formData} // one element, for the same reason
	formExecution = pawl.Execution{Key: "run/1/0", Index: 1, Call: formCall, Outcome: pawl.OutcomePending,
		Result: formAnswer, Error: "failed", Certainty: delivery.Unknown, Ends: pawl.StopFinished,
		Repairs: []string{"a comma"}, Pending: []pawl.PendingCall{formWaiting}, Values: formValues,
		Spent: formSpent, Attempts: 2, Decision: &formDecision, Cached: true, Limited: 3,
		Derivations: []derivation.Value{{Arg: "to", Value: "bob", Ground: derivation.Record, Call: "c1", Name: "budget"}},
		Started:     formTime, Ended: formTime.Add(time.Second)}
	formStep = pawl.Step{Request: &formRequest, Response: &formResponse,
		Executions: []pawl.Execution{formExecution}, Error: "broken"}
	formResult = pawl.Result{Messages: []llm.Message{formMessage}, Steps: []pawl.Step{formStep}, Spent: formSpent,
		Stop: pawl.StopPending, Answer: &pawl.Answer{Text: "Rain.", From: pawl.AnswerTool, Key: "run/1/0", Forced: true},
		Limit: "calls", Cause: "calls wait", Interrupted: "shutdown",
		Pending: []pawl.PendingCall{formWaiting}, Values: formValues, Unread: []llm.Message{formMessage},
		Output: formData, Repairs: []string{"a fence"}, Unfit: []string{"it is no JSON"}}

	formTask = pawl.Task{Agent: "clerk", Run: "run", Step: 1, Key: "run/1/0", Index: 1, Call: formCall,
		Decisions: []llm.Decision{formDecision}, Values: formValues,
		Refuse: "no", Attempt: 1, Pending: &formWaiting, PendingInside: []pawl.PendingCall{formWaiting},
		Since: formTime, HeldBy: "pay"}
	formLimits = pawl.Limits{Rounds: 1, Calls: 2, CallsPerStep: 3, Tokens: 4, Cost: 0.5, Time: time.Second,
		Corrections: 6, LoopThreshold: 7, AtLimit: pawl.AtLimitReturn}
	formBranch = pawl.Branch{Key: "run/1/0/clerk", Depth: 1, Plan: formData, Messages: []llm.Message{formMessage},
		Around: []pawl.Allowance{{Limits: formLimits, Calls: 1, Tokens: 2, Cost: 0.5, Refused: true}}}
	formFault = llm.HistoryFault{Code: "misplaced_result", Message: 1, Part: 2, Text: "it stands elsewhere"}
	formMend  = llm.Repaired{HistoryFault: formFault, Action: "moved"}

	// formEvent has every field of every kind. The JSON form of an event holds only the fields of
	// its kind.
	formEvent = pawl.Event{Kind: pawl.EventText, Run: "run", Step: 1, Seq: 2, Path: "run/1/0", Agent: "clerk",
		Model: "m", Messages: 3, Tools: 4, Choice: &formChoice, Index: 5,
		Text: "so", Code: "retry", Data: formData, Call: &formCall, Attempt: 6, Response: &formResponse,
		Execution: &formExecution, Message: &formMessage,
		Outcomes: []pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeError}, Spent: &formSpent, Result: &formResult,
		Error: "failed", Lost: map[pawl.EventKind]int{pawl.EventText: 7},
		Completed: &formStep, Offered: []*pawl.Tool{formTool}}
)

var formKinds = []pawl.EventKind{pawl.EventRunStarted, pawl.EventSteered, pawl.EventStepStarted,
	pawl.EventRequestStarted, pawl.EventText, pawl.EventTextRetracted,
	pawl.EventReasoning, pawl.EventCallDelta, pawl.EventCallReady, pawl.EventResponseReceived,
	pawl.EventCallStarted, pawl.EventProgress, pawl.EventCallCompleted,
	pawl.EventNotice, pawl.EventGap, pawl.EventStep, pawl.EventRunEnded}

func eventForms() []pawl.Event {
	var all []pawl.Event
	for _, kind := range formKinds {
		e := formEvent
		e.Kind = kind
		all = append(all, e)
	}
	return all
}

// wireForm is a value and its golden file.
type wireForm struct {
	file  string
	value any
	again func([]byte) ([]byte, error) // reads the form and writes it
}

func formOf[T any](file string, value T) wireForm {
	return wireForm{file, value, func(b []byte) ([]byte, error) {
		var back T
		if err := json.Unmarshal(b, &back); err != nil {
			return nil, err
		}
		return json.Marshal(back)
	}}
}

var wireForms = []wireForm{
	formOf("message", formMessage),
	formOf("roles", []llm.Message{{Role: llm.RoleSystem}, {Role: llm.RoleDeveloper}, {Role: llm.RoleUser},
		{Role: llm.RoleAssistant}, {Role: llm.RoleTool}}),
	formOf("tool_call", formCall),
	formOf("tool_call_text", formBroken),
	formOf("tool_result", formAnswer),
	formOf("decision", formDecision),
	formOf("opaque", formOpaque),
	formOf("request", formRequest),
	formOf("response", formResponse),
	formOf("settings", formSettings),
	formOf("tool_choice", []llm.ToolChoice{{Mode: llm.ToolAuto}, {Mode: llm.ToolNone}, {Mode: llm.ToolRequired}, formChoice}),
	formOf("usage", formUsage),
	formOf("notice", formNotice),
	formOf("result", formResult),
	formOf("step", formStep),
	formOf("execution", formExecution),
	formOf("waiting", formWaiting),
	formOf("values", formValues),
	formOf("spent", formSpent),
	formOf("task", formTask),
	formOf("branch", formBranch),
	formOf("fault", formFault),
	formOf("mend", formMend),
	formOf("effect", []pawl.Effect{pawl.EffectWrite, pawl.EffectIdempotent, pawl.EffectRead, pawl.EffectPure,
		pawl.EffectCompose}),
	formOf("event", eventForms()),
	formOf("words", wireWords),
}

// Golden files hold the JSON form of every exported type that has one. A form may gain fields but
// never changes otherwise: -update writes a golden file only if the new form contains the old form.
func TestJSONFormsStay(t *testing.T) {
	for _, form := range wireForms {
		t.Run(form.file, func(t *testing.T) {
			first, err := json.Marshal(form.value)
			if err != nil {
				t.Fatal(err)
			}
			second, err := form.again(first)
			if err != nil {
				t.Fatal(err)
			}
			if string(first) != string(second) {
				t.Errorf("the form changes when it is read and written again:\n%s", cmp.Diff(indented(t, first), indented(t, second)))
			}
			golden(t, filepath.Join("testdata", "jsonforms", form.file+".json"), first)
		})
	}
}

// A part by itself has the same form as within a message.
func TestPartsAloneHaveTheFormOfMessages(t *testing.T) {
	for _, part := range formMessage.Parts {
		alone, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := json.Marshal(llm.Message{Role: llm.RoleUser, Parts: []llm.Part{part}})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"role":"user","parts":[` + string(alone) + `]}`; string(whole) != want {
			t.Errorf("%T:\n got %s\nwant %s", part, whole, want)
		}
	}
}

// golden compares a JSON form with its file, or writes the file with -update.
func golden(t *testing.T, path string, form []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if *update {
		if err == nil {
			if lost := kept(decoded(t, want), decoded(t, form), ""); len(lost) > 0 {
				t.Fatalf("%s may gain fields and must not change otherwise:\n%s", path, strings.Join(lost, "\n"))
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		want = []byte(indented(t, form))
		err = os.WriteFile(path, want, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), indented(t, form)); diff != "" {
		t.Errorf("%s (-golden +now):\n%s", path, diff)
	}
}

func indented(t *testing.T, form []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, form, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

func decoded(t *testing.T, form []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(form, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// kept returns the members that a form had and no longer has. A new member is allowed, and so is a
// new element at the end of a list.
func kept(before, now any, at string) (lost []string) {
	switch before := before.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		if !ok {
			return []string{at + ": no object any more"}
		}
		for name, v := range before {
			if _, ok := now[name]; !ok {
				lost = append(lost, at+"/"+name+": gone")
				continue
			}
			lost = append(lost, kept(v, now[name], at+"/"+name)...)
		}
	case []any:
		now, ok := now.([]any)
		if !ok || len(now) < len(before) {
			return []string{at + ": a list that is shorter, or none"}
		}
		for i, v := range before {
			lost = append(lost, kept(v, now[i], fmt.Sprintf("%s/%d", at, i))...)
		}
	default:
		if before != now {
			lost = append(lost, fmt.Sprintf("%s: %v, was %v", at, now, before))
		}
	}
	return lost
}

// The comparison of forms reports a changed name, a changed value and a removed field. It allows a
// new field.
func TestTheComparisonOfFormsReportsAChange(t *testing.T) {
	const before = `{"message":{"role":"user","parts":[{"type":"text","text":"a"}]},"stop":"answer"}`
	for now, want := range map[string]string{
		before: "",
		`{"message":{"role":"user","parts":[{"type":"text","text":"a","new":1}]},"stop":"answer","more":{}}`: "",
		`{"message":{"role":"user","parts":[{"type":"text","words":"a"}]},"stop":"answer"}`:                  "/message/parts/0/text: gone",
		`{"message":{"role":"user","parts":[]},"stop":"answer"}`:                                             "/message/parts: a list that is shorter, or none",
		`{"message":{"role":"user","parts":[{"type":"text","text":"a"}]},"stop":"answered"}`:                 "/stop: answered, was answer",
		`{"message":{"role":"user","parts":[{"type":"text","text":"a"}]}}`:                                   "/stop: gone",
		`{"message":"user: a","stop":"answer"}`:                                                              "/message: no object any more",
	} {
		if got := strings.Join(kept(decoded(t, []byte(before)), decoded(t, []byte(now)), ""), "\n"); got != want {
			t.Errorf("%s:\n got %q\nwant %q", now, got, want)
		}
	}
}

// zeroFields are the fields of a complete value that may be zero: a media part has one of two
// fields set, and a tool in a request has four fields.
var zeroFields = map[reflect.Type][]string{
	reflect.TypeFor[llm.Media](): {"URL", "Data"},
	reflect.TypeFor[pawl.Tool](): {"Run", "Deferred", "Passive", "Effect", "Inline", "Timeout", "NoRepair", "MaxResult", "Serial", "Reconcile",
		"Concurrent", "Repair", "Address", "Pin", "StatesSending", "Label"},
}

// Every exported field of the values above is set, so that a new field must get a value and a place
// in the golden files.
func TestJSONFormsAreComplete(t *testing.T) {
	for _, form := range wireForms {
		if slices.Contains([]string{"roles", "tool_choice", "effect", "words"}, form.file) {
			continue // they list the values of one field
		}
		for _, at := range zero(reflect.ValueOf(form.value), form.file) {
			t.Errorf("%s is not set", at)
		}
	}
	type inner struct{ A, B int }
	got := zero(reflect.ValueOf(struct {
		In  []inner
		Nil *inner
	}{In: []inner{{A: 1}}}), "control")
	if want := []string{"control.In[0].B", "control.Nil"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// zero returns the exported zero fields in v, through pointers, lists, maps and parts.
func zero(v reflect.Value, at string) (all []string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return zero(v.Elem(), at)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			all = append(all, zero(v.Index(i), fmt.Sprintf("%s[%d]", at, i))...)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			all = append(all, zero(v.MapIndex(k), fmt.Sprintf("%s[%v]", at, k))...)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return nil
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported() || slices.Contains(zeroFields[v.Type()], f.Name):
			case v.Field(i).IsZero():
				all = append(all, at+"."+f.Name)
			default:
				all = append(all, zero(v.Field(i), at+"."+f.Name)...)
			}
		}
	}
	return all
}

// wireWords are the constants of the closed lists that leave the program.
var wireWords = map[string][]string{
	"event": words(formKinds),
	"role": {string(llm.RoleSystem), string(llm.RoleDeveloper), string(llm.RoleUser), string(llm.RoleAssistant),
		string(llm.RoleTool)},
	"finish": words([]llm.FinishReason{llm.FinishReasonStop, llm.FinishReasonLength, llm.FinishReasonToolCalls,
		llm.FinishReasonContentFilter, llm.FinishReasonError,
		llm.FinishReasonOther}),
	"outcome": words([]pawl.Outcome{pawl.OutcomeOK, pawl.OutcomeError, pawl.OutcomeInvalid, pawl.OutcomeUnknownTool,
		pawl.OutcomeBlocked, pawl.OutcomeDenied,
		pawl.OutcomeTimeout, pawl.OutcomeCancelled, pawl.OutcomePanicked, pawl.OutcomeSkipped, pawl.OutcomePending,
		pawl.OutcomeUnknown}),
	"certainty": words([]delivery.Certainty{delivery.NotSent, delivery.Refused, delivery.Unknown}),
	"ends":      {string(pawl.StopFailed), string(pawl.StopFinished)},
	"stop": words([]pawl.StopReason{pawl.StopAnswer, pawl.StopFinished, pawl.StopPending, pawl.StopLimit,
		pawl.StopStalled, pawl.StopCancelled, pawl.StopFailed}),
	"class": words([]pawl.StopClass{pawl.ClassAnswered, pawl.ClassWaiting, pawl.ClassLimited, pawl.ClassCancelled,
		pawl.ClassFailed}),
	"answer": words([]pawl.AnswerSource{pawl.AnswerReply, pawl.AnswerOutput, pawl.AnswerTool}),
	"code": words([]llm.Code{llm.CodeAuthentication, llm.CodePermission, llm.CodeNotFound, llm.CodeInvalidRequest,
		llm.CodeContextLength, llm.CodeContentFilter,
		llm.CodeRateLimit, llm.CodeQuota, llm.CodeOverloaded, llm.CodeServer, llm.CodeTimeout, llm.CodeNetwork,
		llm.CodeStream, llm.CodeUnsupported, llm.CodeStreamInconsistent, llm.CodeMalformedReply,
		llm.CodeBoundThinking}),
	"fault": words([]string{"unknown_role", "unknown_part", "misplaced_part", "empty_message", "call_id", "no_result",
		"no_call", "second_result", "misplaced_result", "result_order", "start", "reply_end"}),
	"value": {team.PlanKey},
}

func words[T ~string](all []T) (out []string) {
	for _, w := range all {
		out = append(out, string(w))
	}
	return out
}

var wordConstant = regexp.MustCompile(`(?m)^\s*(?:const )?[A-Z]\w*\s+[A-Z]\w*\s*=\s*"([^"]*)"`)

// Every exported constant of a string type is on the lists above.
func TestWireWordsAreComplete(t *testing.T) {
	all := map[string]bool{}
	for _, list := range wireWords {
		for _, w := range list {
			all[w] = true
		}
	}
	found := 0
	for _, dir := range []string{root, filepath.Join(root, "llm")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range wordConstant.FindAllStringSubmatch(string(b), -1) {
				if found++; !all[m[1]] {
					t.Errorf("%s: %q is on no list of wireWords", f, m[1])
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("%d constants found, want at least 60: the search is broken", found)
	}
}

var noticeCode = regexp.MustCompile(`Notice\{\s*Code: *"(\w+)"|Kind: (?:pawl\.)?EventNotice,[^}]*?Code: *"(\w+)"|\bnotice\("(\w+)"|refuse\("(decision_\w+)"|(?m:^)\s*(?:const )?Notice[A-Z]\w*\s+=\s+"(\w+)"`)

// Several packages define notice codes. The golden file holds all of them.
func TestNoticeCodesStay(t *testing.T) {
	soak.Sequential(t)
	codes := map[string]bool{} // an object, so that a new code is a new member
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "examples"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range noticeCode.FindAllStringSubmatch(string(b), -1) {
			codes[strings.Join(m[1:], "")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(codes)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "jsonforms", "notice_codes.json"), b)
}
