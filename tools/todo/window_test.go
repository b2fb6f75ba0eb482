package todo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/todo"
)

// worker works through 43 items with long results: every 7th reply replaces the list. It refuses
// the requests of one step twice as too long, which leads to the hard cut.
type worker struct {
	step, refused int
	latest        string // arguments of the last call
	requests      []string
	lost, stale   []int // steps
}

func (w *worker) list() string {
	var pairs []string
	for i := range 43 {
		state := "open"
		if i < w.step/7 {
			state = "done"
		}
		pairs = append(pairs, state, fmt.Sprintf("mend wall number %d of the mill", i))
	}
	return items(pairs...)
}

func (w *worker) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		b, _ := json.Marshal(req.Messages)
		w.requests = append(w.requests, string(b))
		if w.step == 200 && w.refused < 2 {
			w.refused++
			yield(llm.Delta{}, &llm.ProviderError{Code: llm.CodeContextLength, Message: "too long"})
			return
		}
		var sent strings.Builder // what the model can read
		for _, m := range req.Messages {
			sent.WriteString(m.Text() + "\n")
			for _, c := range m.Calls() {
				sent.Write(c.Args)
			}
		}
		if w.latest != "" {
			var list todo.List
			_ = json.Unmarshal([]byte(w.latest), &list)
			for _, it := range list.Items {
				if !strings.Contains(sent.String(), it.Text) {
					w.lost = append(w.lost, w.step)
				}
			}
			if !strings.Contains(sent.String(), list.String()) && !strings.Contains(sent.String(), w.latest) {
				w.stale = append(w.stale, w.step)
			}
		}
		call := llm.ToolCall{ID: fmt.Sprint("c", w.step), Name: "read", Args: fmt.Appendf(nil, `{"n":%d}`, w.step)}
		if w.step%7 == 0 && w.step < 300 { // afterwards the list is stale, and recited
			w.latest = w.list()
			call.Name, call.Args = "todo", []byte(w.latest)
		}
		part := llm.Part(call)
		if w.step++; w.step == 400 {
			part = llm.Text{Text: "done"}
		}
		if yield(llm.Delta{Part: part, Done: true}, nil) {
			yield(llm.Delta{Usage: &llm.Usage{Input: len(b) / 3, Output: 5}, Finish: llm.FinishReasonStop}, nil)
		}
	}
}

// A list survives every fold and the hard cut, and no request shows an older one in its place.
// Without Pinned it is lost. A list that is not touched is recited at most every ten rounds.
func TestListInWindow(t *testing.T) {
	for _, pinned := range []bool{true, false} {
		read := pawl.Func("read", "Reads.", func(_ context.Context, in struct {
			N int `json:"n"`
		}) (string, error) {
			return strings.Repeat(fmt.Sprint("line ", in.N, " of the page; "), 120), nil
		})
		read.Effect = pawl.EffectRead
		o := &history.WindowOptions{Tokens: 12_000, Reserve: 2_000}
		if pinned {
			o.Pinned = todo.Pinned
		}
		w := &worker{}
		a := agent(w, read)
		a.Limits.Rounds = 500
		a.Middleware = append(a.Middleware, history.Window(o))
		folds, recitals, last := 0, 0, 0
		for e, err := range a.Stream(t.Context(), llm.User("Mend the mill.")) {
			var stop *pawl.StopError
			if err != nil && !errors.As(err, &stop) {
				t.Fatal(err)
			}
			var edit struct{ Folded int }
			if e.Kind == pawl.EventNotice && e.Code == history.NoticeWindowEdited {
				if _ = json.Unmarshal(e.Data, &edit); edit.Folded > last {
					folds++
				}
				last = edit.Folded
			}
			if e.Kind == pawl.EventRunEnded {
				for _, m := range e.Result.Messages {
					for _, p := range m.Parts {
						if r, ok := p.(llm.ToolResult); ok && strings.Contains(r.Text(), "\n\nOpen: ") {
							recitals++
						}
					}
				}
			}
		}
		if folds < 12 || w.refused != 2 || w.step != 400 {
			t.Errorf("pinned %v: %d folds, %d refusals, %d steps", pinned, folds, w.refused, w.step)
		}
		if (len(w.lost)+len(w.stale) > 0) == pinned {
			t.Errorf("pinned %v: items are lost at steps %v, and the list is stale at %v", pinned, w.lost, w.stale)
		}
		if recitals < 5 || recitals > 10 {
			t.Errorf("pinned %v: the list is recited %d times in the last 100 rounds", pinned, recitals)
		}
	}
}
