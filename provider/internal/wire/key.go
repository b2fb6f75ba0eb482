package wire

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-go/pawl/internal/webaddress"
	"github.com/pawl-go/pawl/llm"
)

// Env returns an environment variable without surrounding white space, because files with secrets
// often end in a line break. The variable "" is empty.
func Env(name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSpace(os.Getenv(name))
}

// BaseURL parses the address of an API. Its error shows example, and not the address, which may
// contain a key.
func BaseURL(provider, address, example string) (*url.URL, error) {
	u, ok := webaddress.Parse(strings.TrimSpace(address))
	if !ok {
		return nil, &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest,
			Message: "the base URL is not an http or https address such as " + example}
	}
	return u, nil
}

// CheckAddress returns an error for a key without an address. An empty address often comes from a
// variable that is not set, and the provider's own server would receive the key of another server.
// A key that one of the provider's variables has is the provider's. h is Options.HTTP: a program
// that carries the requests itself decides where they go.
func CheckAddress(provider, address, key string, h http.RoundTripper, variables ...string) error {
	if address != "" || key == "" || h != nil {
		return nil
	}
	if slices.ContainsFunc(variables, func(v string) bool { return key == Env(v) }) {
		return nil
	}
	return &llm.ProviderError{Provider: provider, Code: llm.CodeInvalidRequest,
		Message: "a key is given, but BaseURL is empty, as from a variable that is not set: give the address of the key's " +
			"server; for the provider's own, DefaultBaseURL or provider.Info.BaseURL"}
}

// CheckKey returns an error if no header can hold the key. The error does not contain the key.
func CheckKey(provider, key string) error {
	if !strings.ContainsFunc(key, unicode.IsControl) {
		return nil
	}
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication,
		Message: "the API key has a control character in it, such as a line break"}
}

// NoKey returns the error of a Model without a key, before any request. variable is the
// environment variable that was read.
func NoKey(provider, variable string) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication, Message: "no API key: " + variable + " is not set"}
}

// WithheldKey returns the error of a Model without a key for host, if variable has a key for
// another host.
func WithheldKey(provider, variable, host string) error {
	return &llm.ProviderError{Provider: provider, Code: llm.CodeAuthentication,
		Message: "no API key for " + host + ": " + variable + " is not sent to an address that is not its provider's"}
}

// MayHaveKey reports whether a key from the environment may be sent to address. The host of
// address must be on this machine, or be the host of an address in own or a subdomain of it. own
// has the provider's addresses. Without this rule, a mistyped or malicious address would receive
// the key.
func MayHaveKey(address string, own ...string) bool {
	host := hostname(address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	for _, o := range own {
		o = hostname(o)
		if o != "" && (host == o || strings.HasSuffix(host, "."+o)) {
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
