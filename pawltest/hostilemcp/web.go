package hostilemcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// webState is the state of a fake server with an address. The fields are under fake.mu.
type webState struct {
	sessions int    // started so far
	session  string // the valid one; empty means none
	tokens   int    // issued so far
	token    string // the valid one; empty means none
	requests map[string]int
}

// exchange is one request of a client, and the response to it.
type exchange struct {
	http.ResponseWriter
	*http.Request
	f *fake
	m message
	// Requests of this method so far, with this one: of MCP, or of HTTP if there is no message.
	n int
}

// ServeHTTP answers a request.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, Request: r, f: f}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_ = json.Unmarshal(body, &x.m) // other requests have no message

	key := x.m.Method
	if key == "" {
		key = r.Method + " " + r.URL.Path
	}
	f.mu.Lock()
	if f.web.requests == nil {
		f.web.requests = map[string]int{}
	}
	f.web.requests[key]++
	x.n = f.web.requests[key]
	f.mu.Unlock()

	hook := f.b.fault.web
	switch {
	case hook != nil && hook(x):
	case r.URL.Path != "/mcp":
		x.authorization()
	case f.b.Login && !x.authorized():
		x.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+x.base()+`/.well-known/oauth-protected-resource/mcp"`)
		x.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodDelete:
		x.WriteHeader(http.StatusOK)
	case r.Method != http.MethodPost:
		x.WriteHeader(http.StatusMethodNotAllowed)
	case x.m.Method == "server/discover":
		x.WriteHeader(http.StatusBadRequest)
	case x.m.ID == nil:
		x.WriteHeader(http.StatusAccepted)
	default:
		x.serve()
	}
}

// base returns the address of the server.
func (x *exchange) base() string { return "http://" + x.Host }

// Header returns the header of the response.
func (x *exchange) Header() http.Header { return x.ResponseWriter.Header() }

// Write writes to the response.
func (x *exchange) Write(b []byte) (int, error) { return x.ResponseWriter.Write(b) }

// serve answers a request of MCP.
func (x *exchange) serve() {
	f := x.f
	f.mu.Lock()
	if x.m.Method == "initialize" {
		f.web.sessions++
		f.web.session = "s" + strconv.Itoa(f.web.sessions)
		x.Header().Set("Mcp-Session-Id", f.web.session)
	}
	valid := f.web.session != "" && x.Request.Header.Get("Mcp-Session-Id") == f.web.session
	f.mu.Unlock()
	if !valid && x.m.Method != "initialize" {
		x.send(http.StatusNotFound, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		return
	}
	x.send(http.StatusOK, "application/json", f.answer(x.m))
}

// send sends a response. The text is a template.
func (x *exchange) send(status int, kind, text string) bool {
	if kind != "" {
		x.Header().Set("Content-Type", kind)
	}
	x.WriteHeader(status)
	_, _ = io.WriteString(x, strings.ReplaceAll(text, "$ID", string(x.m.ID)))
	return true
}

// forget ends the session.
func (x *exchange) forget() {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	x.f.web.session = ""
}

// revoke ends the token.
func (x *exchange) revoke() {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	x.f.web.token = ""
}

// authorized reports whether a request has the valid token.
func (x *exchange) authorized() bool {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	return x.f.web.token != "" && x.Request.Header.Get("Authorization") == "Bearer "+x.f.web.token
}

// authorization answers the requests of a login.
func (x *exchange) authorization() {
	const kind = "application/json"
	base := x.base()
	switch x.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		x.send(http.StatusOK, kind, `{"resource":"`+base+`/mcp","authorization_servers":["`+base+`"]}`)
	case "/.well-known/oauth-authorization-server":
		x.send(http.StatusOK, kind, `{"issuer":"`+base+`","authorization_endpoint":"`+base+`/authorize","token_endpoint":"`+base+
			`/token","response_types_supported":["code"],"grant_types_supported":["client_credentials"],`+
			`"token_endpoint_auth_methods_supported":["client_secret_post"],"code_challenge_methods_supported":["S256"]}`)
	case "/token":
		x.send(http.StatusOK, kind, `{"access_token":"`+x.issue()+`","token_type":"bearer","expires_in":3600}`)
	default:
		x.WriteHeader(http.StatusNotFound)
	}
}

// issue returns a new token, which replaces the one before.
func (x *exchange) issue() string {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	x.f.web.tokens++
	x.f.web.token = "t" + strconv.Itoa(x.f.web.tokens)
	return x.f.web.token
}
