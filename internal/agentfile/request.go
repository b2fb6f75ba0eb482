package agentfile

// request.go: what is sent with each request: settings, the tool choice, the schema of the answer
// and the part of the conversation.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
)

// choice returns c as requests have it. Empty means auto.
func (c Choice) choice() llm.ToolChoice {
	switch {
	case len(c) == 0:
		return llm.ToolChoice{}
	case len(c) > 1:
		return llm.Named(c...)
	}

	switch c[0] {
	case "auto":
		return llm.ToolChoice{}
	case "none":
		return llm.ToolChoice{Mode: llm.ToolNone}
	case "required":
		return llm.ToolChoice{Mode: llm.ToolRequired}
	}
	return llm.Named(c...)
}

// output returns the schema that an answer must fit. Nil means any text.
func (a *Agent) output() (json.RawMessage, error) {
	if a.Output == nil {
		return nil, nil
	}
	b := a.Output.Schema
	prefix := ""
	if name := a.Output.File; name != "" {
		var err error
		b, err = os.ReadFile(a.relative("output", name))
		if err != nil {
			return nil, finding(CodeBadFile, "output", "", "%s", plain(err))
		}
		prefix = name + ": "
	}
	if err := checkSchema(b); err != nil {
		return nil, finding(CodeBadSchema, "output", "a JSON Schema is an object", "%s%v", prefix, err)
	}
	return b, nil
}

// checkSchema reports whether b is a JSON Schema.
func checkSchema(b []byte) error {
	var object map[string]any
	err := json.Unmarshal(b, &object)
	if err == nil && object == nil {
		err = errors.New("got null where an object belongs")
	}
	if err != nil {
		return err
	}

	kinds := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	kind, _ := object["type"].(string)
	switch {
	case kind == "object" || object["type"] == nil:
		err = (&pawl.Tool{Name: "output", Input: b, Passive: true}).Check() // compiles it
	case kind != "" && !slices.Contains(kinds, kind):
		err = fmt.Errorf("there is no type %q; there are %s", kind, strings.Join(kinds, ", "))
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "tool output: input schema: "))
	}
	return nil
}

func (a *Agent) settings() llm.Settings {
	s := &a.Settings
	out := llm.Settings{
		MaxTokens:     value(s.MaxTokens),
		Temperature:   s.Temperature,
		TopP:          s.TopP,
		StopSequences: s.Stop,
		Effort:        s.Effort,
		Parallel:      s.Parallel,
	}
	for name, o := range s.Options {
		if out.Options == nil {
			out.Options = map[string]json.RawMessage{}
		}
		out.Options[name] = json.RawMessage(o)
	}
	return out
}

// history returns the middleware that chooses the part of a conversation that is sent to model.
// pinned returns what stays in sight; nil means nothing.
func (a *Agent) history(model llm.Model, pinned func([]llm.Message) string) []pawl.Middleware {
	h := cmp.Or(a.History, new(History))
	switch {
	case a.windowed():
		w := cmp.Or(h.Window, new(Window))
		o := &history.WindowOptions{
			HideReader: true,
			HighTokens: max(value(h.Tokens), value(h.Summary)),
			Tokens:     w.Tokens,
			High:       w.High,
			Low:        w.Low,
			Keep:       w.Keep,
			Native:     w.Native,
			Pinned:     pinned,
		}
		if w.Notes || h.Summary != nil {
			o.Notes = model
		}
		return []pawl.Middleware{history.Window(o)}
	case h.Turns != nil:
		return []pawl.Middleware{history.LastTurns(*h.Turns)}
	case h.Word == "current_trace":
		return []pawl.Middleware{history.DropPastToolCalls()}
	}
	return nil
}

// windowed reports whether requests are kept within the context window, which is the default.
func (a *Agent) windowed() bool {
	h := a.History
	if h == nil || h.Word == "window" {
		return true
	}
	return h.Window != nil || h.Tokens != nil || h.Summary != nil
}
