// Package viewer is pages for people over what package server tells: the runs as they go, one run as a timeline, what waits for a person, two runs compared, a place to try
// agents and tools. They are plain HTML, CSS and JavaScript modules, embedded as they stand: nothing is built, and nothing is fetched from elsewhere.
//
//	s, err := server.New(server.Options{Agents: agents, Journal: db, Pages: viewer.Handler()})
//
// The pages know the API of the server and nothing else, so they may do what the token of whoever looks may do. What models and tools wrote is hostile to them: it is put into
// the page as text alone, through one function (visible in js/text.js) that shows what is not seen, and the policy they come with lets no script run but their own, no request
// leave but to the server, and no text become markup (Trusted Types).
//
//	js/api.js    requests, streams that go on where they broke off, the token
//	js/fold.js   events in, a tree of requests and calls out: a run as of any event
//	js/watch.js  one run, followed          js/store.js  the list of runs, followed
//	js/run.js, runs.js, inbox.js, try.js, compare.js   the pages
//	js/text.js, json.js, markdown.js        what others wrote, made harmless
package viewer

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed pages
var files embed.FS

// policy is the pages' Content-Security-Policy.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types are those of the files; what the system says of endings is not asked.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".LICENSE": "text/plain; charset=utf-8"}

// Handler returns the pages, at /. It is for server.Options.Pages, and may be used concurrently.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store")
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		if name == "" {
			name = "index.html"
		}
		kind := types[path.Ext(name)]
		page, err := fs.ReadFile(files, "pages/"+name)
		if err != nil || kind == "" {
			h.Set("Content-Type", types[".html"])
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<!doctype html><title>Not found</title><p>There is no such page. <a href=\"/\">All runs</a>\n"))
			return
		}
		h.Set("Content-Type", kind)
		h.Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page) // the client is gone
	})
}
