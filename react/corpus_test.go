package react_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

// sameJSON reports whether a and b hold the same value; text that is no JSON is compared as text.
func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return strings.TrimSpace(string(a)) == strings.TrimSpace(string(b))
	}
	return cmp.Equal(x, y)
}

// believed reports whether a decision holds an observation that the model wrote itself.
func believed(d react.Decision) bool {
	return strings.Contains(string(d.Args), "Observation:") || strings.Contains(d.Tool, "Observation")
}

type labelled struct {
	Case         string          `json:"case"`
	Input        string          `json:"input"`
	Tags         []string        `json:"tags"`
	Action       *string         `json:"action"`
	ActionInput  json.RawMessage `json:"action_input"`
	Raw          *string         `json:"action_input_raw"`
	FinalAnswer  *string         `json:"final_answer"`
	Reject       string          `json:"reject"`
	Expected     json.RawMessage `json:"expected"`
	Hard         bool            `json:"hard_case"`
	Observations struct {
		Has bool `json:"has_observation"`
	} `json:"react"`
}

// Real texts of models: every labelled action, input and final answer is read as labelled, and no
// observation that a model wrote itself is part of it.
func TestRealModelOutput(t *testing.T) {
	soak.Sequential(t)
	actions, answers, hard, invented, values := 0, 0, 0, 0, 0
	for i, l := range corpora.Lines[labelled](t, "malformed-json/real-model-output.dev.jsonl") {
		if len(l.Expected) > 0 {
			if checkValue(t, i, l) {
				values++
			}
			continue
		}
		d, err := react.Read(l.Input, react.Text)
		// models write labels in other formats, too
		for _, f := range []react.Format{react.JSON, react.XML} {
			if other, _ := react.Read(l.Input, f); !cmp.Equal(other, d) && !strings.Contains(l.Input, "<") {
				t.Errorf("line %d: %q: read as %s: %+v, as text: %+v", i+1, l.Input, f, other, d)
			}
		}
		if l.Observations.Has {
			invented++
			if err != nil || d.Type != react.CallTool || believed(d) || len(d.Notes) == 0 {
				t.Errorf("line %d: an observation was invented; got %+v, %v", i+1, d, err)
			}
		}
		switch {
		case l.Action != nil:
			actions++
			want := l.ActionInput
			if want == nil {
				want = json.RawMessage(strings.TrimSpace(strings.TrimSuffix(*l.Raw, "```")))
			}
			if err != nil || d.Type != react.CallTool || d.Tool != *l.Action || !sameJSON(d.Args, want) {
				t.Errorf("line %d: %q:\ngot %+v, %v\nwant %s with %s", i+1, l.Input, d, err, *l.Action, want)
			}
		case l.FinalAnswer != nil:
			answers++
			want := strings.TrimSpace(*l.FinalAnswer)
			// the label has the end of the fence around everything
			if strings.HasPrefix(strings.TrimSpace(l.Input), "```") {
				want = strings.TrimSpace(strings.TrimSuffix(want, "```"))
			}
			if err != nil || d.Type != react.FinalAnswer || d.Answer != want {
				t.Errorf("line %d: %q:\ngot %+v, %v\nwant the answer %q", i+1, l.Input, d, err, *l.FinalAnswer)
			}
		case l.Hard:
			hard++
			if err != nil {
				t.Errorf("line %d: %q: %v", i+1, l.Input, err)
			}
		}
	}
	t.Logf("read as labelled: %d actions, %d final answers, %d JSON values; %d hard cases read; %d invented observations cut off", actions, answers, values, hard, invented)
	if actions < 20 || answers < 100 || invented < 5 || values < 100 {
		t.Error("the corpus is smaller than expected")
	}
}

// checkValue reads a reply in a custom form that accepts any object or list; ok is false for other
// values.
func checkValue(t *testing.T, i int, l labelled) (ok bool) {
	t.Helper()
	if l.Expected[0] != '{' && l.Expected[0] != '[' {
		return false
	}
	var got json.RawMessage
	form := &react.Form{Schema: json.RawMessage(`{}`), Read: func(v json.RawMessage) (react.Decision, error) {
		got = append(got, v...)
		return react.Decision{Type: react.FinalAnswer, Answer: "ok"}, nil
	}}
	m := react.New(script.New(script.Say(l.Input)), &react.Options{Decision: form, MaxRetries: -1})
	_, err := llm.Complete(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("go")}})
	if err != nil || !sameJSON(got, l.Expected) {
		t.Errorf("case %d %s: %q:\ngot %s, %v\nwant %s", i+1, l.Case, l.Input, got, err, l.Expected)
	}
	return true
}

func TestEmbeddedJSON(t *testing.T) {
	n := 0
	for i, l := range corpora.Lines[labelled](t, "malformed-json/embedded-json.dev.jsonl") {
		if l.Case == "WITH_END_TEXT" || len(l.Expected) == 0 || string(l.Expected) == "null" {
			continue // its object is not closed, and the missing part is not invented
		}
		n++
		checkValue(t, i, l)
	}
	t.Logf("%d embedded values read", n)
}

func TestReactText(t *testing.T) {
	read := 0
	for _, l := range corpora.Lines[labelled](t, "malformed-json/react-text.dev.jsonl") {
		d, err := react.Read(l.Input, react.Text)
		switch {
		case l.Reject != "":
			// The answer depends on an observation that the model invented: neither it nor any text
			// after the action is used.
			if d.Type == react.FinalAnswer || d.Answer != "" || believed(d) {
				t.Errorf("%s: got %+v, want no answer", l.Case, d)
			}
		case l.FinalAnswer != nil:
			if err != nil || d.Answer != *l.FinalAnswer {
				t.Errorf("%s: got %+v, %v; want the answer %q", l.Case, d, err, *l.FinalAnswer)
			}
		default:
			var want string
			if err := json.Unmarshal(l.ActionInput, &want); err != nil {
				t.Fatal(err)
			}
			if err != nil || d.Tool != *l.Action || string(d.Args) != want {
				t.Errorf("%s: got %+v, %v; want %s with %q", l.Case, d, err, *l.Action, want)
			}
		}
		read++
	}
	t.Logf("%d texts read as labelled", read)
}

// The actions of recorded runs, written as their model saw them.
func TestAgentTraces(t *testing.T) {
	soak.Sequential(t)
	type node struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Observation *string         `json:"observation"`
		Parsed      json.RawMessage `json:"parsed"`
	}
	type tree struct {
		Steps []node `json:"steps"`
	}
	actions, empty := 0, 0
	for _, tr := range corpora.Lines[tree](t, "agent-traces/dev/toolbench_gpt35_react_trees.jsonl.gz") {
		thought, action := "", ""
		for _, s := range tr.Steps {
			switch s.Type {
			case "Thought":
				thought = s.Text
			case "Action":
				action = s.Text
			case "Action Input":
				if action == "" {
					action = "none"
				}
				text := "Thought: " + thought + "\nAction: " + action + "\nAction Input: " + s.Text
				if s.Observation != nil {
					text += "\nObservation: " + *s.Observation
				}
				d, err := react.Read(text, react.Text)
				if err != nil || d.Tool != action || !sameJSON(d.Args, []byte(s.Text)) {
					t.Errorf("%q:\ngot %+v, %v", text, d, err)
				}
				if actions++; s.Text == "" {
					empty++
				}
				thought, action = "", ""
			}
		}
	}
	type trajectory struct {
		Steps []struct {
			Thought     string `json:"thought"`
			Action      string `json:"action"`
			Observation string `json:"observation"`
		} `json:"steps"`
	}
	commands := 0
	for _, tr := range corpora.Lines[trajectory](t, "agent-traces/dev/swe_agent_gpt4.jsonl.gz") {
		for _, s := range tr.Steps {
			if strings.TrimSpace(s.Action) == "" {
				continue
			}
			commands++
			args, err := json.Marshal(map[string]string{"command": s.Action})
			if err != nil {
				t.Fatal(err)
			}
			text := "Thought: " + s.Thought + "\nAction: bash\nAction Input: " + string(args) + "\nObservation: " + s.Observation
			d, err := react.Read(text, react.Text)
			if err != nil || d.Tool != "bash" || !sameJSON(d.Args, args) {
				t.Errorf("%q:\ngot %+v, %v", text, d, err)
			}
		}
	}
	// The calls of a model with function calling, in the form of a text. Many arguments contain
	// tags.
	type talk struct {
		Messages []struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
			Calls   []struct {
				Function struct{ Name, Arguments string } `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	calls := 0
	for _, tr := range corpora.Lines[talk](t, "agent-traces/dev/livemcpbench_claude_sonnet4.jsonl.gz") {
		for i, m := range tr.Messages {
			for _, c := range m.Calls {
				calls++
				thought, after := "", ""
				if m.Content != nil {
					thought = *m.Content
				}
				if next := i + 1; next < len(tr.Messages) && tr.Messages[next].Content != nil {
					after = *tr.Messages[next].Content
				}
				name, args := c.Function.Name, c.Function.Arguments
				decision, err := json.Marshal(map[string]any{"thought": thought, "type": "call_tool", "tool": name, "args": json.RawMessage(args)})
				if err != nil {
					t.Fatal(err)
				}
				for format, text := range map[react.Format]string{
					react.JSON: string(decision) + "\nObservation: " + after,
					react.Text: "Thought: " + thought + "\nAction: " + name + "\nAction Input: " + args + "\nObservation: " + after,
					react.XML:  "<thought>" + thought + "</thought>\n<tool>" + name + "</tool>\n<args>" + args + "</args>\nObservation: " + after,
				} {
					d, err := react.Read(text, format)
					if err != nil || d.Tool != name || !sameJSON(d.Args, []byte(args)) {
						t.Errorf("%v, %q:\ngot %+v, %v", format, text, d, err)
					}
				}
			}
		}
	}
	t.Logf("%d actions, %d with empty input; %d commands; %d calls in three formats", actions, empty, commands, calls)
	if actions < 100 || empty == 0 || commands < 100 || calls < 300 {
		t.Error("the corpus is smaller than expected")
	}
}
