package react_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
)

// pieces says a text in fragments of size bytes, whole runes, and notes how much it has said.
type pieces struct {
	text string
	size int
	said int
	end  llm.FinishReason
}

func (p *pieces) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var piece strings.Builder
		for p.said = 0; p.said < len(p.text); {
			piece.Reset()
			for n, r := range p.text[p.said:] {
				if n >= p.size {
					break
				}
				piece.WriteRune(r)
			}
			if p.said += piece.Len(); !yield(llm.Delta{Part: llm.Text{Text: piece.String()}}, nil) {
				return
			}
		}
		end := p.end
		if end == "" {
			end = llm.FinishReasonStop
		}
		yield(llm.Delta{Finish: end}, nil)
	}
}

var offered = []*llm.ToolSpec{weather().Spec()}

// spoken asks for one reply. It returns the reply, its text that was emitted before the inner model
// had ended, and the faults of that text.
func spoken(t *testing.T, text string, f react.Format, size int, end llm.FinishReason) (resp *llm.Response,
	early string, err error) {
	t.Helper()
	inner := &pieces{text: text, size: size, end: end}
	resp = new(llm.Response)
	told := ""
	req := &llm.Request{Messages: []llm.Message{llm.User("go")}, Tools: offered}
	for d, err := range react.New(inner, &react.Options{Format: f, MaxRetries: -1, Lenient: true,
		Parallel: true}).Stream(t.Context(), req) {
		if err != nil {
			return resp, early, err
		}
		if err := resp.Add(d); err != nil {
			t.Fatalf("%s: %q: %v", f, text, err)
		}
		if p, ok := d.Part.(llm.Text); ok {
			if told += p.Text; inner.said < len(text) {
				early = told
			}
		}
	}
	return resp, early, nil
}

// agrees checks that a reply in fragments is the same as Read of the whole, so that no emitted text
// had to be retracted.
func agrees(t *testing.T, text string, f react.Format) (early int) {
	t.Helper()
	text = strings.ToValidUTF8(text, "\uFFFD")
	d, readErr := react.Read(text, f)
	for _, size := range []int{1, 7, 1 << 20} {
		resp, told, err := spoken(t, text, f, size, "")
		switch {
		case readErr != nil || d.Type != react.CallTool && d.Type != react.FinalAnswer ||
			d.Type == react.FinalAnswer && strings.TrimSpace(d.Answer) == "":
			if err == nil || told != "" {
				t.Errorf("%s by %d: %q: told %q, error %v; Read: %v", f, size, text, told, err, readErr)
			}
		case err != nil:
			var de *react.DecisionError // a call without a name
			if !errors.As(err, &de) || d.Type == react.FinalAnswer || told != "" {
				t.Errorf("%s by %d: %q: told %q, error %v", f, size, text, told, err)
			}
		case resp.Message.Text() != d.Answer || !strings.HasPrefix(d.Answer, told):
			t.Errorf("%s by %d: %q: told early %q, in all %q; want %q", f, size, text, told, resp.Message.Text(), d.Answer)
		default:
			thought := ""
			for _, p := range resp.Message.Parts {
				if r, ok := p.(llm.Reasoning); ok && r.Opaque == nil {
					thought += r.Text
				}
			}
			if thought != d.Thought {
				t.Errorf("%s by %d: %q: thought %q, want %q", f, size, text, thought, d.Thought)
			}
		}
		early = max(early, len(told))
	}
	return early
}

// An answer in formats JSON and XML is emitted while it is written. These are the beginnings that
// allow it, with various rests.
func TestAnswersAreToldEarly(t *testing.T) {
	for _, tt := range []struct {
		format            react.Format
		text, early, want string
	}{
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"Take an umbrella with you."}`, "Take an umbrella with", "Take an umbrella with you."},
		{react.JSON, "```json\n{ \"thought\" : \"an answer\",\n\"type\":\"final_answer\", \"tool\":null,\"args\":{\"a\":[1]},\n\"answer\" : \"Take an umbrella with you.\"}\n```", "Take an umbrella with you.", "Take an umbrella with you."},
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"a\n\u00e9\ud83c\udf0d\"\\ end \ud83c lone"}`, "a\né🌍\"\\ end", "a\né🌍\"\\ end \uFFFD lone"},
		{react.JSON, `<think>hm {"answer":"no"}</think>{"thought":"a","type":"final_answer","answer":"Take an umbrella with you."}`, "Take an umbrella with", "Take an umbrella with you."},
		{react.XML, "<thought>a</thought>\n<answer>\nTake an <b>umbrella</b> with you. \n</answer>", "Take an <b>umbrella</b> with you.", "Take an <b>umbrella</b> with you."},
		{react.XML, "<final_answer>Take an umbrella with you and more", "Take an umbrella with you", "Take an umbrella with you and more"},

		// The reply contradicts itself: the emitted text stays.
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"Take an umbrella.","type":"call_tool","tool":"weather","args":{}}`, "Take an umbrella.", "Take an umbrella."},
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"Take an umbrella.","answer":"Stay."}`, "Take an umbrella.", "Take an umbrella."},
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"He said "take it", and "do" to me."}`, `He said "take it", and "do" to`, `He said "take it", and "do" to me.`},
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"Take {"tool":"weather","args":{}} an`, `Take {"tool":"weather`, `Take {"tool":"weather`},
		{react.JSON, `{"thought":"a","type":"final_answer","answer":"Take an umbrella wi`, "Take an umbrella", "Take an umbrella wi"},
		{react.XML, "<answer>Take an umbrella.</answer>\n<tool>weather</tool><args>{}</args>", "Take an umbrella.", "Take an umbrella."},
		{react.XML, "<answer>Use <tool>weather</tool> then.</answer> ok", "Use", "Use <tool>weather</tool> then."},
		{react.XML, "<answer>It rains.\n Observation: it does not", "It rains.", "It rains."},
		{react.XML, "<answer>Take it.</answer><final_answer>Leave it.</final_answer>", "Take it.", "Take it."},

		// Text that is no answer yet is not emitted.
		{react.JSON, `{"thought":"a","answer":"Take an umbrella.","type":"final_answer"}`, "", "Take an umbrella."},
		{react.JSON, `{"type":"final_answer","answer":"Take an umbrella.","thought":"a"}`, "", "Take an umbrella."},
		{react.JSON, `{"thought":"a","type":"call_tool","tool":"weather","args":{"city":"Oslo"},"answer":"none"}`, "", ""},
		{react.JSON, "I think: {\"thought\":\"a\",\"type\":\"final_answer\",\"answer\":\"Take an umbrella.\"}", "", "Take an umbrella."},
		{react.XML, "<thought>I could say <answer>no</answer> but</thought>\n<tool>weather</tool>\n<args>{\"city\":\"Oslo\"}</args>", "", ""},
		{react.XML, "<thought>not closed <answer>Yes then.</answer>", "", "Yes then."},
		{react.Text, "Thought: a\nFinal Answer: Take an umbrella with you.", "", "Take an umbrella with you."},
		{react.Text, "Thought: a\nFinal Answer: I look.\nAction: weather\nAction Input: {\"city\":\"Oslo\"}", "", ""},
		{react.Plain, "Take an umbrella with you.", "", "Take an umbrella with you."},
	} {
		resp, early, err := spoken(t, tt.text, tt.format, 1, "")
		if err != nil || !strings.HasPrefix(resp.Message.Text(), tt.early) || resp.Message.Text() != tt.want {
			t.Errorf("%s: %q: got %q, %v; want %q", tt.format, tt.text, resp.Message.Text(), err, tt.want)
		}
		if (early == "") != (tt.early == "") || !strings.HasPrefix(early, tt.early) {
			t.Errorf("%s: %q: told early %q, want %q", tt.format, tt.text, early, tt.early)
		}
		agrees(t, tt.text, tt.format)
	}
}

// A cut or filtered answer is the emitted part of the answer.
func TestAnswerBrokenOff(t *testing.T) {
	for _, end := range []llm.FinishReason{llm.FinishReasonLength, llm.FinishReasonContentFilter} {
		resp, early, err := spoken(t, `{"thought":"a","type":"final_answer","answer":"Take an umb`, react.JSON, 2, end)
		if err != nil || early == "" || resp.Message.Text() != "Take an umb" || resp.Finish != end {
			t.Errorf("%s: told %q, got %+v, %v", end, early, resp, err)
		}
	}
}

// In no format, and in no fragments, is text emitted that the whole reply does not confirm:
// generated decisions, their mutations, each followed by another, and real texts of models.
func TestToldIsNeverTakenBack(t *testing.T) {
	soak.Sequential(t)
	pick := rand.New(rand.NewPCG(3, 5))
	texts, early := 0, map[react.Format]int{}
	check := func(f react.Format, text string) {
		texts++
		if agrees(t, text, f) > 0 {
			early[f]++
		}
	}
	for _, f := range react.Formats() {
		var said []string
		for _, m := range decisions(pick) {
			for _, mut := range mutations() {
				said = append(said, mut.do(say(f, m), pick))
			}
		}
		for i, s := range said {
			check(f, s)
			if i%3 == 0 {
				check(f, s+said[pick.IntN(len(said))])
				check(f, s[:pick.IntN(len(s)+1)])
			}
		}
	}
	t.Logf("%d texts agree; told early: %v", texts, early)
	if early[react.JSON] < 20 || early[react.XML] < 20 || early[react.Text]+early[react.Plain] > 0 {
		t.Error("told early in formats where it should not be, or too seldom")
	}
}

func FuzzTell(f *testing.F) {
	for _, s := range []string{`{"thought":"a","type":"final_answer","answer":"b\u00e9\n"}`, "<thought>a</thought><answer>b</answer>", "```json\n{\"thought\":\"\",\"type\":\"final_answer\",\"answer\":\"x \" y\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range react.Formats() {
			agrees(t, text, form)
		}
	})
}

func TestRealTextIsNeverTakenBack(t *testing.T) {
	soak.Sequential(t)
	n := 0
	for _, l := range corpora.Lines[labelled](t, "malformed-json/real-model-output.dev.jsonl") {
		for _, f := range []react.Format{react.JSON, react.XML} {
			agrees(t, l.Input, f)
			n++
		}
	}
	t.Logf("%d readings agree in all fragments", n)
	if n < 200 {
		t.Error("the corpus is smaller than expected")
	}
}

// decisions are replies with a call, with two, and with an answer.
func decisions(pick *rand.Rand) []llm.Message {
	thought := llm.Reasoning{Text: []string{"I look it up.", "The answer: \"mine\"", "So <b>"}[pick.IntN(3)]}
	call := llm.ToolCall{ID: "x", Name: "weather", Args: []byte(`{"city":"Oslo \"</args>\" {\nObservation: x"}`)}
	call.Args = []byte(strings.ReplaceAll(string(call.Args), "\n", `\n`))
	answer := []string{"Take an umbrella: it rains in Oslo.", "Two lines:\n- one\n- two  ", `He said "yes", {"so": "what"}.`, " Ørsta 北京 🎈", "It says:\nObservation: dry\n<answer>no</answer>"}[pick.IntN(5)]
	return []llm.Message{llm.Assistant(thought, call), llm.Assistant(thought, call, call),
		llm.Assistant(thought, llm.Text{Text: answer}), llm.Assistant(llm.Text{Text: answer})}
}
