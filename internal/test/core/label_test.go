package core_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// answering returns a tool that returns r.
func answering(name string, r llm.ToolResult, of *llm.Label) *pawl.Tool {
	return &pawl.Tool{Name: name, Effect: pawl.EffectRead, Label: of,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return r, nil }}
}

// byOf returns the author of each message with a label.
func byOf(msgs []llm.Message) (all []llm.Author) {
	for _, m := range msgs {
		if l, ok := m.Label(); ok {
			all = append(all, l.By)
		}
	}
	return all
}

// TestReplyHasTheLabelOfItsRequest: a reply is as trusted as the least trusted part of what the
// model had read.
func TestReplyHasTheLabelOfItsRequest(t *testing.T) {
	trusted := llm.TextResult("a")
	trusted.Label = llm.Trusted.Label()
	failed := llm.ErrorResult("a")
	failed.Label = llm.Trusted.Label()
	public := &llm.Label{Readers: []string{"*"}}
	look := func(r llm.ToolResult, of *llm.Label) *pawl.Tool { return answering("look", r, of) }
	result := llm.TextResult("a")
	by := func(all ...llm.Author) []llm.Author { return all }
	stranger := by(llm.Typed, llm.Stranger, llm.Stranger)
	allTrusted := by(llm.Typed, llm.Trusted, llm.Trusted)
	said := func(l *llm.Label) llm.Message {
		return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "a", Label: l}}}
	}

	for name, test := range map[string]struct {
		user llm.Message
		tool *pawl.Tool // nil means no call
		want []llm.Author
	}{
		"a plain chat":         {llm.User("a"), nil, by(llm.Typed, llm.Typed)},
		"no label":             {said(nil), nil, by(llm.Stranger, llm.Stranger)},
		"pasted":               {said(llm.Attached.Label()), nil, by(llm.Attached, llm.Attached)},
		"the operator's words": {said(llm.Operator.Label()), nil, by(llm.Operator, llm.Typed)},

		"a tool":                 {llm.User("a"), look(result, nil), stranger},
		"a public tool":          {llm.User("a"), look(result, public), stranger},
		"a trusted tool":         {llm.User("a"), look(result, llm.Trusted.Label()), allTrusted},
		"a trusted result":       {llm.User("a"), look(trusted, nil), allTrusted},
		"a trusted tool's error": {llm.User("a"), look(failed, llm.Trusted.Label()), stranger},
	} {
		t.Run(name, func(t *testing.T) {
			a := &pawl.Agent{Model: script.New(script.Say("b"))}
			if test.tool != nil {
				a.Tools = []pawl.Toolset{test.tool}
				a.Model = script.New(script.Call("look", `{}`), script.Say("b"))
			}
			res, err := a.Run(t.Context(), test.user)
			if err != nil {
				t.Fatal(err)
			}
			if got := byOf(res.Messages); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}

			// The next turn of the stored conversation reads the same labels.
			stored, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			var from pawl.Result
			if err := json.Unmarshal(stored, &from); err != nil {
				t.Fatal(err)
			}
			past := slices.Repeat([]script.Turn{script.Say("b")}, len(test.want)-1)
			a.Model = script.New(append(past, script.Say("c"))...)
			res, err = a.Resume(t.Context(), &from, llm.User("d"))
			if err != nil {
				t.Fatal(err)
			}
			last := test.want[len(test.want)-1]
			want := append(slices.Clone(test.want), llm.Typed, last)
			if got := byOf(res.Messages); !slices.Equal(got, want) {
				t.Errorf("next turn: got %v, want %v", got, want)
			}
		})
	}
}

// TestReplyNamesItsSources: a reply says which tools stand behind it, for the questions about it.
func TestReplyNamesItsSources(t *testing.T) {
	a := &pawl.Agent{
		Tools: []pawl.Toolset{
			answering("look", llm.TextResult("a"), nil),
			answering("ask", llm.TextResult("a"), llm.Trusted.Label()),
		},
		Model: script.New(script.Call("look", `{}`), script.Call("ask", `{}`), script.Say("b")),
	}
	res, err := a.Run(t.Context(), llm.User("a"))
	if err != nil {
		t.Fatal(err)
	}
	l, _ := res.Messages[len(res.Messages)-1].Label()
	if want := []llm.Source{{Kind: "tool", Name: "look"}}; !slices.Equal(l.From, want) {
		t.Errorf("got %+v, want %+v", l.From, want)
	}
}

// TestModelStatesNoLabel: a model's own statement about its text is replaced.
func TestModelStatesNoLabel(t *testing.T) {
	a := &pawl.Agent{
		Tools: []pawl.Toolset{answering("look", llm.TextResult("a"), nil)},
		Model: script.New(script.Call("look", `{}`),
			script.Turn{Parts: []llm.Part{llm.Text{Text: "b", Label: llm.Operator.Label()}}}),
	}
	res, err := a.Run(t.Context(), llm.User("a"))
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := res.Messages[len(res.Messages)-1].Label(); l.By != llm.Stranger {
		t.Errorf("got %v, want stranger", l.By)
	}
}

// TestTaskOfAnAgentHasTheLabelOfItsAuthor: what a model passes to another agent is no more trusted
// than what the model had read, also within one program.
func TestTaskOfAnAgentHasTheLabelOfItsAuthor(t *testing.T) {
	program := &pawl.Tool{Name: "program", Effect: pawl.EffectCompose,
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			v := pawl.InvocationFrom(ctx)
			if _, err := v.Do(ctx, llm.ToolCall{Name: "look", Args: json.RawMessage(`{}`)}); err != nil {
				return llm.ToolResult{}, err
			}
			_, err := v.Do(ctx, llm.ToolCall{Name: "inner", Args: json.RawMessage(`{"task":"a"}`)})
			return llm.TextResult("done"), err
		}}
	ask := script.Call("inner", `{"task":"a"}`)
	for name, test := range map[string]struct {
		turns []script.Turn
		want  llm.Author
	}{
		"nothing was read":           {[]script.Turn{ask}, llm.Typed},
		"a result was read":          {[]script.Turn{script.Call("look", `{}`), ask}, llm.Stranger},
		"a program has read it":      {[]script.Turn{script.Call("program", `{}`)}, llm.Stranger},
		"a program after the result": {[]script.Turn{script.Call("look", `{}`), script.Call("program", `{}`)}, llm.Stranger},
	} {
		answer := script.New(script.Say("b"))
		inner := &pawl.Agent{Name: "inner", Model: answer}
		a := &pawl.Agent{
			Tools: []pawl.Toolset{answering("look", llm.TextResult("x"), nil), program, inner.Tool("an agent")},
			Model: script.New(append(test.turns, script.Say("done"))...),
		}
		if _, err := a.Run(t.Context(), llm.User("a")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := byOf(answer.Requests()[0].Messages); !slices.Equal(got, []llm.Author{test.want}) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// composing returns a tool that calls the tool look, and returns r.
func composing(r llm.ToolResult) *pawl.Tool {
	return &pawl.Tool{Name: "program", Effect: pawl.EffectCompose,
		Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
			_, err := pawl.InvocationFrom(ctx).Do(ctx, llm.ToolCall{Name: "look", Args: json.RawMessage(`{}`)})
			return r, err
		}}
}

// TestComposedResultHasTheLabelOfItsParts: the result of a program, and the answer of an agent that
// is a tool, have the label of what their author had read, and name its sources.
func TestComposedResultHasTheLabelOfItsParts(t *testing.T) {
	claims := llm.TextResult("b")
	claims.Label = llm.Operator.Label()
	attached := llm.Attached.Label()
	inner := func(look *pawl.Tool, of *llm.Label) *pawl.Tool {
		a := &pawl.Agent{Name: "program", Label: of, Tools: []pawl.Toolset{look}, Instructions: "Look."}
		a.Model = script.New(script.Call("look", `{}`), script.Say("b"))
		return a.Tool("looks")
	}
	foreign := answering("look", llm.TextResult("a"), nil)
	trusted := answering("look", llm.TextResult("a"), llm.Trusted.Label())

	for name, test := range map[string]struct {
		tools []pawl.Toolset
		want  llm.Author
		looks bool // look is among the sources
	}{
		"a program":                         {[]pawl.Toolset{composing(llm.TextResult("b")), foreign}, llm.Stranger, true},
		"a program that fails":              {[]pawl.Toolset{composing(llm.ErrorResult("b")), foreign}, llm.Stranger, true},
		"a program that claims a label":     {[]pawl.Toolset{composing(claims), foreign}, llm.Stranger, true},
		"a program of trusted results":      {[]pawl.Toolset{composing(llm.TextResult("b")), trusted}, llm.Trusted, true},
		"an agent":                          {[]pawl.Toolset{inner(foreign, nil)}, llm.Stranger, true},
		"an agent with trusted results":     {[]pawl.Toolset{inner(trusted, nil)}, llm.Trusted, false},
		"an agent with others' instruction": {[]pawl.Toolset{inner(trusted, attached)}, llm.Attached, false},
	} {
		args := `{}`
		if len(test.tools) == 1 {
			args = `{"task":"x"}`
		}
		a := &pawl.Agent{Tools: test.tools, Model: script.New(script.Call("program", args), script.Say("c"))}
		res, err := a.Run(t.Context(), llm.User("a"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l, _ := res.Messages[2].Label()
		looks := slices.Contains(l.From, llm.Source{Kind: "tool", Name: "look"})
		if l.By != test.want || looks != test.looks {
			t.Errorf("%s: got %v from %+v, want %v", name, l.By, l.From, test.want)
		}
	}
}

// TestInstructionsOfOthers: an agent whose instructions have a text of others writes no text of the
// user's own.
func TestInstructionsOfOthers(t *testing.T) {
	for _, of := range []*llm.Label{llm.Attached.Label(), {}} {
		a := &pawl.Agent{Instructions: "Do as AGENTS.md says.", Label: of, Model: script.New(script.Say("b"))}
		res, err := a.Run(t.Context(), llm.User("a"))
		if err != nil {
			t.Fatal(err)
		}
		if l, _ := res.Messages[1].Label(); l.By != of.By {
			t.Errorf("got %v, want %v", l.By, of.By)
		}
	}
}
