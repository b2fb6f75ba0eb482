// Package api has the JSON forms of the server's API, for Go programs that call it over HTTP, and
// Token, which says what a client of a server may do.
//
//	POST /v1/runs                Start        ─▶ Run
//	GET  /v1/runs                             ─▶ Runs
//	POST /v1/runs/{id}/approve   Verdict      ─▶ Run
//	POST /v1/runs/{id}/answer    CallResult   ─▶ Run
//	GET  /v1/pending                          ─▶ Inbox
//	any of them, if it fails                  ─▶ Error
//
// docs/http.md lists all endpoints with their forms, which are part of the API: fields may be
// added, and none changes.
package api
