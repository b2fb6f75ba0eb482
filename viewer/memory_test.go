package viewer_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// remembers opens the pages of a server with memories. Every other one is unconfirmed.
func remembers(t *testing.T, texts ...string) (*shop, *sqlite.DB) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "pawl.db"), &sqlite.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	for i, text := range texts {
		from := store.Source{Kind: "user"}
		if i%2 == 1 {
			from = store.Source{Kind: "model", By: text, Agent: text, Thread: text, Run: "r/" + text, Outside: true,
				Unconfirmed: true}
		}
		_, _, err := db.AddMemory(t.Context(), store.Scope{}, store.Memory{Text: text, Source: from})
		must(t, err)
	}
	return open(t, func(o *options) { o.Memories = db }), db
}

// A person sees, confirms and forgets memories, with the keyboard alone. Nothing is forgotten by
// one press.
func TestMemoryPage(t *testing.T) {
	ctx, p := page(t)
	w, db := remembers(t, "Anna likes tea.", "Anna wants mail sent to Eve.", "Anna lives in Oslo.")
	press := func(keys ...string) { t.Helper(); must(t, p.Press(ctx, keys...)) }
	until := func(expression string) { t.Helper(); until(ctx, t, p, expression) }
	stored := func() (texts []string) {
		list, err := db.Memories(ctx, store.Scope{}, store.Page{})
		must(t, err)
		for _, m := range list {
			texts = append(texts, strings.Trim(fmt.Sprint(m.Text, " ", m.Source.Unconfirmed), " "))
		}
		return texts
	}
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	until(`document.querySelector(".empty")`)
	press("g", "m")
	until(`document.querySelectorAll(".memory").length === 3 && document.querySelector(".memory").textContent.includes("Oslo")`)
	until(`document.querySelectorAll(".memory")[1].textContent.includes("unconfirmed: no model is shown it")`)
	until(`document.querySelectorAll(".memory")[1].textContent.includes("conversation Anna wants")`)
	at := func(memory int, do string) {
		t.Helper()
		must(t, p.Eval(ctx, fmt.Sprintf(`document.querySelectorAll(".memory")[%d].querySelector('[data-do="%s"]').focus()`, memory, do), nil))
	}
	at(1, "confirm")
	press("Enter")
	until(`!document.querySelector('[data-do="confirm"]')`)
	at(0, "forget")
	press("Enter")
	until(`document.activeElement.textContent === "Yes, forget"`)
	if got := stored(); len(got) != 3 || got[1] != "Anna wants mail sent to Eve. false" {
		t.Fatalf("after one press: %q", got)
	}
	press("Enter")
	until(`document.querySelectorAll(".memory").length === 2 && document.activeElement.id === "h-memory"`)
	must(t, p.Eval(ctx, `[...document.querySelectorAll('[data-do="forget"]')].find((b) => b.textContent.includes("all of this run")).focus()`, nil))
	press("Enter", "Enter")
	until(`document.querySelectorAll(".memory").length === 1`)
	if got := stored(); !slices.Equal(got, []string{"Anna likes tea. false"}) {
		t.Errorf("stored %q", got)
	}
	press("/")
	must(t, p.Type(ctx, "coffee"))
	until(`document.querySelector("main").textContent.includes("No memory fits.")`)
	quiet(t, p, w.URL)
}

// Memories are hostile text: of a page that a model has read, in the text and in the name of the
// run and the agent.
func TestHostileMemories(t *testing.T) {
	ctx, p := page(t)
	var texts []string
	for _, a := range attacks() {
		clean := strings.ToValidUTF8(a.text, "")
		if clean == a.text && len(a.text) < 100_000 && !strings.Contains(a.text, "\x00") {
			texts = append(texts, "A "+a.text, a.text)
		}
	}
	w, db := remembers(t, texts...)
	list, err := db.Memories(ctx, store.Scope{}, store.Page{Limit: 1000})
	must(t, err)
	if len(list) < 60 {
		t.Fatalf("%d memories", len(list))
	}
	must(t, p.Look(ctx, 1000, 800, "light"))
	must(t, p.Open(ctx, w.URL+"/#/memory"))
	until(ctx, t, p, fmt.Sprintf(`document.querySelectorAll(".memory").length === %d`, len(list)))
	until(ctx, t, p, `[...document.querySelectorAll(".memory .text .ctl")].some((e) => e.textContent === "RLO")`)
	found, err := harm(ctx, p, w.URL)
	must(t, err)
	for _, f := range found {
		t.Errorf("memories: %s", f)
	}
	var shown []string
	must(t, p.Eval(ctx, `[...document.querySelectorAll(".memory .text")].map((e) => e.textContent)`, &shown))
	if b, err := json.Marshal(shown); err != nil || !strings.Contains(string(b), `onerror=`) {
		t.Errorf("the texts are not shown: nothing is tested (%v)", err)
	}
}
