// Package hostile is a kit of models that behave badly, played over four wires. It states what a
// runtime for tool calling should do about each of them, and judges runtimes.
//
//	Behaviours ──▶ Server ──HTTP──▶ a runtime, in any language ──▶ the kit's Tools
//	    │            │                                               │
//	    └── Want ──▶ Judge ◀── what came over the wire ◀─────────────┘  what ran
//
// A Behaviour is data: the model's reply of each turn, the faults on the wire, the tools to
// offer, and the expected outcome: which calls ran with which arguments, which results the model
// received, and how the run stopped. Each Behaviour names the demands it covers (Demands lists
// them), and every demand has a Behaviour.
//
// Server offers the Behaviours on a port: /b/ID/v1/chat/completions plays one, / lists them all
// with the tools to define, and /b/ID/verdict reports what the runtime did, from the wire alone.
// Play does the same for a runtime that can be called from Go, and sees more: which calls ran,
// and how the run stopped. Agent is pawl as such a runtime.
//
// Every tool of the kit begins what it returns with a receipt, "ran NAME ARGUMENTS", so that a
// result on the wire shows whether the call was executed, and with which arguments.
package hostile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Behaviour is one way in which a model, or the server before it, behaves badly. It is data; treat
// it as read only.
type Behaviour struct {
	ID string `json:"id"`
	// The action of the model, without the word "model" before it.
	Title string   `json:"title"`
	Meets []string `json:"meets"` // ids of Demands
	Tools []string `json:"tools"` // names of the kit's tools to offer, in this order
	// Set-up of the runtime. The zero value means its defaults.
	Setup Setup `json:"setup,omitzero"`
	// The model's replies, by number of replies in the request. After them the model says "Done.".
	Turns []Turn `json:"turns"`
	Want  Want   `json:"want"` // the expected outcome
	// APIs that can express it, or API/stream and API/whole. Empty means all.
	Only []string `json:"only,omitempty"`
	// The run is made twice, and both must send the same bytes.
	Twice bool `json:"twice,omitempty"`
}

// Setup is the set-up of the runtime for a Behaviour, in addition to its tools. The zero value of a
// field means the runtime's default.
type Setup struct {
	// None, required, or the name of the tool that is forced.
	Choice string `json:"choice,omitempty"`
	// Maximum number of steps whose calls are executed; -1 means none.
	Rounds       int `json:"rounds,omitempty"`
	Calls        int `json:"calls,omitempty"`          // maximum number of calls
	CallsPerStep int `json:"calls_per_step,omitempty"` // maximum number of calls in one reply
	Tokens       int `json:"tokens,omitempty"`         // maximum number of tokens in all
	// Time limit of the run, in nanoseconds.
	Time time.Duration `json:"time,omitempty"`
	// Time for which the server may be silent, in nanoseconds.
	Silence time.Duration `json:"silence,omitempty"`
	Effort  string        `json:"effort,omitempty"` // of reasoning
	// Calls that are written as text are executed.
	FromText bool `json:"from_text,omitempty"`
	// The user sends this message when the run is resumed, or while a tool runs.
	Word string `json:"word,omitempty"`
	// The stored form of a stopped run is resumed: approved, answered, continued.
	GoOn bool `json:"go_on,omitempty"`
}

// Turn is one reply and its fault.
type Turn struct {
	Think string `json:"think,omitempty"` // reasoning
	Text  string `json:"text,omitempty"`  // text before its calls
	Calls []Call `json:"calls,omitempty"` // its calls
	// In pawl's words. Empty means tool_calls with calls, else stop.
	Finish llm.FinishReason `json:"finish,omitempty"`
	Usage  *llm.Usage       `json:"usage,omitempty"`
	Wire   Wire             `json:"wire,omitzero"` // the fault on the wire
	// This turn and the turns after it are repeated.
	Often bool `json:"often,omitempty"`
	// The action of a turn that depends on the request.
	Does string `json:"does,omitempty"`

	make func(req *llm.Request) Turn // selects the turn for the request; nil means this turn
	flow func() llm.Model            // plays the turn itself; nil means that a script does
}

// Call is a call in the spelling of the model.
type Call struct {
	ID   string
	Name string
	Args string // as written; it need not be JSON
}

// MarshalJSON writes long arguments as their head and length.
func (c Call) MarshalJSON() ([]byte, error) {
	cut := func(s string) string {
		if len(s) > 300 {
			s = fmt.Sprintf("%s… (%d bytes)", s[:60], len(s))
		}
		return s
	}
	return json.Marshal(struct {
		ID   string `json:"id,omitempty"`
		Name string `json:"name"`
		Args string `json:"arguments"`
	}{cut(c.ID), cut(c.Name), cut(c.Args)})
}

// Want is the expected outcome of a Behaviour. In addition, every request must have a valid
// conversation with the task, the same tools in the same bytes, no key in the address, and no stack
// trace. Error texts must be short.
type Want struct {
	Results []Shown `json:"results"` // of every call, in call order
	// How the run stops, in pawl's words; alternatives with | between. Empty means answer.
	Stop string `json:"stop"`
	// Minimum and maximum number of requests. The zero value means one for each turn, and one more.
	Requests [2]int `json:"requests,omitzero"`
	// Number of tool executions in all, if Results cannot express it. 0 means as in Results.
	Ran  int `json:"ran,omitempty"`
	Peak int `json:"peak,omitempty"` // maximum number of concurrent tools; 0 means any number
	// Words that the transcript must contain outside of results.
	Keeps []string `json:"keeps,omitempty"`
	Lacks []string `json:"lacks,omitempty"` // words that the transcript must not contain
	// Any results are accepted if no call runs that is not in Results, and none runs again.
	Loose bool `json:"loose,omitempty"`
	// Tool choice of the last request: auto or none. Empty means any.
	Last string `json:"last,omitempty"`
	// Progress from within the calls reaches the observer.
	Events bool `json:"events,omitempty"`
}

// Shown is the expected outcome of one call, or of several in a row.
type Shown struct {
	// NAME ARGUMENTS: the call ran once with these arguments; * means any. Empty means that it did
	// not run.
	Ran string `json:"ran,omitempty"`
	// Words that the result contains, in any case; alternatives with | between.
	Says  []string `json:"says,omitempty"`
	Hides []string `json:"hides,omitempty"` // words that the result must not contain
	Or    []string `json:"or,omitempty"`    // instead of a run, the result may contain these words
	Alter string   `json:"alter,omitempty"` // or it may have run with these arguments
	Fails bool     `json:"fails,omitempty"` // it ran, and its result is an error
	Mute  bool     `json:"mute,omitempty"`  // it ran, but its result was lost: there is no receipt
	Open  bool     `json:"open,omitempty"`  // it has no result: it waits
	// Maximum size of the result in bytes. 0 means 64 KiB if the call ran, else 8 KiB.
	Most int `json:"most,omitempty"`
	// Number of such calls in a row. 0 means one, -1 means any number.
	Times int `json:"times,omitempty"`
}

// On reports whether api can express the Behaviour, streamed or whole.
func (b *Behaviour) On(api string, stream bool) bool {
	mode := api + "/" + Mode(stream)
	return len(b.Only) == 0 || slices.Contains(b.Only, api) || slices.Contains(b.Only, mode) ||
		slices.Contains(b.Only, Mode(stream))
}

// Mode is "stream" or "whole".
func Mode(stream bool) string {
	if stream {
		return "stream"
	}
	return "whole"
}

// Find returns the Behaviour with the id, or nil.
func Find(all []Behaviour, id string) *Behaviour {
	i := slices.IndexFunc(all, func(b Behaviour) bool { return b.ID == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Behaviours returns all of them, in the order of the table. Each call makes them anew, because
// some are large.
func Behaviours() []Behaviour {
	all := slices.Concat(names(), arguments(), repairs(), finishes(), ids(), streams(), providers(),
		many(), choices(), people(), toolFaults(), reasonings(), setups())
	for i := range all {
		b := &all[i]
		if b.Tools == nil {
			b.Tools = []string{"weather"}
		}
		if b.Want.Stop == "" {
			b.Want.Stop = string(pawl.StopAnswer)
		}
		if b.Want.Requests == [2]int{} {
			b.Want.Requests = [2]int{len(b.Turns) + 1, len(b.Turns) + 1}
		}
	}
	return all
}

// model returns the model that plays the Behaviour.
func (b *Behaviour) model() llm.Model {
	var turns, loop []script.Turn
	for _, t := range b.Turns {
		if t.flow != nil {
			return t.flow()
		}
		if t.Often || loop != nil {
			loop = append(loop, t.script())
		} else {
			turns = append(turns, t.script())
		}
	}
	if loop == nil {
		loop = []script.Turn{script.Say("Done.")}
	}
	return &script.Model{Turns: append(turns, script.Loop(loop...)), Quiet: true}
}

// script writes the turn for package script.
func (t Turn) script() script.Turn {
	if t.make != nil {
		return script.Func(func(req *llm.Request) script.Turn { return t.make(req).script() })
	}
	s := script.Turn{Finish: t.Finish, Usage: t.Usage}
	if t.Think != "" {
		s.Parts = append(s.Parts, llm.Reasoning{Text: t.Think})
	}
	if t.Text != "" {
		s.Parts = append(s.Parts, llm.Text{Text: t.Text})
	}
	for _, c := range t.Calls {
		s.Parts = append(s.Parts, llm.ToolCall{ID: c.ID, Name: c.Name, Args: json.RawMessage(c.Args)})
	}
	return s
}

// replies counts the replies in a request, which is the number of the requested turn.
func replies(req *llm.Request) int {
	n := 0
	if req != nil {
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
	}
	return n
}

// turn returns the turn for a request. nil means the last word.
func (b *Behaviour) turn(n int) *Turn {
	if n < len(b.Turns) {
		return &b.Turns[n]
	}
	for i := range b.Turns {
		if b.Turns[i].Often {
			return &b.Turns[i+(n-i)%(len(b.Turns)-i)]
		}
	}
	return nil
}

// task is the user's message in every Behaviour.
func (b *Behaviour) task() string { return "Task " + b.ID + ": use the tools, then answer." }

// said returns the text of a message, without results.
func said(m llm.Message) string {
	var s strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			s.WriteString(p.Text)
		case llm.Reasoning:
			s.WriteString(p.Text)
		}
	}
	return s.String()
}
