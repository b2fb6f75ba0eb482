package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/mcp"
)

// A server that repeats the token that was obtained for it does not bring it to the model.
func TestIssuedTokensAreHidden(t *testing.T) {
	const token = "tok-issued-0123456789"
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	defer web.Close()
	answer := func(path, form string, args ...any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, form, args...)
		})
	}
	answer("/.well-known/oauth-protected-resource", `{"resource":%q,"authorization_servers":[%q]}`, web.URL, web.URL)
	answer("/.well-known/oauth-authorization-server", `{"issuer":%q,"token_endpoint":%q,"authorization_endpoint":%q,`+
		`"response_types_supported":["code"],"grant_types_supported":["client_credentials"],`+
		`"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_post"]}`,
		web.URL, web.URL+"/token", web.URL+"/auth")
	answer("/token", `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		sent := r.Header.Get("Authorization")
		result := ""
		switch {
		case sent != "Bearer "+token:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+web.URL+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case q.Method == "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case q.Method == "tools/list":
			result = `{"tools":[{"name":"echo","description":"Repeats.","inputSchema":{"type":"object"}},` +
				`{"name":"fail","description":"Fails.","inputSchema":{"type":"object"}}]}`
		case q.Params.Name == "fail":
			result = fmt.Sprintf(`{"isError":true,"content":[],"_meta":{"pawl/unfit":{"answer":%q,"faults":[%q]}}}`, sent, "not "+sent)
		case q.Method == "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"you sent %s"}],"structuredContent":{"got":%q}}`, sent, sent)
		default:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	})

	server := mcp.Server{Name: "test", URL: web.URL, OAuth: &mcp.OAuth{ClientID: "me", SecretEnv: "SECRET"}}
	c := open(t, server, &mcp.Options{Getenv: func(string) string { return "the client's secret" }})
	x := call(t, c, "test_echo", `{}`)
	shown, err := json.Marshal(x.Result)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shown), token) || !strings.Contains(string(shown), "you sent Bearer [redacted]") {
		t.Errorf("the result is %s", shown)
	}

	// Nor does an answer that does not fit, which is in the error of the call.
	x = call(t, c, "test_fail", `{}`)
	var unfit *pawl.OutputError
	if !errors.As(x.Err(), &unfit) || unfit.Text != "Bearer [redacted]" || strings.Contains(x.Error+x.Err().Error(), token) {
		t.Errorf("the answer is %+v; the error is %q, %v", unfit, x.Error, x.Err())
	}
}
