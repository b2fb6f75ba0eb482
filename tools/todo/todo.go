// Package todo provides the list of tasks that a model keeps during a long run, and the middleware
// that recites it.
//
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{todo.New(), …},
//		Middleware: []pawl.Middleware{todo.Middleware(),
//			history.Window(&history.WindowOptions{Pinned: todo.Pinned})}}
//	res, err := agent.Run(ctx, llm.User("Migrate the service."))
//	list, err := todo.Of(res.Values)
//
// The tool todo (EffectIdempotent) replaces the whole list, or shows it. The list is a value of the
// run (Value), so it survives resume, fork and a history that leaves out the call.
package todo

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// Value is the name of the run's value that holds the List.
const Value = "pawl.todo"

const recited = "pawl.todo.recited" // the value that holds the step of the last call or recital

// NoticeOpen is the code of the notice that an answer leaves items open.
const NoticeOpen = "todo_open"

const maxRecital = 590

const rounds = 10 // without a call of todo, until the list is recited

// Item is a task.
type Item struct {
	Text  string `json:"text"`  // what to do
	State string `json:"state"` // open, doing, done or dropped; at most one is doing
}

// List is the list of a run.
type List struct {
	Items []Item `json:"items"` // in the order of the model
}

// Of returns the list among the values of a run. It is empty if the run has none.
func Of(v pawl.Values) (list List, err error) {
	if b := v[Value]; b != nil {
		err = json.Unmarshal(b, &list)
	}
	return list, err
}

// String returns a line for each item.
func (l List) String() string {
	var b strings.Builder
	for _, it := range l.Items {
		mark := map[string]string{"open": " ", "doing": ">", "done": "x", "dropped": "-"}[it.State]
		fmt.Fprintf(&b, "[%s] %s\n", mark, strings.Join(strings.Fields(it.Text), " "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// summary returns the sentence that a call gets as its result, and the texts of the items that are
// open or doing.
func (l List) summary() (text string, left []string) {
	done := 0
	next := ""
	for _, it := range l.Items {
		switch it.State {
		case "done":
			done++
		case "open", "doing":
			left = append(left, it.Text)
			if next == "" || it.State == "doing" {
				next = "; next: " + it.Text
			}
		}
	}
	return fmt.Sprintf("%d of %d done%s", done, len(l.Items), cmp.Or(next, "; nothing is open")), left
}

//go:embed *.md *.json
var definitions embed.FS

// New returns the tool todo.
func New() *pawl.Tool {
	return toolrun.Define(definitions, "todo", &pawl.Tool{Name: "todo", Effect: pawl.EffectIdempotent,
		Run: toolrun.Func(replace)})
}

func replace(ctx context.Context, list List) (res llm.ToolResult, err error) {
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return res, toolrun.Refuse("there is no run here, and the list belongs to a run")
	}
	// A call without a list reads it. An empty list would delete all.
	if list.Items == nil {
		_, err := v.Get(Value, &list)
		return llm.TextResult(cmp.Or(list.String(), "The list is empty.")), err
	}
	doing := 0
	for _, it := range list.Items {
		if it.State == "doing" {
			doing++
		}
	}
	if doing > 1 {
		return res, toolrun.Refuse("%d items are doing; do one at a time, and leave the others open", doing)
	}
	said, _ := list.summary()
	return llm.TextResult(said), v.Set(Value, list)
}

// Middleware returns the middleware that recites open items when 10 rounds have passed without a
// call of todo: the last result of the round ends with them. It never changes what was sent. A
// notice NoticeOpen reports an answer that leaves items open.
func Middleware() pawl.Middleware {
	return pawl.Middleware{Tool: recite, Model: func(m llm.Model) llm.Model { return &model{m} }}
}

func recite(next pawl.ToolFunc) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		res, err := next(ctx, call)
		v := pawl.InvocationFrom(ctx)
		place := strings.Split(string(v.Key), "/")
		if n := len(place); err != nil || n < 3 || place[n-1][0] == 's' { // a call of a program
			return res, err
		}
		last := 0
		list := List{}
		now, _ := strconv.Atoi(place[len(place)-2])
		_, wrong := v.Get(Value, &list)
		_, other := v.Get(recited, &last)
		_, left := list.summary()

		readable := wrong == nil && other == nil
		// A model that works for long loses sight of its list. A reminder in each round would only
		// cost tokens.
		due := len(left) > 0 && now-last >= rounds
		switch {
		case call.Name == "todo":
			err = v.Set(recited, now)
		case readable && due && isLast(v):
			recital := "\n\nOpen: " + text.Clip(strings.Join(left, "; "), maxRecital)
			res.Parts = append(slices.Clip(res.Parts), llm.Text{Text: recital})
			err = v.Set(recited, now)
		}
		return res, err
	}
}

// isLast reports whether v is the last call of its reply, or the first one if another process made
// the reply.
func isLast(v *pawl.Invocation) bool {
	msgs := v.Messages()
	if len(msgs) == 0 {
		return strings.HasSuffix(string(v.Key), "/0")
	}
	calls := msgs[len(msgs)-1].Calls()
	return len(calls) > 0 && calls[len(calls)-1].ID == v.Call.ID
}

// model reports an answer that leaves items open.
type model struct{ inner llm.Model }

// Unwrap returns the inner model.
func (m *model) Unwrap() llm.Model { return m.inner }

// Stream asks the inner model.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		calls := false
		for d, err := range m.inner.Stream(ctx, req) {
			if _, ok := d.Part.(llm.ToolCall); ok {
				calls = true
			}
			if d.Finish != "" && !calls {
				said, left := lastOf(req.Messages[req.Turn:]).summary()
				n := &llm.Notice{Code: NoticeOpen, Text: "the answer leaves items open: " + said}
				if len(left) > 0 && !yield(llm.Delta{Notice: n}, nil) {
					return
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// Pinned returns the list in messages, for history.WindowOptions. It is empty if they have none.
func Pinned(messages []llm.Message) string {
	if list := lastOf(messages); len(list.Items) > 0 {
		return "The list of the tool todo:\n" + list.String()
	}
	return ""
}

// lastOf returns the list of the last call in msgs that did not fail.
func lastOf(msgs []llm.Message) (list List) {
	failed := map[string]bool{}
	for _, m := range slices.Backward(msgs) {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				failed[r.CallID] = r.IsError
			}
		}
		for _, c := range slices.Backward(m.Calls()) {
			if c.Name != "todo" || failed[c.ID] {
				continue
			}
			var l List
			if json.Unmarshal(c.Args, &l) == nil && l.Items != nil {
				return l
			}
		}
	}
	return list
}
