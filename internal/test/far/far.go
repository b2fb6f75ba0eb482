// Package far has an MCP server that is far away: its tokens and its sessions are short, and at
// times it cannot be reached. The tests of the server and of the command live with it for a week.
package far

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Server is an MCP server whose tool note counts its calls, with the server that issues its tokens.
// Set the fields before its use.
type Server struct {
	// Clock returns the time since the beginning.
	Clock func() time.Duration
	// TokenTime is the life of a token, in whole seconds.
	TokenTime time.Duration
	// SessionTime is the time without a request after which a session ends.
	SessionTime time.Duration
	// Away reports whether the server breaks every connection at that time.
	Away func(time.Duration) bool
	// NoTokens reports whether no token is issued at that time.
	NoTokens func(time.Duration) bool

	mu      sync.Mutex
	token   string
	expires time.Duration // of the token
	session string
	used    time.Duration // the last use of the session
	seen    Seen
}

// Seen is what a Server has counted.
type Seen struct {
	Calls, Tokens, Sessions int
}

// Seen returns what the server has counted until now.
func (f *Server) Seen() Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// ServeHTTP answers a request.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock()
	if f.Away(now) {
		panic(http.ErrAbortHandler) // the connection breaks
	}

	base := "http://" + r.Host
	authorized := f.token != "" && now < f.expires && r.Header.Get("Authorization") == "Bearer "+f.token
	switch {
	case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%[1]s"]}`, base)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":"%s","token_endpoint":"%[1]s/token","code_challenge_methods_supported":["S256"],`+
			`"token_endpoint_auth_methods_supported":["client_secret_post"]}`, base)
	case r.URL.Path == "/token" && f.NoTokens(now):
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/token":
		f.seen.Tokens++
		f.token = "t" + strconv.Itoa(f.seen.Tokens)
		f.expires = now + f.TokenTime
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"%s","token_type":"bearer","expires_in":%d}`, f.token, f.TokenTime/time.Second)
	case r.URL.Path != "/mcp":
		w.WriteHeader(http.StatusNotFound)
	case !authorized:
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		f.answer(w, r, now)
	}
}

// answer answers a message. The caller holds mu.
func (f *Server) answer(w http.ResponseWriter, r *http.Request, now time.Duration) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m) // the client writes JSON
	if m.Method == "initialize" {
		f.seen.Sessions++
		f.session = "s" + strconv.Itoa(f.seen.Sessions)
		f.used = now
		w.Header().Set("Mcp-Session-Id", f.session)
	}
	lost := r.Header.Get("Mcp-Session-Id") != f.session || now-f.used > f.SessionTime

	result := ""
	switch {
	case m.Method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`
	case lost:
		http.Error(w, "no such session", http.StatusNotFound)
		return
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}`
	case m.Method == "tools/call":
		f.seen.Calls++
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"noted %d"}]}`, f.seen.Calls)
	}
	f.used = now
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
