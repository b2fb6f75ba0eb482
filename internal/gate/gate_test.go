package gate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/gate"
)

func TestHost(t *testing.T) {
	known := []string{"agents.example.com", "proxy:8443"}
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST:1": true, "127.0.0.1:8080": true, "127.9.9.9": true, "[::1]:80": true, "[::1]": true, "agents.example.com": true,
		"agents.example.com:443": true, "AGENTS.example.com": true, "proxy:8443": true,
		"": false, "evil.example": false, "proxy": false, "proxy:1": false, "localhost.evil.example": false, "127.0.0.1.evil.example:80": false, "10.0.0.1:80": false, "[::1": true,
		"0.0.0.0:80": false, "2130706433": false, "agents.example.com.": false,
	} {
		if got := gate.Host(host, known); got != want {
			t.Errorf("Host(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	known := []string{"https://app.example.com"}
	for origin, want := range map[string]bool{
		"": true, "http://localhost:8080": true, "https://LOCALHOST:8080": true, "https://app.example.com": true,
		"http://localhost:3000": false, "https://127.0.0.1": false, "http://[::1]:1": false, "http://localhost": false, "ws://localhost:8080": false,
		"null": false, "http://app.example.com": false, "https://app.example.com:444": false, "https://evil.example": false, "http://localhost.evil.example": false, "file://localhost": false,
		"http://localhost@evil.example": false, "chrome-extension://localhost": false,
	} {
		if got := gate.Origin(origin, "localhost:8080", known); got != want {
			t.Errorf("Origin(%q) = %v, want %v", origin, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	for header, want := range map[string]string{"Bearer abc": "abc", "bearer  abc ": "abc", "": "", "abc": "", "Basic abc": "", "Bearer": "", "Bearer ": ""} {
		if got := gate.Token(header); got != want {
			t.Errorf("Token(%q) = %q, want %q", header, got, want)
		}
	}
	if !gate.Same("abc", "abc") || gate.Same("abc", "abd") || gate.Same("", "a") {
		t.Error("Same")
	}
}

func TestPreflight(t *testing.T) {
	for _, test := range []struct{ asked, want string }{
		{"content-type, authorization,x-stainless-os", "content-type, authorization, x-stainless-os"},
		{"a b, c\x00, (d), , x-y", "x-y"}, {"", ""},
		{strings.Repeat("x-a,", 60), strings.TrimSuffix(strings.Repeat("x-a, ", 40), ", ")},
	} {
		r := httptest.NewRequest(http.MethodOptions, "/v1/models", nil)
		r.Header.Set("Origin", "https://app.example.com")
		r.Header.Set("Access-Control-Request-Headers", test.asked)
		h := http.Header{}
		if gate.Preflight(h, r) || h.Get("Access-Control-Allow-Headers") != "" {
			t.Error("a request that is no preflight was answered like one")
		}
		r.Header.Set("Access-Control-Request-Method", "POST")
		h = http.Header{}
		if !gate.Preflight(h, r) || strings.Join(h.Values("Access-Control-Allow-Headers"), ", ") != test.want ||
			h.Get("Access-Control-Allow-Origin") != "https://app.example.com" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%q: got %v", test.asked, h)
		}
	}
}
