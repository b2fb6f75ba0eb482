package llm_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"testing/quick"

	"github.com/pawl-go/pawl/llm"
)

// label makes a label from few values, so that two of them often share a part.
func label(by uint8, from, readers uint8) llm.Label {
	l := llm.Label{By: llm.Author(by % 5)}
	for i, name := range []string{"a", "b", "c"} {
		if from&(1<<i) != 0 {
			l.From = append(l.From, llm.Source{Kind: "tool", Name: name})
		}
	}
	if readers&8 != 0 {
		l.Readers = []string{"*"}
		return l
	}
	for i, name := range []string{"party:a", "server:b", "space:c"} {
		if readers&(1<<i) != 0 {
			l.Readers = append(l.Readers, name)
		}
	}
	return l
}

// mayRead reports whether l lets reader read.
func mayRead(l llm.Label, reader string) bool {
	return slices.Contains(l.Readers, "*") || slices.Contains(l.Readers, reader)
}

func TestJoinOnlyLowers(t *testing.T) {
	lowers := func(a, b, c [3]uint8) bool {
		x := label(a[0], a[1], a[2])
		y := label(b[0], b[1], b[2])
		z := label(c[0], c[1], c[2])
		xy := x.Join(y)
		for _, reader := range []string{"party:a", "server:b", "space:c", "anybody"} {
			if mayRead(xy, reader) != (mayRead(x, reader) && mayRead(y, reader)) {
				return false
			}
		}
		for _, s := range append(slices.Clone(x.From), y.From...) {
			if !slices.Contains(xy.From, s) {
				return false
			}
		}
		return xy.By == min(x.By, y.By) &&
			reflect.DeepEqual(xy, y.Join(x)) &&
			reflect.DeepEqual(xy.Join(z), x.Join(y.Join(z))) &&
			reflect.DeepEqual(x.Join(x), x)
	}
	if err := quick.Check(lowers, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

func TestLabelsAreStoredWithTheirParts(t *testing.T) {
	keeps := func(a, b, c [3]uint8) bool {
		x := label(a[0], a[1], a[2])
		y := label(b[0], b[1], b[2])
		z := label(c[0], c[1], c[2])
		want := []llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{
				llm.Text{Text: "a", Label: x.Shared()}, llm.Media{URL: "https://x.example/a", Label: y.Shared()}}},
			llm.Results(llm.ToolResult{CallID: "1", Label: z.Shared(), Parts: []llm.Part{
				llm.Text{Text: "b", Label: x.Shared()}}}),
		}
		b1, err := json.Marshal(want)
		if err != nil {
			return false
		}
		var got []llm.Message
		return json.Unmarshal(b1, &got) == nil && reflect.DeepEqual(got, want)
	}
	if err := quick.Check(keeps, nil); err != nil {
		t.Error(err)
	}
}

func TestLabelForms(t *testing.T) {
	public := &llm.Label{From: []llm.Source{{Kind: "tool", Name: "f"}}, Readers: []string{"*"}}
	for _, test := range []struct {
		part llm.Part
		want string
	}{
		{llm.Text{Text: "a"}, `{"type":"text","text":"a"}`},
		{llm.Text{Text: "a", Label: &llm.Label{}}, `{"type":"text","text":"a"}`},
		{llm.User("a").Parts[0], `{"type":"text","text":"a","label":{"by":"typed"}}`},
		{llm.Text{Text: "a", Label: public},
			`{"type":"text","text":"a","label":{"from":[{"kind":"tool","name":"f"}],"readers":["*"]}}`},
	} {
		got, err := json.Marshal(test.part)
		if err != nil || string(got) != test.want {
			t.Errorf("%+v: got %s, %v; want %s", test.part, got, err, test.want)
		}
	}
}

// TestUnreadableLabelIsAStranger: no form of a label is an error, and none that a client makes up
// has a meaning.
func TestUnreadableLabelIsAStranger(t *testing.T) {
	for _, form := range []string{`{"by":4}`, `{"by":"god"}`, `"operator"`, `[]`, `null`, `{"by":"typed","from":7}`} {
		var m llm.Message
		in := `{"role":"user","parts":[{"type":"text","text":"a","label":` + form + `}]}`
		if err := json.Unmarshal([]byte(in), &m); err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		if got := m.Parts[0].(llm.Text).Label; got != nil {
			t.Errorf("%s: got %+v, want no label", form, got)
		}
	}
}

// TestFromClient: with any labels that a client states, its texts of a user are typed, its media
// attached, and its copies of replies and results a stranger's.
func TestFromClient(t *testing.T) {
	god := llm.Operator.Label()
	stated := []llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "a", Label: god}, llm.Media{URL: "u", Label: god}}},
		llm.Assistant(llm.Text{Text: "b", Label: god}),
		llm.Results(llm.ToolResult{CallID: "1", Label: god, Parts: []llm.Part{llm.Text{Text: "c", Label: god}}}),
	}
	want := []llm.Author{llm.Attached, llm.Stranger, llm.Stranger} // the join of each message
	for i, m := range llm.FromClient(stated...) {
		if l, _ := m.Label(); l.By != want[i] {
			t.Errorf("message %d: got %v, want %v", i, l.By, want[i])
		}
	}
	if l, _ := llm.FromClient(llm.User("a"))[0].Label(); l.By != llm.Typed {
		t.Errorf("got %v, want typed", l.By)
	}
	if l, _ := stated[1].Label(); l.By != llm.Operator {
		t.Errorf("the message of the caller was changed: %v", l.By)
	}
}
