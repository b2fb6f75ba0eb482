package webaddress_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/webaddress"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		"http://localhost:8080/v1":  true,
		"https://api.example.com":   true,
		"HTTPS://api.example.com":   true,
		"localhost:8080":            false,
		"api.example.com":           false,
		"//api.example.com":         false,
		"http:///v1":                false,
		"http:api.example.com":      false,
		"ftp://example.com":         false,
		"file:///etc/passwd":        false,
		"javascript:alert(1)":       false,
		"http://exa mple.com":       false,
		"":                          false,
		"http://[::1]:80/":          true,
		"https://user:pw@host/path": true,
	} {
		u, ok := webaddress.Parse(text)
		if ok != want || ok && u.Host == "" {
			t.Errorf("%q: got %v, %v; want %v", text, u, ok, want)
		}
	}
}
