package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// The forms of the documentation, and of BetaSummarizeCompactionParam in anthropic-sdk-go 1.84.
const (
	signedBlock   = `{"type":"compaction","content":"The mill was surveyed.","signature":"EuYB=="}`
	unsignedBlock = `{"type":"compaction","content":"The mill was surveyed."}`
	failedBlock   = `{"type":"compaction","content":null}`
	order         = `"compaction":{"type":"summarize"}`
	signedBeta    = "compact-2026-09-04"
	unsignedBeta  = "compact-2026-01-12"
	done          = `{"type":"message","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}`
	nothingSpent  = `"usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":144,"output_tokens":276}]}`
)

func block(data string) llm.Part {
	return llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(data)}}
}

// vendor answers requests for a summary with summary, and others with the replies in turn. Bodies
// that begin with "event" are streams; the others are sent whole, or as a stream, as asked.
type vendor struct {
	summary string
	status  int // of the answer to a request for a summary; 0 means 200
	replies []string

	bodies, betas []string
}

func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body := string(b)
	v.bodies = append(v.bodies, unmarked(body))
	v.betas = append(v.betas, r.Header.Get("Anthropic-Beta"))
	answer := v.summary
	status := 200
	if !strings.Contains(body, `"compaction":{`) {
		if len(v.replies) == 0 {
			return nil, errors.New("no reply is left")
		}
		answer = v.replies[0]
		v.replies = v.replies[1:]
	} else if v.status != 0 {
		status = v.status
	}
	kind := "application/json"
	if strings.HasPrefix(answer, "event") {
		kind = "text/event-stream"
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
		Header: http.Header{"Content-Type": {kind}}}, nil
}

func (v *vendor) model(name string) *anthropic.Model {
	return anthropic.New(name, &anthropic.Options{Key: "none", BaseURL: "https://api.anthropic.com", HTTP: v, Retries: -1})
}

// messages returns the messages of request n.
func (v *vendor) messages(n int) string {
	var w struct{ Messages json.RawMessage }
	if n >= len(v.bodies) || json.Unmarshal([]byte(v.bodies[n]), &w) != nil {
		return "none"
	}
	return string(w.Messages)
}

// summarized is the reply to a request for a summary, whole, as a stream, and as a stream whose
// block comes in pieces.
func summarized(form string) string {
	usage := `"usage":{"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":144,"output_tokens":276}]}`
	opening := `{"type":"message_start","message":{"id":"msg_s","type":"message","role":"assistant",` +
		`"content":[],"model":"claude","usage":{"input_tokens":0,"output_tokens":0}}}`
	ending := `{"type":"message_delta","delta":{"stop_reason":"compaction"},` + usage + `}`
	switch form {
	case "stream":
		return events(`{"type":"ping"}`, opening, `{"type":"ping"}`, opens(0, signedBlock), `{"type":"ping"}`, closes(0), ending, stop)
	case "pieces":
		return events(opening, opens(0, `{"type":"compaction","content":null}`),
			adds(0, `{"type":"compaction_delta","content":"The mill "}`),
			adds(0, `{"type":"compaction_delta","content":"was surveyed."}`),
			adds(0, `{"type":"signature_delta","signature":"EuYB=="}`), closes(0), ending, stop)
	}
	return `{"id":"msg_s","type":"message","role":"assistant","model":"claude","content":[` + signedBlock + `],"stop_reason":"compaction",` + nothingSpent + `}`
}

// long is a conversation with two rounds, the last of which waits for an answer.
func long() []llm.Message {
	call := func(id string) llm.Message {
		return llm.Assistant(llm.ToolCall{ID: id, Name: "look", Args: []byte(`{}`)})
	}
	result := func(id, text string) llm.Message {
		return llm.Results(llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: text}}})
	}
	return []llm.Message{llm.System("Be brief."), llm.User("Survey the mill."), call("toolu_1"), result("toolu_1", "wheel"),
		llm.System("Use feet."), call("toolu_2"), result("toolu_2", "door")}
}

var look = &llm.ToolSpec{Name: "look", Input: json.RawMessage(`{"type":"object"}`)}

// complete returns the reply of m, joined, and the codes of its notices.
func complete(m llm.Model, req *llm.Request) (resp llm.Response, notices string, err error) {
	for d, e := range m.Stream(context.Background(), req) {
		if e != nil {
			return resp, notices, e
		}
		if d.Notice != nil {
			notices += d.Notice.Code + " "
		}
		if err := resp.Add(d); err != nil {
			return resp, notices, err
		}
	}
	return resp, strings.TrimSpace(notices), nil
}

// A summary and the reply that continues from it are one reply: the summary is its first part, byte
// for byte. The exchange that waits for an answer stays, and so do instructions.
func TestSummary(t *testing.T) {
	const (
		block    = `{"role":"assistant","content":[` + signedBlock
		exchange = `{"type":"tool_use","id":"toolu_2","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"door"}]}`
	)
	for _, form := range []string{"whole", "stream", "pieces"} {
		for _, by := range []string{"order", "options"} {
			text := `{"type":"text","text":"Done."}`
			answer := whole("end_turn", text)
			if form != "whole" {
				answer = stream("end_turn", opens(0, text), closes(0))
			}
			v := &vendor{summary: summarized(form), replies: []string{answer, answer}}
			m := v.model("claude-opus-4-8")
			req := &llm.Request{Messages: long(), Tools: []*llm.ToolSpec{look}, Whole: form == "whole"}
			req.Summarize = by == "order"
			if by == "options" {
				req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{` + order + `}`)}
			}
			resp, notices, err := complete(m, req)
			if err != nil || notices != "" || len(v.bodies) != 2 {
				t.Fatalf("%s, %s: %v, notices %q, %d requests", form, by, err, notices, len(v.bodies))
			}
			asked := strings.Count(v.bodies[0], order) == 1 && !strings.Contains(v.bodies[0], "toolu_2")
			if !asked || strings.Contains(v.bodies[1], order) {
				t.Errorf("%s, %s: the requests are\n%s\n%s", form, by, v.bodies[0], v.bodies[1])
			}
			if got, want := v.messages(1), `[`+block+`,`+exchange+`]`; got != want {
				t.Errorf("%s, %s: got the messages\n%s\nwant\n%s", form, by, got, want)
			}
			const system = `"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Use feet."}]`
			if !strings.Contains(v.bodies[1], system) {
				t.Errorf("%s, %s: instructions are lost: %s", form, by, v.bodies[1])
			}
			for i, beta := range v.betas {
				if beta != signedBeta {
					t.Errorf("%s, %s: request %d has the betas %q", form, by, i, beta)
				}
			}
			parts := resp.Message.Parts
			ended := resp.Finish == llm.FinishReasonStop && resp.Requests == 1
			used := resp.Usage.Input == 144+15 && resp.Usage.Output == 276+7
			if len(parts) != 2 || resp.Message.Text() != "Done." || !ended || !used {
				t.Fatalf("%s, %s: got %+v", form, by, resp)
			}
			if got := string(parts[0].(llm.Reasoning).Opaque.Data); got != signedBlock {
				t.Errorf("%s, %s: the block is %s", form, by, got)
			}

			// The next turn begins like the request before: a stored conversation resumes.
			stored, err := json.Marshal(append(long(), resp.Message, llm.User("And the roof?")))
			if err != nil {
				t.Fatal(err)
			}
			next := &llm.Request{Tools: req.Tools, Whole: req.Whole}
			if err := json.Unmarshal(stored, &next.Messages); err != nil {
				t.Fatal(err)
			}
			if _, notices, err := complete(m, next); err != nil || notices != "" {
				t.Fatalf("%s, %s: the next turn: %v, %q", form, by, err, notices)
			}
			before := strings.TrimSuffix(v.messages(1), "]")
			if !strings.HasPrefix(v.messages(2), before) || v.betas[2] != signedBeta {
				t.Errorf("%s, %s: the next turn has the betas %q and the messages\n%s\nwhich do not begin with\n%s",
					form, by, v.betas[2], v.messages(2), before)
			}
			for i, body := range v.bodies {
				if bad := pawltest.Check("anthropic-messages", []byte(body)); len(bad) > 0 {
					t.Errorf("%s, %s: request %d: %v", form, by, i, bad)
				}
			}
		}
	}
}

// A run with a summary continues with its tools.
func TestSummaryInRun(t *testing.T) {
	call := func(id string) string {
		return whole("tool_use", `{"type":"tool_use","id":"`+id+`","name":"look","input":{}}`)
	}
	looked := 0
	tool := pawl.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
		looked++
		return fmt.Sprintf("view %d", looked), nil
	})
	tool.Effect = pawl.EffectRead
	v := &vendor{summary: summarized("whole"), replies: []string{call("toolu_1"), call("toolu_2"), done}}
	a := &pawl.Agent{Model: v.model("claude-opus-4-8"), Tools: []pawl.Toolset{tool}}
	a.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{` + order + `}`)}
	res, err := a.Run(t.Context(), llm.User("Survey the mill."))
	counted := looked == 2 && len(v.bodies) == 6 && res.Spent.Requests == 6
	if err != nil || res.Text() != "Done." || !counted {
		t.Fatalf("%v: %d calls, %d requests, %+v", err, looked, len(v.bodies), res)
	}
	last := v.messages(5)
	first := strings.HasPrefix(last, `[{"role":"assistant","content":[`+signedBlock)
	if strings.Count(last, signedBlock) != 1 || !first || !strings.Contains(last, "view 2") {
		t.Errorf("the last request has the messages %s", last)
	}
	if faults := llm.Check(res.Messages); faults != nil {
		t.Errorf("the transcript: %v", faults)
	}
}

// A conversation that waits for no answer gets nothing but its summary.
func TestSummaryAlone(t *testing.T) {
	v := &vendor{summary: summarized("whole")}
	req := &llm.Request{Whole: true, Messages: []llm.Message{llm.User("hi"), llm.Assistant(llm.Text{Text: "Hello."})}}
	req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{"compaction":{"type":"summarize","instructions":"In French."}}`)}
	resp, _, err := complete(v.model("claude-opus-4-8"), req)
	asked := len(v.bodies) == 1 && strings.Contains(v.bodies[0], "In French.")
	used := resp.Usage.Input == 144 && resp.Usage.Output == 276
	ended := resp.Finish == llm.FinishReasonStop && resp.ID == "msg_s"
	if err != nil || !asked || len(resp.Message.Parts) != 1 || !used || !ended {
		t.Fatalf("%v: %+v, %q", err, resp, v.bodies)
	}

	// It may replace the conversation: the summary comes first.
	v.replies = []string{done}
	next := &llm.Request{Whole: true, Messages: []llm.Message{resp.Message, llm.User("Go on.")}}
	_, notices, err := complete(v.model("claude-opus-4-8"), next)
	want := `[{"role":"assistant","content":[` + signedBlock + `]},` +
		`{"role":"user","content":[{"type":"text","text":"Go on."}]}]`
	if err != nil || notices != "" || v.messages(1) != want {
		t.Errorf("%v, notices %q, messages %s", err, notices, v.messages(1))
	}
}

// If the server writes no summary, the conversation is sent whole.
func TestSummaryMissing(t *testing.T) {
	for _, test := range []struct {
		name, summary string
		status        int
	}{
		{"max_tokens", whole("max_tokens"), 0},
		{"model_context_window_exceeded", whole("model_context_window_exceeded"), 0},
		{"tool_use", whole("tool_use"), 0},
		{"refusal", whole("refusal"), 0},
		{"end_turn", whole("end_turn"), 0},
		{"a block without a summary", whole("compaction", failedBlock), 0},
		{"another word", whole("steered"), 0},
		{"a model that cannot", failure("invalid_request_error"), 400},
		{"no capacity", failure("overloaded_error"), 529},
	} {
		for _, by := range []string{"order", "options"} {
			v := &vendor{summary: test.summary, status: test.status, replies: []string{done}}
			req := &llm.Request{Messages: long(), Tools: []*llm.ToolSpec{look}, Whole: true, Summarize: by == "order"}
			if by == "options" {
				req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{` + order + `}`)}
			}
			resp, notices, err := complete(v.model("claude-opus-4-8"), req)
			fails := test.status == 529 || test.status != 0 && by == "options"
			if fails {
				var pe *llm.ProviderError
				if !errors.As(err, &pe) {
					t.Errorf("%s, %s: got %v, %+v, want an error", test.name, by, err, resp)
				}
				continue
			}
			answered := err == nil && resp.Message.Text() == "Done." && len(v.bodies) == 2
			if !answered || !strings.Contains(notices, "summary_failed") {
				t.Errorf("%s, %s: %v, %+v, notices %q", test.name, by, err, resp, notices)
				continue
			}
			if !strings.Contains(v.messages(1), "Survey the mill.") || strings.Contains(v.bodies[1], "compaction") {
				t.Errorf("%s, %s: sent %s", test.name, by, v.bodies[1])
			}
		}
	}
}

func failure(kind string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"compaction: not possible"}}`
}

// What the API does not accept in a request for a summary is an error that names it, if the options
// ask for the summary. An order leaves it out of the request for the summary alone.
func TestSummaryConflicts(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],` +
		`"additionalProperties":false}`)
	stops := func(r *llm.Request) { r.Settings.StopSequences = []string{"END"} }
	forces := func(r *llm.Request) { r.Choice.Mode = llm.ToolRequired }
	names := func(r *llm.Request) { r.Choice = llm.Named("look") }
	holds := func(r *llm.Request) { r.Output = schema }
	for _, test := range []struct {
		name, member string // of the options
		change       func(*llm.Request)
		want         string // in the error
		sent         string // in the body of the reply's request
	}{
		{"context_management", `"context_management":{"edits":[]}`, nil, "context_management", ""},
		{"stop sequences", "", stops, "stop_sequences", `"stop_sequences":["END"]`},
		{"stop sequences as an option", `"stop_sequences":["END"]`, nil, "stop_sequences", ""},
		{"a forced call", "", forces, "tool_choice", `"tool_choice":{"type":"any"}`},
		{"a named call", "", names, "tool_choice", `"tool_choice":{"type":"tool"`},
		{"a forced call as an option", `"tool_choice":{"type":"any"}`, nil, "tool_choice", ""},
		{"an output", "", holds, "output_config.format", `"format":{"type":"json_schema"`},
		{"an output as an option", `"output_config":{"format":{}}`, nil, "output_config.format", ""},
		{"the older output", `"output_format":{"type":"json_schema"}`, nil, "output_format", ""},
		{"the rest of a budget", `"output_config":{"task_budget":{"remaining":5}}`, nil, "task_budget.remaining", ""},
	} {
		req := &llm.Request{Messages: long(), Tools: []*llm.ToolSpec{look}, Whole: true}
		if test.change != nil {
			test.change(req)
		}
		options := order
		if test.member != "" {
			options += "," + test.member
		}
		req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{` + options + `}`)}
		v := &vendor{summary: summarized("whole"), replies: []string{done}}
		_, _, err := complete(v.model("claude-opus-4-8"), req)
		var pe *llm.ProviderError
		refused := errors.As(err, &pe) && pe.Code == llm.CodeUnsupported && len(v.bodies) == 0
		if !refused || !strings.Contains(pe.Message, test.want) || !strings.Contains(pe.Message, "compaction") {
			t.Errorf("%s: got %v after %d requests", test.name, err, len(v.bodies))
		}

		// The order of history.Window.
		req.Settings.Options = nil
		if test.member != "" {
			continue
		}
		req.Summarize = true
		if _, _, err := complete(v.model("claude-opus-4-8"), req); err != nil || len(v.bodies) != 2 ||
			strings.Contains(v.bodies[0], test.sent) || !strings.Contains(v.bodies[1], test.sent) {
			t.Errorf("%s: an order: %v, sent %q", test.name, err, v.bodies)
		}
	}
}

// Stored conversations have summaries in any place. The API accepts each request.
func TestSummaryPlaces(t *testing.T) {
	text := llm.Text{Text: "And then"}
	call := llm.ToolCall{ID: "toolu_3", Name: "look", Args: []byte(`{}`)}
	results := llm.Results(llm.ToolResult{CallID: "toolu_3", Parts: []llm.Part{llm.Text{Text: "roof"}}})
	user := llm.User("Go on.")
	of := func(parts ...llm.Part) llm.Message { return llm.Assistant(parts...) }
	after := func(messages ...llm.Message) []llm.Message { return append(long(), messages...) }

	signed := block(signedBlock)
	unsigned := block(unsignedBlock)
	failed := block(failedBlock)
	newer := strings.Replace(signedBlock, "surveyed", "surveyed twice", 1)
	second := block(newer)

	for _, test := range []struct {
		name     string
		messages []llm.Message
		first    string // the first block; "" means that it is the user's
		beta     string
	}{
		{"before a text", after(of(signed, text), user), signedBlock, signedBeta},
		{"after a text", after(of(text, signed), user), signedBlock, signedBeta},
		{"after a call", after(of(call, signed), results), signedBlock, signedBeta},
		{"alone", after(of(signed), user), signedBlock, signedBeta},
		{"first", []llm.Message{of(signed), user}, signedBlock, signedBeta},
		{"after instructions", []llm.Message{llm.System("Be brief."), of(signed), user}, signedBlock, signedBeta},
		{"before a reply", []llm.Message{of(signed), of(text), user}, signedBlock, signedBeta},
		{"two", after(of(signed, text), user, of(second, text), user), newer, signedBeta},
		{"two in turn", after(of(signed, call), results, of(second, text), user), newer, signedBeta},
		{"two in one reply", after(of(signed, second, text), user), newer, signedBeta},
		{"a failed one later", after(of(signed, text), user, of(failed, text), user), signedBlock, signedBeta},
		{"an unsigned one later", after(of(signed, text), user, of(unsigned, text), user), unsignedBlock, unsignedBeta},
		{"unsigned", after(of(unsigned, text), user), "", unsignedBeta},
		{"failed", after(of(failed, text), user), "", unsignedBeta},
		{"none", after(of(text), user), "", ""},
	} {
		v := &vendor{replies: []string{done}}
		req := &llm.Request{Messages: test.messages, Tools: []*llm.ToolSpec{look}, Whole: true}
		_, notices, err := complete(v.model("claude-opus-4-8"), req)
		if err != nil || notices != "" || v.betas[0] != test.beta {
			t.Errorf("%s: %v, notices %q, betas %q", test.name, err, notices, v.betas)
			continue
		}
		if bad := pawltest.Check("anthropic-messages", []byte(v.bodies[0])); len(bad) > 0 {
			t.Errorf("%s: %v: %s", test.name, bad, v.bodies[0])
		}
		got := v.messages(0)
		if test.first == "" {
			continue
		}
		first := strings.HasPrefix(got, `[{"role":"assistant","content":[`+test.first)
		if !first || strings.Count(got, `"compaction"`) != 1 {
			t.Errorf("%s: got the messages %s, want one summary, %s, first", test.name, got, test.first)
		}
	}
}

// Any conversation, with summaries at any places, is a request that the API accepts.
func TestSummaryAnywhere(t *testing.T) {
	kinds := []string{signedBlock, unsignedBlock, failedBlock}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		var messages []llm.Message
		signed := false
		for n := range 2 + r.IntN(8) {
			if r.IntN(4) == 0 {
				messages = append(messages, llm.System("Be brief."))
			}
			if r.IntN(2) == 0 {
				messages = append(messages, llm.User("Go on."))
			}
			reply := llm.Assistant()
			for range 1 + r.IntN(3) {
				switch kind := r.IntN(4); kind {
				case 3:
					reply.Parts = append(reply.Parts, llm.Text{Text: "And then"})
				default:
					reply.Parts = append(reply.Parts, block(kinds[kind]))
					signed = signed || kind == 0
				}
			}
			messages = append(messages, reply)
			if r.IntN(2) == 0 {
				id := fmt.Sprintf("toolu_%d", n)
				at := r.IntN(len(reply.Parts) + 1)
				call := llm.ToolCall{ID: id, Name: "look", Args: []byte(`{}`)}
				messages[len(messages)-1].Parts = slices.Insert(reply.Parts, at, llm.Part(call))
				result := llm.ToolResult{CallID: id, Parts: []llm.Part{llm.Text{Text: "roof"}}}
				messages = append(messages, llm.Results(result))
			}
		}
		messages = append(messages, llm.User("On."))

		for _, order := range []bool{false, true} {
			v := &vendor{summary: summarized("whole"), replies: []string{done}}
			req := &llm.Request{Messages: messages, Tools: []*llm.ToolSpec{look}, Whole: true, Summarize: order}
			if _, _, err := complete(v.model("claude-opus-4-8"), req); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i := range v.bodies {
				has := signed || order && i > 0 // the new summary replaces the last one
				n := strings.Count(v.messages(i), `"type":"compaction"`)
				first := strings.HasPrefix(v.messages(i), `[{"role":"assistant","content":[{"type":"compaction"`)
				bad := pawltest.Check("anthropic-messages", []byte(v.bodies[i]))
				if len(bad) > 0 || has && (n != 1 || !first) {
					t.Fatalf("seed %d, request %d: %v, %d summaries: %s", seed, i, bad, n, v.messages(i))
				}
			}
		}
	}
}

// A summary right after another one covers it.
func TestSummaryOfSummary(t *testing.T) {
	call := llm.ToolCall{ID: "toolu_3", Name: "look", Args: []byte(`{}`)}
	results := llm.Results(llm.ToolResult{CallID: "toolu_3", Parts: []llm.Part{llm.Text{Text: "roof"}}})
	messages := append(long(), llm.Assistant(block(signedBlock), call), results)
	newer := strings.Replace(signedBlock, "surveyed", "surveyed twice", 1)
	v := &vendor{summary: strings.Replace(summarized("whole"), signedBlock, newer, 1), replies: []string{done}}
	req := &llm.Request{Messages: messages, Tools: []*llm.ToolSpec{look}, Whole: true, Summarize: true}
	_, _, err := complete(v.model("claude-opus-4-8"), req)
	asked := strings.HasPrefix(v.messages(0), `[{"role":"assistant","content":[`+signedBlock) &&
		strings.Contains(v.messages(0), "door") && !strings.Contains(v.messages(0), "roof")
	sent := strings.HasPrefix(v.messages(1), `[{"role":"assistant","content":[`+newer+`,{"type":"tool_use","id":"toolu_3"`) &&
		strings.Contains(v.messages(1), "roof") && !strings.Contains(v.messages(1), "door")
	if err != nil || !asked || !sent {
		t.Errorf("%v: sent\n%s\n%s", err, v.messages(0), v.messages(1))
	}
}

// A failure of the request after the summary is repeated, and the summary is not asked for again.
func TestSummaryThenFailure(t *testing.T) { synctest.Test(t, summaryThenFailure) }

func summaryThenFailure(t *testing.T) {
	v := &vendor{summary: summarized("whole"), replies: []string{failure("overloaded_error"), done}}
	m := anthropic.New("claude-opus-4-8", &anthropic.Options{Key: "none", HTTP: v, Retries: 1})
	req := &llm.Request{Messages: long(), Tools: []*llm.ToolSpec{look}, Whole: true, Summarize: true}
	resp, notices, err := complete(m, req)
	if err != nil || notices != "retry" || resp.Requests != 2 || len(v.bodies) != 3 || len(resp.Message.Parts) != 2 {
		t.Errorf("%v, notices %q, %+v, %d requests", err, notices, resp, len(v.bodies))
	}
}

// A summary is paid for, also if the reply fails.
func TestSummaryThenError(t *testing.T) {
	v := &vendor{summary: summarized("whole"), replies: []string{failure("overloaded_error")}}
	req := &llm.Request{Messages: long(), Tools: []*llm.ToolSpec{look}, Whole: true, Summarize: true}
	resp, _, err := complete(v.model("claude-opus-4-8"), req)
	if err == nil || resp.Usage.Input != 144 || resp.Usage.Output != 276 || resp.Requests != 2 {
		t.Errorf("%v: %+v", err, resp)
	}
}

// A request without messages is an error, not a summary.
func TestSummaryOfNothing(t *testing.T) {
	for _, messages := range [][]llm.Message{nil, {llm.System("Be brief.")}} {
		v := &vendor{summary: summarized("whole")}
		req := &llm.Request{Messages: messages, Whole: true}
		req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(`{` + order + `}`)}
		if _, _, err := complete(v.model("claude-opus-4-8"), req); err == nil || len(v.bodies) > 0 {
			t.Errorf("%v: got %v, %q", messages, err, v.bodies)
		}
	}
}

// The options of a request with a signed summary.
func TestSummaryOptions(t *testing.T) {
	for options, want := range map[string]string{
		`{"context_management":{"edits":[{"type":"compact_20260112"}]}}`:         "compact_20260112",
		`{"output_config":{"task_budget":{"remaining":5}}}`:                      "task_budget.remaining",
		`{"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`: "",
		`{"betas":["compact-2026-09-04"]}`:                                       "",
		`{"stop_sequences":["END"]}`:                                             "",
	} {
		v := &vendor{replies: []string{done}}
		req := &llm.Request{Whole: true, Messages: []llm.Message{llm.Assistant(block(signedBlock)), llm.User("Go on.")}}
		req.Settings.Options = map[string]json.RawMessage{"anthropic": json.RawMessage(options)}
		_, _, err := complete(v.model("claude-opus-4-8"), req)
		switch {
		case want == "" && (err != nil || v.betas[0] != signedBeta):
			t.Errorf("%s: %v, betas %q", options, err, v.betas)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want an error with %q", options, err, want)
		}
	}
}

// Other providers, other servers with this API, and models without summaries read its text.
func TestSummaryMoves(t *testing.T) {
	const summary = "The mill was surveyed."
	done := llm.Text{Text: "Done."}
	call := llm.ToolCall{ID: "c", Name: "look", Args: []byte(`{}`)}
	result := llm.Results(llm.ToolResult{CallID: "c", Parts: []llm.Part{llm.Text{Text: "roof"}}})
	conversations := map[string][]llm.Message{
		"whole":    append(long(), llm.Assistant(block(signedBlock), done), llm.User("Go on.")),
		"first":    {llm.Assistant(block(signedBlock)), llm.User("Go on.")},
		"a call":   append(long(), llm.Assistant(block(signedBlock), call), result),
		"unsigned": append(long(), llm.Assistant(block(unsignedBlock), done), llm.User("Go on.")),
	}
	const openaiURL = "https://api.openai.com/v1"
	for name, messages := range conversations {
		for wire, api := range map[string]string{"chat": "openai-chat", "responses": "openai-responses", "gemini": "gemini",
			"compatible": "anthropic-messages", "older": "anthropic-messages"} {
			var got string
			read := transportOf(func(body string) { got = body })
			var m llm.Model
			switch wire {
			case "chat":
				m = openai.NewChat("gpt-5-mini", &openai.Options{Key: "none", HTTP: read, BaseURL: openaiURL, Retries: -1})
			case "responses":
				m = openai.New("gpt-5-mini", &openai.Options{Key: "none", HTTP: read, BaseURL: openaiURL, Retries: -1})
			case "gemini":
				m = gemini.New("gemini-3-pro", &gemini.Options{Key: "none", HTTP: read, Retries: -1})
			case "compatible":
				m = anthropic.New("claude-opus-4-8", &anthropic.Options{HTTP: read, BaseURL: "https://models.example.com"})
			case "older":
				m = anthropic.New("claude-haiku-4-5", &anthropic.Options{Key: "none", HTTP: read, Retries: -1})
			}
			complete(m, &llm.Request{Messages: messages, Tools: []*llm.ToolSpec{look}, Whole: true})
			if strings.Count(got, summary) != 1 || strings.Contains(got, "EuYB==") {
				t.Errorf("%s, %s: sent %s", name, wire, got)
			}
			if bad := pawltest.Check(api, []byte(got)); len(bad) > 0 {
				t.Errorf("%s, %s: %v: %s", name, wire, bad, got)
			}
		}
	}
}

// transportOf shows the body of a request, and refuses it.
type transportOf func(body string)

func (f transportOf) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f(string(b))
	return &http.Response{StatusCode: 400, Body: http.NoBody, Request: r}, nil
}
