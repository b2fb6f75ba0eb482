package wire

import (
	"strings"
	"testing"
)

// For any fault of a key, the error names the places where the key is looked up, and does not
// contain the key.
func TestKeyErrors(t *testing.T) {
	t.Setenv("A_KEY", " sk-1\n")
	if got := Env("A_KEY") + Env(""); got != "sk-1" {
		t.Errorf("got the key %q, want sk-1", got)
	}
	if err := CheckKey("p", "sk-1"); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"p: authentication: the API key has a control character in it, such as a line break":                      CheckKey("p", "sk-1\nsk-2"),
		"p: authentication: no API key: A_KEY is not set":                                                         NoKey("p", "A_KEY"),
		"p: authentication: no API key for x.example: A_KEY is not sent to an address that is not its provider's": WithheldKey("p", "A_KEY", "x.example"),
	} {
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "sk-1") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestMayHaveKey(t *testing.T) {
	for address, want := range map[string]bool{
		"https://api.openai.com/v1":               true,
		"https://eu.api.openai.com/v1":            true,
		"https://gateway.example/v1":              true, // the environment names it
		"http://localhost:11434/v1":               true,
		"http://127.0.0.1:80/v1":                  true,
		"http://[::1]:80/v1":                      true,
		"https://api.openai.com.evil.example/v1":  false,
		"https://evilapi.openai.com/v1":           false,
		"https://evil.example/v1?api.openai.com/": false,
		"https://api.openai.com@evil.example/v1":  false,
		"http://10.0.0.1/v1":                      false,
		"":                                        false,
	} {
		if got := MayHaveKey(address, "https://API.openai.com/v1", "https://gateway.example", ""); got != want {
			t.Errorf("%s: got %t, want %t", address, got, want)
		}
	}
}
