package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Excerpt shortens text of unknown size for a message.
func Excerpt(b []byte) string {
	const most = 500
	s := strings.TrimSpace(string(b[:min(len(b), 8*most)]))
	if len(s) > most {
		s = s[:most]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-4):]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		s = strings.ToValidUTF8(s, "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// RetryAfter reads how long the provider asks to wait: in milliseconds, in seconds, or until a date.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s >= 0 && s < 1e6 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
