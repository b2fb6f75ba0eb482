package react_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speaker turns the replies of a model with function calling into the text of a format.
type speaker struct {
	behind llm.Model
	format react.Format
}

func (s speaker) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		resp := new(llm.Response)
		for d, err := range s.behind.Stream(ctx, req) {
			if err == nil {
				err = resp.Add(d)
			}
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
		}
		text := say(s.format, resp.Message)
		usage := resp.Usage
		if resp.Finish == llm.FinishReasonToolCalls {
			resp.Finish = llm.FinishReasonStop // the calls are text now
		}
		if req.Whole {
			_ = yield(llm.Delta{Part: llm.Text{Text: text}, Done: true}, nil) &&
				yield(llm.Delta{Usage: &usage, Finish: resp.Finish, Model: resp.Model, ID: resp.ID}, nil)
			return
		}
		for _, piece := range strings.SplitAfter(text, " ") {
			if !yield(llm.Delta{Part: llm.Text{Text: piece}}, nil) {
				return
			}
		}
		yield(llm.Delta{Usage: &usage, Finish: resp.Finish, Model: resp.Model, ID: resp.ID}, nil)
	}
}

// say writes a reply in a format.
func say(f react.Format, m llm.Message) string {
	thought := ""
	for _, p := range m.Parts {
		if r, ok := p.(llm.Reasoning); ok {
			thought += r.Text
		}
	}
	calls := m.Calls()
	var b strings.Builder
	quote := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	switch f {
	case react.JSON:
		switch {
		case len(calls) == 0:
			fmt.Fprintf(&b, `{"thought":%s,"type":"final_answer","tool":null,"args":{},"answer":%s}`, quote(thought), quote(m.Text()))
		case len(calls) == 1:
			fmt.Fprintf(&b, `{"thought":%s,"type":"call_tool","tool":%s,"args":%s,"answer":null}`, quote(thought), quote(calls[0].Name), calls[0].Args)
		default:
			fmt.Fprintf(&b, `{"thought":%s,"type":"call_tool","calls":[`, quote(thought))
			for i, c := range calls {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, `{"tool":%s,"args":%s}`, quote(c.Name), c.Args)
			}
			b.WriteString(`]}`)
		}
	case react.Text:
		if thought != "" {
			fmt.Fprintf(&b, "Thought: %s\n", thought)
		}
		for _, c := range calls {
			fmt.Fprintf(&b, "Action: %s\nAction Input: %s\n", c.Name, c.Args)
		}
		if len(calls) == 0 {
			fmt.Fprintf(&b, "Final Answer: %s", m.Text())
		}
	case react.XML:
		if thought != "" {
			fmt.Fprintf(&b, "<thought>%s</thought>\n", thought)
		}
		for _, c := range calls {
			fmt.Fprintf(&b, "<tool>%s</tool>\n<args>%s</args>\n", c.Name, c.Args)
		}
		if len(calls) == 0 {
			fmt.Fprintf(&b, "<answer>%s</answer>", m.Text())
		}
	case react.Plain:
		if len(calls) == 0 {
			return m.Text()
		}
		if thought != "" {
			b.WriteString(thought + "\n")
		}
		for _, c := range calls {
			fmt.Fprintf(&b, "Calling tool: %s with args: %s\n", c.Name, c.Args)
		}
	}
	return b.String()
}

// newScript answers with the texts in turn. It counts requests, because these have no replies to
// count.
func newScript(texts ...string) llm.Model {
	n := 0
	return script.New(script.Loop(script.Func(func(*llm.Request) script.Turn {
		n++
		if n > len(texts) {
			return script.Fail(errors.New("asked too often"))
		}
		return script.Say(texts[n-1])
	})))
}
