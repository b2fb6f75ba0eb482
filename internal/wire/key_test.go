package wire

import "testing"

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
