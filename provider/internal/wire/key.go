package wire

import (
	"net"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/llm"
)

// Env is the value of an environment variable without the white space around it: files of secrets end in a line break. The variable "" is
// empty.
func Env(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSpace(os.Getenv(name))
}

// BaseURL reads the address of an API. The error does not repeat it, for it may hold a key; it names one that would do.
func BaseURL(provider, address, example string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest,
			Message: "the base URL is not an http or https address such as " + example}
	}
	return u, nil
}

// CheckKey refuses a key that no header can hold. The key is not repeated.
func CheckKey(provider, key string) error {
	if !strings.ContainsFunc(key, unicode.IsControl) {
		return nil
	}
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication,
		Message: "the API key has a control character in it, such as a line break"}
}

// NoKey is the error of a Model without a key, which is told before anything is sent. variable is where its key was looked for.
func NoKey(provider, variable string) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication, Message: "no API key: " + variable + " is not set"}
}

// KeptKey is the error of a Model without a key for the host that it is to ask, while variable holds one for another.
func KeptKey(provider, variable, host string) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication,
		Message: "no API key for " + host + ": " + variable + " is not sent to an address that is not its provider's"}
}

// MayHaveKey reports whether a key of the environment may go to an address that a program or a flag gave: to a host that is one of own (the
// provider's, and the one that the environment names beside the key), or below it, and to this machine, whose servers are the user's. Elsewhere
// a key goes only where it was given for that address, or a mistyped or a foreign address would learn it.
func MayHaveKey(address string, own ...string) bool {
	host := hostname(address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	for _, o := range own {
		if o = hostname(o); o != "" && (host == o || strings.HasSuffix(host, "."+o)) {
			return true
		}
	}
	return false
}

func hostname(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
