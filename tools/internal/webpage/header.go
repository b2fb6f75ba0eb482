package webpage

import "regexp"

// ConnectionHeaders are the canonical names of the headers that belong to the connection, so that
// neither a model nor a file sets them.
var ConnectionHeaders = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
	"Expect", "Accept-Encoding",
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110, section 5.6.2

// IsHeaderName reports whether name can be the name of a header.
func IsHeaderName(name string) bool { return headerName.MatchString(name) }
