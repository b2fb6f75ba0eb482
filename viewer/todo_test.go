package viewer_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/tools/todo"
)

// The page of a run shows the list of the tool todo, as the last call left it, with text that stays
// text. The control: a run without the tool shows none.
func TestTodoPage(t *testing.T) {
	ctx, p := page(t)
	list := func(first, second string) script.Turn {
		return script.Call("todo", `{"items":[{"text":"oil the wheel","state":"`+first+`"},{"text":"<b>paint</b> it","state":"`+second+`"}]}`)
	}
	planner := &pawl.Agent{Name: "planner", Tools: []pawl.Toolset{todo.New()}, Middleware: []pawl.Middleware{todo.Middleware()},
		Model: script.New(list("doing", "open"), list("done", "doing"), script.Say("Half done."))}
	w := open(t, func(o *options) { o.Agents = append(o.Agents, planner) })
	w.post("/v1/runs", `{"agent":"planner","input":"Mend the mill.","id":"planned"}`)
	w.post("/v1/runs", `{"agent":"support","input":"say Hello.","id":"plain"}`)
	must(t, p.Open(ctx, w.URL+"/#/run/planned"))
	until(ctx, t, p, `document.body.innerText.includes("Todo: 1 of 2 done")`)
	var items string
	must(t, p.Eval(ctx, `[...[...document.querySelectorAll("details")].find((d) => d.innerText.startsWith("Todo:")).querySelectorAll("li")].map((x) => x.innerText.replace(/\s+/g, " ").trim()).join("|")`, &items))
	if want := "done oil the wheel|doing <b>paint</b> it"; items != want {
		t.Errorf("the list is %q, want %q", items, want)
	}
	visit(ctx, t, p, "#/run/plain", `document.body.innerText.includes("Hello.")`)
	var text string
	must(t, p.Eval(ctx, `document.body.innerText`, &text))
	if strings.Contains(text, "Todo:") {
		t.Errorf("a run without the tool shows a list: %s", text)
	}
	quiet(t, p, w.URL)
}
