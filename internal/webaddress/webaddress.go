// Package webaddress checks addresses of web servers: base URLs, webhooks, pages.
package webaddress

import "net/url"

// Parse parses an address. ok reports whether it is complete: whether a request can be sent there.
func Parse(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	return u, IsComplete(u)
}

// IsComplete reports whether an address has the scheme http or https, and a host.
func IsComplete(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
