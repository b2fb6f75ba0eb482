// Package todo provides the list of tasks that a model keeps during a long run, and the middleware
// that recites it.
//
//	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{todo.New(), …},
//		Middleware: []pawl.Middleware{todo.Middleware()}}
//	res, err := agent.Run(ctx, llm.User("Migrate the service."))
//	list, err := todo.Of(res.Values)
//
// The tool todo (EffectIdempotent) replaces the whole list, or shows it. The list is a value of the
// run (Value), so it survives resume, fork and a history that leaves out the call.
package todo

import (
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

// recited is the name of the value that holds the step of the last recital.
const recited = "pawl.todo.recited"

// NoticeOpen is the code of the notice that an answer leaves items open.
const NoticeOpen = "todo_open"

// Bounds of a list and of its recital.
const (
	maxText    = 200
	maxRecital = 590
	rounds     = 10 // without a call of todo, until the list is recited
)

// The states of an item. At most one item is StateDoing.
const (
	StateOpen    = "open"
	StateDoing   = "doing"
	StateDone    = "done"
	StateDropped = "dropped"
)

// Item is a task.
type Item struct {
	Text  string `json:"text"`
	State string `json:"state"`
}

// List is the list of a run.
type List struct {
	Items []Item `json:"items"`
	Step  int    `json:"step"` // that last replaced it
}

// Of returns the list among the values of a run. It is empty if the run has none.
func Of(v pawl.Values) (list List, err error) {
	if b := v[Value]; b != nil {
		err = json.Unmarshal(b, &list)
	}
	return list, err
}

// left returns the texts of the items that are open or doing.
func (l List) left() (left []string) {
	for _, it := range l.Items {
		if it.State == StateOpen || it.State == StateDoing {
			left = append(left, it.Text)
		}
	}
	return left
}

// String returns a line for each item.
func (l List) String() string {
	var b strings.Builder
	for _, it := range l.Items {
		mark := map[string]string{StateOpen: " ", StateDoing: ">", StateDone: "x", StateDropped: "-"}[it.State]
		fmt.Fprintf(&b, "[%s] %s\n", mark, strings.Join(strings.Fields(it.Text), " "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// summary returns the sentence that a call gets as its result.
func (l List) summary() string {
	done, next := 0, "; nothing is open"
	for _, it := range slices.Backward(l.Items) {
		switch {
		case it.State == StateDone:
			done++
		case it.State == StateDoing:
			next = "; doing: " + it.Text
		case it.State == StateOpen && !strings.HasPrefix(next, "; doing"):
			next = "; next: " + it.Text
		}
	}
	return fmt.Sprintf("%d of %d done%s", done, len(l.Items), next)
}

//go:embed *.md *.json
var definitions embed.FS

// New returns the tool todo.
func New() *pawl.Tool {
	return toolrun.Define(definitions, "todo", &pawl.Tool{Name: "todo", Effect: pawl.EffectIdempotent,
		Run: toolrun.Func(replace)})
}

type args struct{ Items *[]Item }

func replace(ctx context.Context, a args) (res llm.ToolResult, err error) {
	var list List
	v := pawl.InvocationFrom(ctx)
	if v == nil {
		return res, toolrun.Refuse("there is no run here, and the list belongs to a run")
	}
	if a.Items == nil {
		ok, err := v.Get(Value, &list)
		if !ok {
			list = lastOf(v.Messages()) // of an earlier run of the conversation
		}
		if err == nil && len(list.Items) == 0 {
			return llm.TextResult("The list is empty."), nil
		}
		return llm.TextResult(list.String()), err
	}
	doing := 0
	for i, it := range *a.Items {
		if len(it.Text) > maxText {
			return res, toolrun.Refuse("item %d has %d bytes; at most %d are allowed", i+1, len(it.Text), maxText)
		}
		if it.State == StateDoing {
			doing++
		}
	}
	if doing > 1 {
		return res, toolrun.Refuse("%d items are doing; do one at a time, and leave the others open", doing)
	}
	list.Items = *a.Items
	list.Step, _ = place(v.Key)
	return llm.TextResult(list.summary()), v.Set(Value, list)
}

// place returns the step of the call with the key k, and whether the model made it itself.
func place(k llm.Key) (int, bool) {
	parts, top := strings.Split(string(k), "/"), true
	for len(parts) > 3 && strings.HasPrefix(parts[len(parts)-1], "s") { // of a program
		parts, top = parts[:len(parts)-1], false
	}
	step, _ := strconv.Atoi(parts[max(0, len(parts)-2)])
	return step, top
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
		step, top := place(v.Key)
		if err != nil || !top || v.Call.Name == "todo" {
			return res, err
		}
		var list List
		last := 0
		_, wrong := v.Get(Value, &list)
		_, other := v.Get(recited, &last)
		left := list.left()
		if wrong != nil || other != nil || len(left) == 0 || step-max(last, list.Step) < rounds || !isLast(v) ||
			v.Set(recited, step) != nil {
			return res, nil
		}
		recital := "\n\nOpen: " + text.Clip(strings.Join(left, "; "), maxRecital)
		res.Parts = append(slices.Clip(res.Parts), llm.Text{Text: recital})
		return res, nil
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
				list := lastOf(req.Messages)
				n := &llm.Notice{Code: NoticeOpen, Text: "the answer leaves items open: " + list.summary()}
				if len(list.left()) > 0 && !yield(llm.Delta{Notice: n}, nil) {
					return
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// lastOf returns the list of the last successful call in msgs.
func lastOf(msgs []llm.Message) (list List) {
	failed := map[string]bool{}
	for _, m := range slices.Backward(msgs) {
		for _, p := range slices.Backward(m.Parts) {
			switch p := p.(type) {
			case llm.ToolResult:
				failed[p.CallID] = p.IsError
			case llm.ToolCall:
				var a args
				if p.Name == "todo" && !failed[p.ID] && json.Unmarshal(p.Args, &a) == nil && a.Items != nil {
					return List{Items: *a.Items}
				}
			}
		}
	}
	return list
}
