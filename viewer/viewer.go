// Package viewer provides pages for people over the API of package server: runs in progress, one
// run as a timeline, pending calls, a comparison of two runs, memories, and a place to try agents
// and tools. They are plain HTML, CSS and JavaScript modules, embedded unchanged: there is no build
// step, and nothing is loaded from other servers.
//
//	s, err := server.New(agents, db, &server.Options{Pages: viewer.Handler()})
//
// The pages use only the API of the server, with the permissions of the reader's token. Text of
// models and tools is treated as hostile. It is inserted into a page as text only, through one
// function (visible in js/text.js) that makes invisible characters visible. The
// Content-Security-Policy of the pages permits no scripts but their own, no requests to other
// servers, and no conversion of text to markup (Trusted Types).
//
//	js/api.js    requests, streams that resume where they broke, the token
//	js/fold.js   converts events to a tree of requests and calls: a run as of any event
//	js/states.js the outcomes of calls and the states of runs, in one table
//	js/watch.js  follows one run             js/store.js  follows the list of runs
//	js/run.js, runs.js, inbox.js, try.js, compare.js, memory.js   the pages
//	js/text.js, json.js, markdown.js        make foreign text harmless
package viewer

import (
	"cmp"
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
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// types maps file extensions to content types, independent of the system's settings.
var types = map[string]string{
	".html":    "text/html; charset=utf-8",
	".css":     "text/css; charset=utf-8",
	".js":      "text/javascript; charset=utf-8",
	".svg":     "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

// Handler returns the pages, at /. It is for server.Options.Pages and is safe for concurrent use.
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

		// A file without a type of the list is not served.
		name := cmp.Or(strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/"), "index.html")
		kind := types[path.Ext(name)]
		page, err := fs.ReadFile(files, "pages/"+name)
		if err != nil || kind == "" {
			h.Set("Content-Type", types[".html"])
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<!doctype html><title>Not found</title>" +
				"<p>There is no such page. <a href=\"/\">All runs</a>\n"))
			return
		}
		h.Set("Content-Type", kind)
		h.Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page) // the client has disconnected
	})
}
