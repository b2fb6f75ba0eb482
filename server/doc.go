// Package server offers agents over HTTP: their runs as JSON and streams of events, their tools, and endpoints that clients of OpenAI's API know.
//
//	s, err := server.New(server.Options{Agents: []*pawl.Agent{agent}, Journal: db})
//	…
//	l, err := net.Listen("tcp", "127.0.0.1:8080")
//	err = s.Serve(ctx, l)
//
// A run is durable: it is in the journal before its id is given out, a client that goes away does not end it, and a server that ends leaves it where the next one
// takes it up.
//
//	POST /v1/runs ──▶ hub: one goroutine a run ──▶ durable.Engine ──▶ agent
//	                        │ events, encoded once
//	                        ▼
//	                      feed ◀── readers, each with a place of its own: GET /v1/runs/ID/events
//
// A feed keeps what happened in the run. Readers hold nothing but their place in it, so a slow one costs no memory and holds nobody up: of fragments (text, reasoning,
// call_delta, progress) only the last are kept, and a reader that comes too late for some is told how many of which kind he missed, by a gap event. All other
// events are kept until the run is over, and after that the journal tells them again.
//
// Who may do what is said by tokens (Token); without any, only programs on this machine are let in, and no web pages of other origins. What tools and models wrote is
// hostile: it leaves as JSON only.
package server
