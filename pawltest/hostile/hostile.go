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
	// What the model does, without the word "model" before it.
	Title string   `json:"title"`
	Meets []string `json:"meets"` // ids of Demands
	Tools []string `json:"tools"` // names of the kit's tools to offer, in this order
	// How the runtime is to be set up. The zero value means its defaults.
	Setup Setup `json:"setup,omitzero"`
	// The model's replies, by number of replies in the request; after them it says "Done.".
	Turns []Turn `json:"turns"`
	Want  Want   `json:"want"` // what must come of it
	// APIs that can express it, or API/stream and API/whole. Empty means all.
	Only []string `json:"only,omitempty"`
	// The run is made twice, and its requests must be the same bytes.
	Twice bool `json:"twice,omitempty"`
}

// Setup is how the runtime is set up for a Behaviour, in addition to its tools. The zero value of a
// field means the runtime's default.
type Setup struct {
	// None, required, or the name of the tool that is forced.
	Choice string `json:"choice,omitempty"`
	// Most steps whose calls are executed; -1 means none.
	Rounds       int `json:"rounds,omitempty"`
	Calls        int `json:"calls,omitempty"`          // most calls
	CallsPerStep int `json:"calls_per_step,omitempty"` // most calls of one reply
	Tokens       int `json:"tokens,omitempty"`         // most tokens in all
	// Time limit of the run, in nanoseconds.
	Time time.Duration `json:"time,omitempty"`
	// How long the server may be silent, in nanoseconds.
	Silence time.Duration `json:"silence,omitempty"`
	Effort  string        `json:"effort,omitempty"` // of reasoning
	// Calls that are written as text are to be executed.
	FromText bool `json:"from_text,omitempty"`
	// The user says this when the run is taken up again, or while a tool runs.
	Word string `json:"word,omitempty"`
	// What was stored of a run that stopped is taken up again: approved, answered, resumed.
	GoOn bool `json:"go_on,omitempty"`
}

// Turn is one reply, and what goes wrong with it.
type Turn struct {
	Think string `json:"think,omitempty"` // reasoning
	Text  string `json:"text,omitempty"`  // what it says, before its calls
	Calls []Call `json:"calls,omitempty"` // what it calls
	// In pawl's words. Empty means tool_calls with calls, else stop.
	Finish llm.FinishReason `json:"finish,omitempty"`
	Usage  *llm.Usage       `json:"usage,omitempty"`
	Wire   Wire             `json:"wire,omitzero"` // what goes wrong on the wire
	// This turn and those after it are played again and again.
	Often bool `json:"often,omitempty"`
	// What the turn does, where it depends on the request.
	Does string `json:"does,omitempty"`

	make func(req *llm.Request) Turn // decides the turn when it comes; nil means this turn
	flow func() llm.Model            // plays the turn itself; nil means that a script does
}

// Call is a call as the model writes it.
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

// Want is what must come of a Behaviour. Every conversation must also be valid in every request,
// hold the task, offer the same tools in the same bytes, keep the key out of the address, and show
// no stack traces; errors that are shown must be short.
type Want struct {
	Results []Shown `json:"results"` // of every call, in call order
	// How the run stops, in pawl's words; alternatives with | between. Empty means answer.
	Stop string `json:"stop"`
	// Fewest and most requests. The zero value means one for each turn, and one more.
	Requests [2]int `json:"requests,omitzero"`
	// How often tools ran in all, where Results cannot say it. 0 means as Results say.
	Ran  int `json:"ran,omitempty"`
	Peak int `json:"peak,omitempty"` // most tools that may run at once; 0 means any number
	// Words that the transcript must hold outside of results.
	Keeps []string `json:"keeps,omitempty"`
	Lacks []string `json:"lacks,omitempty"` // words that the transcript must not hold
	// Any results will do, as long as nothing ran, or ran again, that is not in Results.
	Loose bool `json:"loose,omitempty"`
	// Tool choice of the last request: auto or none. Empty means any.
	Last string `json:"last,omitempty"`
	// Progress from within the calls reaches the observer.
	Events bool `json:"events,omitempty"`
}

// Shown is what must have come of one call, or of several in a row.
type Shown struct {
	// NAME ARGUMENTS: it ran, once, with these, or with any where they are *. Empty means that it
	// did not run.
	Ran string `json:"ran,omitempty"`
	// Words that the result holds, in any case; alternatives with | between.
	Says  []string `json:"says,omitempty"`
	Hides []string `json:"hides,omitempty"` // words that the result must not hold
	Or    []string `json:"or,omitempty"`    // instead of having run, it may say these words
	Alter string   `json:"alter,omitempty"` // or it may have run with these arguments
	Fails bool     `json:"fails,omitempty"` // it ran, and its result is an error
	Mute  bool     `json:"mute,omitempty"`  // it ran, but its result was lost: there is no receipt
	Open  bool     `json:"open,omitempty"`  // it has no result: it waits
	// Most bytes of the result. 0 means 64 KiB if the call ran, else 8 KiB.
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

// Behaviours returns all of them, in the order of the table. They are made anew: some are big.
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

// model returns what plays the Behaviour.
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

// replies counts the replies in a request: the number of the turn that it asks for.
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

// turn returns the turn that a request asks for. nil means the last word.
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

// task is what the user asks in every Behaviour.
func (b *Behaviour) task() string { return "Task " + b.ID + ": use the tools, then answer." }

// said is what was said in a message, without results.
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
