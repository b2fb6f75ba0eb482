package viewer_test

import (
	"strings"
	"testing"
)

// A person uses the pages with the keyboard alone: starts a run, watches it, approves a call with
// other arguments, opens its timeline and a call, replays it, forks it, and compares the two.
func TestWalk(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	press := func(keys ...string) { t.Helper(); must(t, p.Press(ctx, keys...)) }
	until := func(expression string) { t.Helper(); until(ctx, t, p, expression) }
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	until(`document.querySelector(".empty")?.textContent.includes("No runs yet")`)

	// start
	press("g", "t")
	until(`document.querySelector("#input")`)
	for range 30 {
		press("Tab")
		var at string
		must(t, p.Eval(ctx, `document.activeElement.id`, &at))
		if at == "input" {
			break
		}
	}
	must(t, p.Type(ctx, "Refund order 1042: the kettle came broken."))
	press("Ctrl+Enter")

	// watch
	until(`location.hash.startsWith("#/run/") && document.querySelector(".msg.user")`)
	until(`document.querySelector(".msg.assistant")?.textContent.includes("I look at the order")`)
	press("v", "v", "v")
	until(`[...document.querySelectorAll(".trow")].some((r) => r.getAttribute("aria-label").startsWith("call, read_policy, running"))`)
	until(`[...document.querySelectorAll(".trow")].some((r) => r.getAttribute("aria-label").startsWith("call, lookup_order, ok"))`)
	shoot(ctx, t, p, "walk-1-live")
	close(w.gate)
	until(`document.querySelector(".question")?.textContent.includes("refund")`)
	if got := w.refunds(); len(got) > 0 {
		t.Fatalf("refunded before anybody said yes: %s", got)
	}

	// approve from the inbox, with another amount
	press("g", "i")
	until(`document.querySelector("#h-inbox") && document.querySelector(".question")`)
	press("j", "e")
	until(`document.querySelector(".question .fields input") && document.activeElement.matches(".question input")`)
	for range 20 {
		var name string
		must(t, p.Eval(ctx, `document.activeElement.closest(".field")?.querySelector(".fieldname")?.textContent || ""`, &name))
		if strings.HasPrefix(name, "amount") {
			break
		}
		press("Tab")
	}
	press("End", "Backspace", "Backspace", "Backspace", "Backspace")
	must(t, p.Type(ctx, "45"))
	until(`document.querySelector(".question .diff .add")?.textContent.includes("45")`)
	shoot(ctx, t, p, "walk-2-approve")
	for range 20 {
		var do string
		must(t, p.Eval(ctx, `document.activeElement.dataset.do || ""`, &do))
		if do == "send" {
			break
		}
		press("Tab")
	}
	press("Enter")
	until(`document.querySelector(".empty")?.textContent.includes("Nothing waits")`)
	until(`document.activeElement.id === "h-inbox"`)
	if got := w.refunds(); len(got) != 1 || !strings.Contains(got[0], `"amount":45`) && !strings.Contains(got[0], `"amount": 45`) {
		t.Fatalf("refunded %s, want 45 once", got)
	}

	// the timeline
	press("g", "r")
	until(`document.querySelector(".row .badge")?.textContent === "answered"`)
	press("j", "Enter")
	until(`document.querySelectorAll(".trow").length === 12`)
	var rows []string
	must(t, p.Eval(ctx, `[...document.querySelectorAll(".trow")].map((r) => "> ".repeat(r.ariaLevel - 1) + r.getAttribute("aria-label").replace(/, \d together/, "").replace(/, [\d.<]+ (ms|s).*/, ""))`, &rows))
	want := `model request, gpt-sim, step 1
call, lookup_order, ok
call, read_policy, ok
model request, gpt-sim, step 2
call, auditor, ok
> agent, auditor
> > model request, gpt-sim, step 1
> > call, add_up, ok
> > model request, gpt-sim, step 2
model request, gpt-sim, step 3
call, refund, ok
model request, gpt-sim, step 4`
	if got := strings.Join(rows, "\n"); got != want {
		t.Errorf("the timeline:\n%s\nwant:\n%s", got, want)
	}
	press("j", "End", "ArrowUp", "Enter")
	until(`document.querySelector("#detail")?.textContent.includes("Approved by caller with other arguments")`)
	until(`document.querySelector("#detail .diff .del")?.textContent.includes("49.9") && document.querySelector("#detail .diff .add")?.textContent.includes("45")`)
	press("Home", "ArrowDown", "ArrowDown")
	until(`document.querySelector("#detail")?.textContent.includes("removed a trailing comma")`)
	press("ArrowUp")
	until(`document.querySelector("#detail .resultview")?.textContent.includes("12345678901234567890")`)
	shoot(ctx, t, p, "walk-3-timeline")
	press("Home", "End", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowLeft")
	until(`document.querySelectorAll(".trow").length === 8`)
	press("ArrowRight")
	until(`document.querySelectorAll(".trow").length === 12`)

	// replay: before the refund starts it is not shown
	for range 6 {
		press("[")
	}
	until(`document.querySelector(".slider .where").textContent.includes("/") && document.querySelectorAll(".trow").length < 12`)
	press("l")
	until(`document.querySelectorAll(".trow").length === 12`)

	// fork and compare
	var forked bool
	must(t, p.Eval(ctx, `document.querySelector('[data-do="fork"]').focus(), true`, &forked))
	press("Enter")
	until(`document.querySelector("dialog[open]")`)
	var within bool
	must(t, p.Eval(ctx, `!!document.activeElement.closest("dialog")`, &within))
	if !within {
		t.Error("the focus is not in the dialog")
	}
	press("Escape")
	until(`!document.querySelector("dialog") && document.activeElement.dataset.do === "fork"`)
	press("Enter")
	until(`document.querySelector("dialog[open]")`)
	press("Tab")
	press("Ctrl+a")
	must(t, p.Type(ctx, "2"))
	press("Tab")
	must(t, p.Type(ctx, "other"))
	for range 5 {
		press("Tab")
		var text string
		must(t, p.Eval(ctx, `document.activeElement.textContent`, &text))
		if text == "Fork" {
			break
		}
	}
	press("Enter")
	until(`location.hash.startsWith("#/run/other") && document.querySelector(".question")`)
	until(`[...document.querySelectorAll(".trow")].some((r) => r.ariaLevel === "3")`)
	press("d") // moves to the question
	until(`document.activeElement.matches(".question")`)
	press("d")
	until(`document.activeElement.matches(".question textarea")`)
	must(t, p.Type(ctx, "ask the customer first"))
	press("Tab", "Enter")
	until(`document.querySelector(".runhead .badge")?.textContent === "answered"`)
	// the nested agent is still shown
	until(`[...document.querySelectorAll(".trow")].filter((r) => r.ariaLevel === "3").length === 3`)
	press("g", "r")
	until(`document.querySelectorAll(".row").length === 2`)
	press("j", "x", "j", "x")
	until(`document.querySelector(".marked a")`)
	must(t, p.Eval(ctx, `document.querySelector(".marked a").focus()`, nil))
	press("Enter")
	until(`document.querySelectorAll(".differences li").length > 0`)
	until(`document.querySelector(".differences").textContent.includes("ask the customer first")`)
	shoot(ctx, t, p, "walk-4-compare")
	press("?")
	until(`document.querySelector("dialog[open]")?.textContent.includes("approve")`)
	press("Escape")
	until(`!document.querySelector("dialog")`)
	quiet(t, p, w.URL)
}
