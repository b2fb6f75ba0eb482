package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Turn is one written reply. The functions of this package make the usual ones; fill in, or change,
// the fields for the rest. The zero Turn is an empty answer.
type Turn struct {
	// Parts are the parts of the reply, in order. A ToolCall without ID gets an ID, unique in
	// the conversation.
	Parts []llm.Part

	Finish llm.FinishReason // empty means tool_calls if Parts contain calls, else stop

	// Usage is the usage of the reply. Nil means a token for every four bytes of request and reply,
	// rounded up.
	Usage *llm.Usage

	// Requests is the number of further requests, besides the answered request. See
	// llm.Delta.Requests.
	Requests int

	// Err fails the reply after Parts; without Parts it fails at once. Nil means no failure.
	Err error

	Model string // the name of the model; empty means "script"
	ID    string // the reply's id; empty means an id made of its number

	// Size is the bytes of a fragment, at least one character. 0 means eight, or a sixty-fourth of
	// a long part.
	Size int

	Delay time.Duration // before the first fragment; virtual inside a synctest bubble
	Pace  time.Duration // between fragments

	// Deltas, when not nil, are played unchanged, streamed or whole, in place of Parts, Finish and
	// Usage: for replies that break the rules.
	Deltas []llm.Delta

	// Hold, when not nil, stops a reply after its first fragment until it is closed or the context
	// ends.
	Hold <-chan struct{}

	want []Matcher
	loop []Turn
	next func(*llm.Request) Turn
}

// Say answers with text.
func Say(text string) Turn { return Turn{Parts: []llm.Part{llm.Text{Text: text}}} }

// Think reasons before the rest of a reply; see Together.
func Think(text string) Turn { return Turn{Parts: []llm.Part{llm.Reasoning{Text: text}}} }

// Call calls a tool. A string, []byte or json.RawMessage is the arguments as the model writes them,
// byte for byte, JSON or not. Nil means {}; any other value is marshalled to JSON. Call panics on
// args without a JSON form.
func Call(name string, args any) Turn {
	call := llm.ToolCall{Name: name}
	switch a := args.(type) {
	case nil:
		call.Args = json.RawMessage("{}")
	case string:
		call.Args = json.RawMessage(a)
	// Not marshalled, which would write base64: bytes are the JSON that a model wrote.
	case []byte:
		call.Args = a
	case json.RawMessage:
		call.Args = a
	default:
		b, err := json.Marshal(args)
		if err != nil {
			panic(fmt.Sprintf("script.Call %s: arguments: %v", name, err))
		}
		call.Args = b
	}
	return Turn{Parts: []llm.Part{call}}
}

// Together makes one reply of several turns: their parts in order, their expectations, the last of
// every other field that is set, and the first Err. It panics on turns that are not plain replies
// (Func, Loop, Flaky, or with Deltas).
func Together(turns ...Turn) Turn {
	var all Turn
	for _, t := range turns {
		if t.next != nil || t.loop != nil || t.Deltas != nil {
			panic("script.Together: only plain replies can be put together")
		}
		all.Parts = append(all.Parts, t.Parts...)
		if t.Finish != "" {
			all.Finish = t.Finish
		}
		if t.Usage != nil {
			all.Usage = t.Usage
		}
		if t.Hold != nil {
			all.Hold = t.Hold
		}
		all.want = append(all.want, t.want...)

		all.Model = cmp.Or(t.Model, all.Model)
		all.ID = cmp.Or(t.ID, all.ID)
		all.Size = cmp.Or(t.Size, all.Size)
		all.Delay = cmp.Or(t.Delay, all.Delay)
		all.Pace = cmp.Or(t.Pace, all.Pace)
		all.Requests = cmp.Or(t.Requests, all.Requests)
		if all.Err == nil {
			all.Err = t.Err
		}
	}
	return all
}

// Fail answers with err in place of a reply. After other turns in Together, it breaks the reply
// off.
func Fail(err error) Turn { return Turn{Err: err} }

// Cut is t ended by the token limit: its finish reason is length, so none of its calls may run.
func Cut(t Turn) Turn {
	t.Finish = llm.FinishReasonLength
	return t
}

// Loop plays turns again and again. Turns after a Loop are never reached. It panics without turns.
func Loop(turns ...Turn) Turn {
	if len(turns) == 0 {
		panic("script.Loop: no turns")
	}
	return Turn{loop: turns}
}

// Func is decided from the request when its turn comes. f must not change or store the request, and
// may be called concurrently. A repeated request calls f again.
func Func(f func(req *llm.Request) Turn) Turn { return Turn{next: f} }

// Flaky fails with one of errs per request, and plays t after that. It is the only turn with state:
// its count covers all runs.
func Flaky(t Turn, errs ...error) Turn {
	var mu sync.Mutex
	return Func(func(*llm.Request) Turn {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) == 0 {
			return t
		}
		err := errs[0]
		errs = errs[1:]
		return Fail(err)
	})
}

// Results returns the results after the last reply of req, in call order. Nil means that the reply
// had no calls.
func Results(req *llm.Request) []llm.ToolResult {
	var results []llm.ToolResult
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			results = nil
		}
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				results = append(results, r)
			}
		}
	}
	return results
}

// ResultOf returns the latest result of a call of the tool name in req, or nil.
func ResultOf(req *llm.Request, name string) *llm.ToolResult {
	var last *llm.ToolResult

	// ids of calls of the tool in the current reply; later replies may use them again
	called := map[string]bool{}

	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			clear(called)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if p.Name == name {
					called[p.ID] = true
				}
			case llm.ToolResult:
				if called[p.CallID] {
					last = &p
				}
			}
		}
	}
	return last
}
