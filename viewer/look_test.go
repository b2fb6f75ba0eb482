package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/browser"
)

// faults finds visual faults of a page: text with too little contrast (WCAG 2.2 AA: 4.5, large text
// 3, borders of fields 3), two elements with one ID, horizontal scrolling, targets smaller than 24
// pixels.
const faults = `(() => {
	const out = [];
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith("color(srgb") ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const ground = (el) => { const chain = []; for (; el; el = el.parentElement) chain.push(parse(getComputedStyle(el).backgroundColor)); let c = parse(getComputedStyle(document.documentElement).backgroundColor); for (const layer of chain.reverse()) c = over(layer, c); return c; };
	const lum = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const seen = (el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) && !el.closest(".hide, .skip, :disabled");
	const walk = document.createTreeWalker(document.querySelector("dialog[open]") || document.body, NodeFilter.SHOW_TEXT);
	let texts = 0;
	while (walk.nextNode()) {
		const el = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !seen(el) || el.closest("noscript, option")) continue;
		texts++;
		const s = getComputedStyle(el), size = parseFloat(s.fontSize), large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
		const g = ground(el), r = ratio(over(parse(s.color), g), g);
		if (r < (large ? 3 : 4.5)) out.push("contrast " + r.toFixed(2) + ": " + el.className + " " + JSON.stringify(walk.currentNode.data.trim().slice(0, 30)));
	}
	if (texts < 8) out.push("only " + texts + " texts were looked at");
	for (const el of document.querySelectorAll("input:not([type=range]):not([type=checkbox]), textarea, select")) {
		if (!seen(el)) continue;
		const r = ratio(over(parse(getComputedStyle(el).borderTopColor), ground(el.parentElement)), ground(el.parentElement));
		if (r < 3) out.push("a field's border " + r.toFixed(2) + ": " + el.outerHTML.slice(0, 60));
	}
	const ids = new Set();
	for (const el of document.querySelectorAll("[id]")) { if (ids.has(el.id)) out.push("two elements have the id " + el.id); ids.add(el.id); }
	if (document.documentElement.scrollWidth > innerWidth) out.push("it scrolls sideways: " + document.documentElement.scrollWidth + " of " + innerWidth + ", " + [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map((e) => e.className));
	for (const el of document.querySelectorAll("button, select, input, textarea")) {
		if (!seen(el)) continue;
		const b = el.getBoundingClientRect(), label = el.closest("label")?.getBoundingClientRect() || b;
		if (Math.max(b.height, label.height) < 24 && !el.classList.contains("linkish") && el.type !== "checkbox") out.push("a small target: " + el.outerHTML.slice(0, 80));
	}
	return out;
})()`

// unnamed returns the controls of the page without a name, and missing landmarks and headings,
// according to the accessibility tree.
func unnamed(ctx context.Context, t *testing.T, p *browser.Page) (found []string) {
	t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored bool
			Role    struct{ Value string }
			Name    struct{ Value any }
			ID      int `json:"backendDOMNodeId"`
		}
	}
	must(t, p.Call(ctx, "Accessibility.getFullAXTree", nil, &tree))
	count := map[string]int{}
	controls := 0
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		count[n.Role.Value]++
		name, _ := n.Name.Value.(string)
		if slices.Contains([]string{"button", "link", "textbox", "searchbox", "checkbox", "combobox", "slider", "spinbutton", "tab", "tabpanel", "treeitem", "tree", "tablist", "dialog", "navigation", "image", "region", "heading", "group", "list"}, n.Role.Value) {
			controls++
			if strings.TrimSpace(name) == "" && n.Role.Value != "group" && n.Role.Value != "list" {
				found = append(found, fmt.Sprintf("a %s has no name (node %d)", n.Role.Value, n.ID))
			}
		}
	}
	for _, role := range []string{"main", "banner", "navigation"} {
		if count["dialog"] == 0 && (count[role] == 0 || count[role] > 1 && role != "navigation") {
			found = append(found, fmt.Sprintf("%d of the role %s", count[role], role))
		}
	}
	if controls < 8 {
		found = append(found, fmt.Sprintf("only %d controls were looked at", controls))
	}
	return found
}

// Every page, at three widths, light and dark: text has enough contrast, nothing scrolls
// horizontally, every control has a name, and there is one of each landmark. With PAWL_SHOTS=1,
// screenshots of all are stored.
func TestLooks(t *testing.T) {
	ctx, p := page(t)
	w, _ := remembers(t, "Anna likes tea.", strings.Repeat("W", 300))
	close(w.gate)
	w.hostile = []hostile{{"", strings.Repeat("a long word without a break: "+strings.Repeat("W", 200)+"\n", 20)}}
	for _, body := range []string{
		`{"id":"done","agent":"support","input":"surprise 0","wait":true}`,
		`{"id":"refund","agent":"support","input":"Refund order 1042: the kettle came broken, the box was open, and the customer is angry.","wait":true}`,
		`{"id":"ask","agent":"support","input":"ask the customer","wait":true}`,
		`{"id":"failed","agent":"support","input":"fail","wait":true}`,
		`{"id":"limit-` + strings.Repeat("x", 100) + `","agent":"support","input":"` + strings.Repeat("W", 300) + `","wait":true}`,
	} {
		w.post("/v1/runs", body)
	}
	pages := []struct{ name, hash, ready, then string }{
		{"runs", "#/runs", `document.querySelectorAll(".row").length === 5`, ""},
		{"run", "#/run/refund", `document.querySelectorAll(".trow").length === 11`, ""},
		{"details", "#/run/refund?sel=run%2F1%2F1", `document.querySelector("#detail")`, `scrollTo(0, 400)`},
		{"request", "#/run/refund?sel=run%2F0%2Fmodel", `document.querySelector("#detail .stats")`, `document.querySelectorAll("#detail details").forEach((d) => (d.open = true))`},
		{"transcript", "#/run/done?tab=transcript", `document.querySelector(".thread .msg")`, `document.querySelectorAll(".thread details").forEach((d) => (d.open = true))`},
		{"events", "#/run/refund?tab=events", `document.querySelector(".events li")`, ""},
		{"effects", "#/run/refund?tab=effects", `document.querySelector(".effects li")`, ""},
		{"failed", "#/run/failed", `document.querySelector(".ending")`, ""},
		{"inbox", "#/inbox", `document.querySelectorAll(".question").length >= 2`, ""},
		{"edit", "#/inbox", `document.querySelector(".question .fields")`, ""},
		{"try", "#/try/agent", `document.querySelector("#start")`, ""},
		{"tool", "#/try/tool/support%2Frefund", `document.querySelector("#call")`, ""},
		{"compare", "#/compare/refund/done", `document.querySelector(".differences li")`, ""},
		{"compare-none", "#/compare", `document.querySelector(".empty")`, ""},
		{"memory", "#/memory", `document.querySelectorAll(".memory").length === 2`, `document.querySelector('.memory:last-of-type [data-do="forget"]:not(.danger)')?.click()`},
		{"none", "#/nothing", `document.querySelector("h1")`, ""},
		{"help", "#/runs", `document.querySelector("dialog[open]")`, ""},
	}
	must(t, p.Look(ctx, 1280, 860, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	for _, pg := range pages {
		must(t, p.Eval(ctx, fmt.Sprintf(`location.hash = %q`, pg.hash), nil))
		switch pg.name {
		case "edit":
			until(ctx, t, p, `document.querySelector('.question [data-do="edit"]')`)
			must(t, p.Eval(ctx, `document.querySelector('.question [data-do="edit"]').click()`, nil))
		case "help":
			until(ctx, t, p, `document.querySelector("#h-runs")`)
			must(t, p.Press(ctx, "?"))
		}
		until(ctx, t, p, pg.ready)
		for _, width := range []int{1280, 800, 400} {
			for _, scheme := range []string{"light", "dark"} {
				must(t, p.Look(ctx, width, 860, scheme))
				if pg.then != "" {
					must(t, p.Eval(ctx, pg.then, nil))
				}
				var found []string
				must(t, p.Eval(ctx, faults, &found))
				if scheme == "light" {
					found = append(found, unnamed(ctx, t, p)...)
				}
				for _, f := range found {
					t.Errorf("%s, %d wide, %s: %s", pg.name, width, scheme, f)
				}
				if pg.name != "compare-none" && pg.name != "none" {
					shoot(ctx, t, p, fmt.Sprintf("%s-%d-%s", pg.name, width, scheme))
				}
			}
		}
		must(t, p.Press(ctx, "Escape"))
	}
	quiet(t, p, w.URL)
}

// The checks of TestLooks detect the faults that they look for.
func TestLooksControl(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	must(t, p.Look(ctx, 400, 800, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	until(ctx, t, p, `document.querySelector(".empty")`)
	must(t, p.Eval(ctx, `{ const e = document.createElement("p"); e.textContent = "pale"; e.style.color = "#aaa"; const b = document.createElement("button"); b.style.minHeight = "9px"; b.style.height = "9px"; b.id = "main"; const d = document.createElement("div"); d.style.width = "900px"; d.textContent = "."; document.querySelector("main").append(e, b, d) }`, nil))
	var found []string
	must(t, p.Eval(ctx, faults, &found))
	found = append(found, unnamed(ctx, t, p)...)
	all := strings.Join(found, "\n")
	for _, want := range []string{"contrast", "sideways", "the id main", "small target", "a button has no name"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not seen: %s", want, all)
		}
	}
}

// The Tab key alone moves through each page, from its top to its end and out. Each stop is visible,
// shows that it has the focus, and follows the one before.
func TestFocus(t *testing.T) {
	ctx, p := page(t)
	w, _ := remembers(t, "Anna likes tea.", "Anna sails.")
	close(w.gate)
	w.post("/v1/runs", `{"id":"refund","agent":"support","input":"Refund it.","wait":true}`)
	for _, width := range []int{1280, 400} {
		must(t, p.Look(ctx, width, 860, "light"))
		for _, pg := range []struct{ hash, ready string }{
			{"#/runs", `document.querySelector(".row")`}, {"#/run/refund?sel=run%2F1%2F1", `document.querySelector("#detail")`}, {"#/inbox", `document.querySelector(".question")`},
			{"#/try/tool/support%2Frefund", `document.querySelector("#call")`}, {"#/compare/refund/refund", `document.querySelector(".figures")`},
			{"#/memory", `document.querySelectorAll(".memory").length === 2`},
		} {
			must(t, p.Open(ctx, "about:blank"))
			must(t, p.Open(ctx, w.URL+"/"+pg.hash))
			until(ctx, t, p, pg.ready)
			stops := 0
			for range 80 {
				must(t, p.Press(ctx, "Tab"))
				var at struct {
					Body, Seen, Shown, After bool
					What                     string
				}
				must(t, p.Eval(ctx, `new Promise((ok) => requestAnimationFrame(() => {
					const el = document.activeElement, b = el.getBoundingClientRect(), s = getComputedStyle(el), after = getComputedStyle(el, "::after");
					const before = window.lastStop; window.lastStop = el;
					ok({ body: el === document.body, what: el.outerHTML.slice(0, 90), seen: b.bottom > 0 && b.top < innerHeight && b.right > 0 && b.left < innerWidth,
						shown: s.outlineStyle !== "none" || after.outlineStyle !== "none", after: !before || before === document.body || el === document.body || !!(before.compareDocumentPosition(el) & Node.DOCUMENT_POSITION_FOLLOWING) });
				}))`, &at))
				// outside the page, or at its top again
				if at.Body || stops > 0 && strings.Contains(at.What, `class="skip"`) {
					break
				}
				stops++
				if !at.Seen || !at.Shown || !at.After {
					t.Errorf("%s, %d wide: in sight %v, focus shown %v, in order %v: %s", pg.hash, width, at.Seen, at.Shown, at.After, at.What)
				}
			}
			if stops < 10 || stops >= 80 {
				t.Errorf("%s, %d wide: %d stops", pg.hash, width, stops)
			}
		}
	}
	must(t, p.Call(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil))
	w.post("/v1/runs", `{"id":"r2","agent":"support","input":"Refund it."}`)
	visit(ctx, t, p, "#/run/r2", `document.querySelector(".trow")`)
	var moving int
	must(t, p.Eval(ctx, `document.getAnimations().length`, &moving))
	if moving > 0 {
		t.Errorf("%d things move although none should", moving)
	}
}

// The modules' output for given values is the text that a reader sees.
func TestModules(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	must(t, p.Open(ctx, w.URL+"/"))
	for _, test := range []struct{ what, expression, want string }{
		{"long numbers keep their digits", `(await import("/js/json.js")).pretty((await import("/js/json.js")).parse('{"a":12345678901234567890,"b":0.1,"c":[],"d":1e400}'))`, `"{\n  \"a\": 12345678901234567890,\n  \"b\": 0.1,\n  \"c\": [],\n  \"d\": null\n}"`},
		{"a member named __proto__ is a member", `(await import("/js/json.js")).pretty(JSON.parse('{"__proto__":{"x":1}}')).replace(/\s/g, "")`, `"{\"__proto__\":{\"x\":1}}"`},
		{"a difference of lines", `(await import("/js/linediff.js")).diff("a\nb\nc\nd", "a\nc\nx\nd").map((l) => l.sign + l.text).join("|")`, `" a|-b| c|+x| d"`},
		{"equal texts do not differ", `(await import("/js/linediff.js")).near((await import("/js/linediff.js")).diff("a\nb", "a\nb")).length`, `0`},
		{"two large texts that share nothing", `(await import("/js/linediff.js")).diff(Array.from({length: 5000}, (_, i) => "a" + i).join("\n"), Array.from({length: 5000}, (_, i) => "b" + i).join("\n")).length`, `10000`},
		{"keys in their order", `["run/10/0", "run/2/model", "run/2/0", "run/2/10", "run/2/9", "run/1/0/clerk/0/model", "run/1/0"].sort((await import("/js/fold.js")).compareKeys).join(" ")`, `"run/1/0 run/1/0/clerk/0/model run/2/0 run/2/9 run/2/10 run/2/model run/10/0"`},
		{"an early start is seen", `(await (async () => { const { Run } = await import("/js/fold.js"); const r = new Run(); const e = (event, path, x) => r.add({ event, run: "run", step: 1, path, ...x });
			e("request_started", "run/0/model"); e("call_started", "run/1/0", { call: { name: "a" } }); e("response_received", "run/0/model", { response: { message: { parts: [] } } }); e("call_started", "run/1/1", { call: { name: "b" } }); e("call_completed", "run/1/0", { execution: { outcome: "ok" } });
			return [...r.nodes.values()].map((n) => n.key + (n.early ? " early" : "") + (n.running ? " running" : "")) })())`, `["run/0/model","run/1/0 early","run/1/1 running"]`},
		{"a day of silence is short on the line", `(await (async () => { const { axis } = await import("/js/waterfall.js"); const ax = axis([{ from: 1000, to: 2000, waits: [] }, { from: 86402000, to: 86403000, waits: [] }]); return [ax.gaps.length, ax.x(2000) > 0.4, ax.x(86402000) < 0.6, ax.x(86403000)] })())`, `[1,true,true,1]`},
		{"times in words", `(await (async () => { const { span, ago } = await import("/js/text.js"); return [span(0.2), span(340), span(4120), span(200000), span(9e7), ago(1e12 - 90000, 1e12), ago(1e12 + 90000, 1e12)] })())`, `["<1 ms","340 ms","4.1 s","3 min 20 s","1 d 1 h","1 min ago","in 1 min 30 s"]`},
		{"what is not seen is named", `(await import("/js/text.js")).plain("a\u202eb\x1bc\u200dd \u{1F469}\u200d\u{1F469}")`, `"a⟨RLO⟩b⟨ESC⟩c⟨ZWJ⟩d 👩‍👩"`},
		{"no text hides in what has no shape", `(await import("/js/text.js")).plain("hi\u{e0168}\ufe01\u2060\u3164\u2800\ufe0f \u0301x\u0301 \u2764\ufe0f\ufe0f")`, `"hi⟨U+E0168⟩⟨U+FE01⟩⟨WJ⟩⟨U+3164⟩⟨U+2800⟩⟨U+FE0F⟩ ⟨U+301⟩x\u0301 ❤\ufe0f⟨U+FE0F⟩"`},
	} {
		var got json.RawMessage
		if err := p.Eval(ctx, `(async () => `+test.expression+`)()`, &got); err != nil {
			t.Errorf("%s: %v", test.what, err)
		} else if a, b := canonical(t, got), canonical(t, json.RawMessage(test.want)); a != b {
			t.Errorf("%s: %s, want %s", test.what, a, b)
		}
	}
}

func canonical(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal(text, &v))
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}
