// Package server offers agents over HTTP: their runs as JSON and as streams of events, their tools,
// and the endpoints of OpenAI's API.
//
//	s, err := server.New(server.Options{Agents: []*pawl.Agent{agent}, Journal: db})
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
// A feed stores the events of a run. A reader holds only its position in the feed, so a slow reader
// costs no memory and blocks nothing. Of fragments (text, reasoning, call_delta, progress) the feed
// stores only the latest. A reader that arrives too late for some fragments gets a gap event with
// the number of missed events of each kind. All other events are stored until the run ends; after
// that they are read from the journal.
//
// Tokens (Token) define the permissions of clients. Without tokens, only programs on this machine
// are admitted, and no web pages of other origins. Text from tools and models is treated as
// hostile: it is sent as JSON only.
package server
