// Package server offers agents over HTTP: their runs as JSON and as streams of events, their tools,
// and the endpoints of OpenAI's API, of front ends and of A2A.
//
//	s, err := server.New([]*pawl.Agent{agent}, db, nil)
//	…
//	l, err := net.Listen("tcp", "127.0.0.1:8080")
//	err = s.Serve(ctx, l)
//
// A run is durable. It is in the journal before the client gets its ID, it continues when the
// client disconnects, and when the server stops, another process can resume it.
//
//	POST /v1/runs ──▶ hub: one goroutine a run ──▶ durable.Engine ──▶ agent
//	                        │ events, encoded once
//	                        ▼
//	                      feed ◀── readers, each at its own position: GET /v1/runs/ID/events
//
// This package has the options, the endpoints of this API and the address of each protocol. The
// JSON forms are in package api. The rooms below internal know only those after them:
//
//	openai, ui, a2a    the protocols, each a table of routes
//	conversation       a conversation as a chain of runs, for front ends
//	web                a request: its client, body, answer and stream
//	runs               starts, queues, watches, answers and stops runs; knows no HTTP
//	access             who a client is, and what it may do
//
// A feed stores the events of a run. A reader holds only its position in the feed, so a slow reader
// costs no memory and blocks nothing. Of fragments (text, reasoning, call_delta, progress) the feed
// stores only the latest. A reader that arrives too late for some fragments gets a gap event with
// the number of missed events of each kind. All other events are stored until the run ends; after
// that they are read from the journal.
//
// Tokens (api.Token) define the permissions of clients. Without tokens, only programs on this
// machine are admitted, and no web pages of other origins. Text from tools and models is treated
// as hostile: it is sent as JSON only.
package server
