package hostilemcp

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// at returns a hook that is called for one request: the nth of a method.
func at(method string, n int, do func(x *exchange) bool) func(*exchange) bool {
	return func(x *exchange) bool {
		if x.m.Method != method || x.n != n {
			return false
		}
		return do(x)
	}
}

// responds returns a hook that sends a response without a call of the tool.
func responds(status int, kind, text string) func(*exchange) bool {
	return func(x *exchange) bool { return x.send(status, kind, text) }
}

// works returns a hook that runs the tool, and sends a response.
func works(status int, kind, text string) func(*exchange) bool {
	return func(x *exchange) bool {
		x.f.answer(x.m)
		return x.send(status, kind, text)
	}
}

// streams returns a hook that runs the tool and sends server-sent events. $REPLY is the reply.
func streams(text string) func(*exchange) bool {
	return func(x *exchange) bool {
		out := x.f.answer(x.m)
		return x.send(http.StatusOK, "text/event-stream", strings.ReplaceAll(text, "$REPLY", out))
	}
}

// cut ends the connection before the response is complete.
func cut(x *exchange) bool {
	x.f.answer(x.m)
	x.Header().Set("Content-Length", "1000")
	x.Header().Set("Content-Type", "application/json")
	fmt.Fprint(x, `{"jsonrpc":"2.0",`)
	panic(http.ErrAbortHandler)
}

// lost returns a hook that ends the session before the nth request of a method, and responds.
func lost(method string, n int, status int, text string) func(*exchange) bool {
	return at(method, n, func(x *exchange) bool {
		x.forget()
		return x.send(status, "application/json", text)
	})
}

const (
	noSession = `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`
	page      = "<html><body>Bad gateway</body></html>"
)

// sessions are servers that lose sessions, and whose responses are no replies.
func sessions() []Behaviour {
	calls := func(id, title string, hook func(*exchange) bool, want Want) Behaviour {
		return Behaviour{ID: "sessions-" + id, Title: title, Calls: 2, Want: want, fault: fault{web: hook}}
	}
	unread := Want{Says: []string{"", "done 2"}, Unknown: 1}
	refused := Want{Says: []string{"not made", "done 1"}, Ran: 1}
	first := func(do func(*exchange) bool) func(*exchange) bool { return at("tools/call", 1, do) }
	return []Behaviour{
		calls("expired", "forgets the session between two calls", lost("tools/call", 2, 404, noSession), Want{}),
		calls("expired-with-id", "forgets the session, and says so in a reply",
			lost("tools/call", 2, 404, strings.Replace(noSession, "null", "$ID", 1)),
			Want{},
		),
		calls("expired-text", "forgets the session, and says so in text",
			lost("tools/call", 2, 404, "no such session"),
			Want{},
		),
		calls("expired-400", "forgets the session, and responds with 400",
			lost("tools/call", 2, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`),
			Want{},
		),
		calls("expired-410", "forgets the session, and responds with 410", lost("tools/call", 2, 410, ""), Want{}),
		calls("expired-list", "forgets the session after it has announced a change",
			lost("tools/list", 2, 404, noSession), Want{}),
		calls("expired-always", "forgets every session at its first call", func(x *exchange) bool {
			if x.m.Method != "tools/call" {
				return false
			}
			x.forget()
			return false
		}, Want{Says: []string{"not made", "not made"}, Ran: -1}),
		calls("expired-each", "forgets every session after one call", func(x *exchange) bool {
			if x.m.Method != "tools/call" {
				return false
			}
			x.serve()
			x.forget()
			return true
		}, Want{}),
		calls("renamed", "names another session in each response", func(x *exchange) bool {
			if x.m.Method == "tools/call" {
				x.Header().Set("Mcp-Session-Id", "other")
			}
			return false
		}, Want{}),
		calls("notified-400", "refuses notifications",
			at("notifications/initialized", 1, responds(400, "text/plain", "no")),
			Want{},
		),
		calls("notified-404", "does not know notifications",
			at("notifications/initialized", 1, responds(404, "text/plain", "no")),
			Want{},
		),
		calls("listen-500", "fails when the client listens", func(x *exchange) bool {
			return x.Method == http.MethodGet && x.URL.Path == "/mcp" && x.send(500, "text/plain", "no")
		}, Want{}),
		calls("listen-page", "sends a page when the client listens", func(x *exchange) bool {
			return x.Method == http.MethodGet && x.URL.Path == "/mcp" && x.send(200, "text/html", page)
		}, Want{}),
		calls("listen-ends", "ends the stream to which the client listens", func(x *exchange) bool {
			return x.Method == http.MethodGet && x.URL.Path == "/mcp" && x.send(200, "text/event-stream", ": hello\n\n")
		}, Want{}),
		calls("401", "refuses a call with 401", first(responds(401, "", "")), refused),
		calls("403", "refuses a call with 403", first(responds(403, "text/html", page)), refused),
		calls("405", "refuses a call with 405", first(responds(405, "", "")), refused),
		calls("413", "refuses a call with 413", first(responds(413, "text/plain", "too large")), refused),
		calls("429", "refuses a call with 429", first(responds(429, "text/plain", "slow down")), refused),
		calls("503", "refuses a call with an empty 503", first(responds(503, "", "")), refused),
		calls("503-error", "refuses a call with 503 and an error",
			first(responds(503, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32050,"message":"the disk is full"}}`)),
			Want{Says: []string{"full", "done 1"}, Ran: 1},
		),
		calls("redirect", "redirects a call to another host", first(func(x *exchange) bool {
			x.Header().Set("Location", "http://192.0.2.1/mcp")
			return x.send(307, "", "")
		}), refused),
		calls("500", "fails with 500 after the tool has run", first(works(500, "text/plain", "oops")), unread),
		calls("502", "is behind a gateway that fails after the tool has run", first(works(502, "text/html", page)), unread),
		calls("503-page", "is behind a gateway that sends a page with 503", first(works(503, "text/html", page)), unread),
		calls("page", "sends a page in place of a reply", first(works(200, "text/html", page)), unread),
		calls("202", "accepts a call and never replies", first(works(202, "", "")), unread),
		calls("204", "sends nothing in place of a reply", first(works(204, "", "")), unread),
		calls("null", "sends null in place of a reply", first(works(200, "application/json", "null")), unread),
		calls("half", "sends half a reply", first(works(200, "application/json", `{"jsonrpc":"2.0","id":`)), unread),
		calls("cut", "breaks the connection in a reply", first(cut), unread),
		calls("huge", "sends a reply of 9 MB", first(works(200, "application/json", strings.Repeat(" ", 9_000_000))), unread),
		calls("stream-empty", "ends a stream without a reply", first(streams(": hello\n\n")), unread),
		calls("stream-broken", "sends an event that is half a reply", first(streams("data: {\"jsonrpc\":\n\n")), unread),
		calls("stream-heartbeat", "sends empty events and comments",
			first(streams(": ping\n\ndata:\n\ndata: \n\ndata: {}\n\ndata: ping\n\ndata: $REPLY\n\n")),
			Want{},
		),
		calls("stream-lines", "splits an event into lines", first(func(x *exchange) bool {
			out := strings.ReplaceAll(x.f.answer(x.m), ",", ",\ndata: ")
			return x.send(200, "text/event-stream", "data: "+out+"\n\n")
		}), Want{}),
		calls("stream-unended", "leaves out the empty line after the last event", first(streams("data: $REPLY")), Want{}),
		calls("stream-array", "sends an array in an event", first(streams("data: [$REPLY]\n\n")), Want{}),
		calls("stream-bom", "begins a stream with a byte order mark", first(streams("\ufeffdata: $REPLY\r\n\r\n")), Want{}),
		calls("array", "sends a reply in an array", first(func(x *exchange) bool {
			return x.send(200, "application/json", `[{"jsonrpc":"2.0","method":"notifications/x"},`+x.f.answer(x.m)+`]`)
		}), Want{}),
		calls("type-text", "sends a reply as text/plain",
			first(func(x *exchange) bool { return x.send(200, "text/plain", x.f.answer(x.m)) }),
			Want{},
		),
		calls("type-none", "sends a reply without a type",
			first(func(x *exchange) bool { return x.send(200, "", x.f.answer(x.m)) }),
			Want{},
		),
		calls("status-201", "sends a reply with 201",
			first(func(x *exchange) bool { return x.send(201, "application/json", x.f.answer(x.m)) }),
			Want{},
		),
		calls("id-text", "gives the ID back as text",
			first(func(x *exchange) bool {
				return x.send(200, "application/json", strings.Replace(x.f.answer(x.m), `"id":`+string(x.m.ID), `"id":"`+string(x.m.ID)+`"`, 1))
			}),
			Want{},
		),
		calls("id-other", "gives another ID back", first(func(x *exchange) bool {
			return x.send(200, "application/json", strings.Replace(x.f.answer(x.m), `"id":`+string(x.m.ID), `"id":"0"`, 1))
		}), Want{}),
		calls("away-second-turn", "is away when the second turn begins", func(x *exchange) bool {
			x.f.mu.Lock()
			away := x.f.web.requests["tools/call"] >= 2
			x.f.mu.Unlock()
			if x.m.Method == "tools/call" && x.n == 2 {
				x.serve()
				x.forget()
				return true
			}
			if !away {
				return false
			}
			panic(http.ErrAbortHandler)
		}, Want{}),
	}
}

// tokens are servers whose tokens expire.
func tokens() []Behaviour {
	issues := func(text string) func(*exchange) bool {
		return func(x *exchange) bool {
			return x.URL.Path == "/token" && x.send(200, "application/json", strings.ReplaceAll(text, "$T", x.issue()))
		}
	}
	revoked := func(method string, n int, more func(*exchange) bool) func(*exchange) bool {
		return func(x *exchange) bool {
			if x.m.Method == method && x.n == n {
				x.revoke()
			}
			return more != nil && more(x)
		}
	}
	all := []Behaviour{
		{
			ID:    "tokens-short",
			Title: "issues tokens that live for 5 s",
			fault: fault{web: issues(`{"access_token":"$T","token_type":"bearer","expires_in":5}`)},
		},
		{
			ID:    "tokens-short-text",
			Title: "writes the life of a token as text",
			fault: fault{web: issues(`{"access_token":"$T","token_type":"bearer","expires_in":"5"}`)},
		},
		{
			ID:    "tokens-endless",
			Title: "does not say how long a token lives, and revokes it",
			fault: fault{web: revoked("tools/call", 2, issues(`{"access_token":"$T","token_type":"bearer"}`))},
		},
		{
			ID:    "tokens-revoked",
			Title: "revokes a token before it expires",
			fault: fault{web: revoked("tools/call", 2, nil)},
		},
		{
			ID:    "tokens-revoked-first",
			Title: "revokes a token before the first call",
			fault: fault{web: revoked("tools/call", 1, nil)},
		},
		{
			ID:    "tokens-revoked-list",
			Title: "revokes a token before the list",
			fault: fault{web: revoked("tools/list", 1, nil)},
		},
		{
			ID:    "tokens-revoked-session",
			Title: "revokes a token and forgets the session",
			fault: fault{web: func(x *exchange) bool {
				if x.m.Method == "tools/call" && x.n == 2 {
					x.revoke()
					x.forget()
				}
				return false
			}},
		},
		{
			ID:    "tokens-403",
			Title: "refuses a token with 403 once",
			fault: fault{web: at("tools/call", 1, func(x *exchange) bool {
				x.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="notes"`)
				return x.send(403, "", "")
			})},
		},
		{
			ID:    "tokens-401-bare",
			Title: "refuses a token without saying where to get one",
			fault: fault{web: at("tools/call", 1, responds(401, "", ""))},
		},
		{
			ID:    "tokens-401-always",
			Title: "refuses every token at a call",
			Want:  Want{Says: []string{"not made", "not made"}, Ran: -1},
			fault: fault{web: func(x *exchange) bool { return x.m.Method == "tools/call" && x.send(401, "", "") }},
		},
		{
			ID:    "tokens-down",
			Title: "cannot renew a token once",
			Want:  Want{Says: []string{"not made", "done 1"}, Ran: 1},
			fault: fault{web: revoked("tools/call", 1, func(x *exchange) bool {
				return x.URL.Path == "/token" && x.n == 2 && x.send(500, "text/plain", "no")
			})},
		},
		{
			ID:    "tokens-busy",
			Title: "is too busy to renew a token once",
			Want:  Want{Says: []string{"not made", "done 1"}, Ran: 1},
			fault: fault{web: revoked("tools/call", 1, func(x *exchange) bool {
				return x.URL.Path == "/token" && x.n == 2 && x.send(429, "text/plain", "no")
			})},
		},
		{
			ID:    "tokens-metadata-gone",
			Title: "no longer has its metadata when a token is renewed",
			fault: fault{web: revoked("tools/call", 2, func(x *exchange) bool {
				return strings.HasPrefix(x.URL.Path, "/.well-known/") && x.n > 1 && x.send(404, "", "")
			})},
		},
		{
			ID:    "tokens-slow",
			Title: "renews a token slowly",
			fault: fault{web: revoked("tools/call", 2, func(x *exchange) bool {
				if x.URL.Path == "/token" && x.n == 2 {
					time.Sleep(300 * time.Millisecond)
				}
				return false
			})},
		},
	}
	for i := range all {
		all[i].Login = true
		all[i].Calls = 2
	}
	return all
}
