package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/store"
)

// links_page.go: the page of an approval link.

// page is what a page shows.
type page struct {
	Title string
	Hint  string
	Rows  []row
	Args  string // of the call; "" means that the page has no question
	Until string
	Whole bool // Args are complete, so that the call can be approved here
}

// row is a line of a page.
type row struct{ Name, Text string }

// pages is the form of all pages. It has no script and loads nothing. Enter in a field presses the
// first button of its form, so that the reason of a denial has a form without the approval.
var pages = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>{{.Title}}</title>
<style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
dt{color:#555}dd{margin:0 0 .5em}pre{background:#f3f3f3;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}
button{font:inherit;padding:.5em 1.5em;margin:1em .5em 0 0}input{font:inherit;width:100%;box-sizing:border-box}
form{margin-bottom:1.5em}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}dt{color:#aaa}pre{background:#262626}}
</style></head><body><h1>{{.Title}}</h1>
{{with .Hint}}<p>{{.}}</p>{{end}}
{{if .Args}}<dl>{{range .Rows}}<dt>{{.Name}}</dt><dd>{{.Text}}</dd>{{end}}</dl>
<pre>{{.Args}}</pre>
{{if .Whole}}<form method="post"><button name="answer" value="approve">Approve</button></form>{{end}}
<form method="post"><label>Reason of a denial <input name="reason" maxlength="500"></label>
<button name="answer" value="deny">Deny</button></form>
<p>This page counts once, until {{.Until}}.</p>{{end}}
</body></html>
`))

// maxShown limits the arguments that a page shows. Longer ones cannot be approved there.
const maxShown = 64 << 10

// shown returns the arguments of a call as a page shows them, and whether it shows all of them.
func (l *Links) shown(q *pawl.PendingCall) (args string, whole bool) {
	b := l.Secrets.JSON(q.Call.Args)
	var wide bytes.Buffer
	if json.Indent(&wide, b, "", "  ") == nil {
		b = wide.Bytes()
	}
	args = visible(string(b))
	if len(args) <= maxShown {
		return args, true
	}
	return strings.ToValidUTF8(args[:maxShown], "") + " …", false
}

// errLong is the error of an approval of arguments that the page does not show.
var errLong = errors.New("the arguments are too long for this page: approve the call on the page of the run")

// show shows the question of a ticket.
func (l *Links) show(w http.ResponseWriter, t *ticket, q *pawl.PendingCall) {
	args, whole := l.shown(q)
	p := page{
		Title: t.Agent + " asks: may " + q.Call.Name + " run?",
		Rows:  []row{{"Run", t.Run}},
		Args:  args,
		Until: time.Unix(t.Expires, 0).UTC().Format("2 January 2006, 15:04 UTC"),
		Whole: whole,
	}
	if !p.Whole {
		p.Hint = sentence(errLong)
	}
	if t.User != "" {
		p.Rows = append(p.Rows, row{"User", t.User})
	}
	if q.Why != "" {
		p.Rows = append(p.Rows, row{"Why", visible(l.Secrets.String(q.Why))})
	}
	writePage(w, http.StatusOK, p)
}

// visible returns a text in which characters without a shape of their own, such as a change of the
// direction, are seen.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		hidden := unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && r != '\n' && r != '\t'
		if hidden {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// refuse shows that nothing was decided, and why. Errors of the store are not shown.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusConflict
	hint := sentence(err)
	switch {
	case errors.Is(err, errLink):
		status = http.StatusNotFound
	case errors.Is(err, errUsed), errors.Is(err, errAnswered):
		status = http.StatusGone
	case errors.Is(err, store.ErrUnavailable):
		status = http.StatusServiceUnavailable
		hint = sentence(store.ErrUnavailable)
	}
	writePage(w, status, page{Title: "Nothing was decided", Hint: hint})
}

// sentence returns the text of an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// writePage writes a page. The address has a token, which leaves the page neither as a referrer nor
// into a cache; the form is sent with its origin.
func writePage(w http.ResponseWriter, status int, p page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	_ = pages.Execute(w, p) // the client has disconnected
}
