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

// RetryIn reads how long the words of an error ask to wait, for providers that say it nowhere else: "Please try again in 1.2s", "Please retry in
// 34.07s", "in 6m0s", "in 20 seconds". 0: they do not say.
func RetryIn(message string) time.Duration {
	lower := strings.ToLower(message)
	for _, words := range [...]string{"try again in ", "retry in ", "retry after "} {
		i := strings.LastIndex(lower, words)
		if i < 0 {
			continue
		}
		n, unit, _ := strings.Cut(strings.TrimSpace(lower[i+len(words):]), " ")
		n = strings.TrimRight(n, ".,;)")
		if d, err := time.ParseDuration(n); err == nil && d > 0 && d < 1000*time.Hour {
			return d
		}
		if f, err := strconv.ParseFloat(n, 64); err == nil && f > 0 && f < 1e6 {
			switch {
			case strings.HasPrefix(unit, "second"):
				return time.Duration(f * float64(time.Second))
			case strings.HasPrefix(unit, "minute"):
				return time.Duration(f * float64(time.Minute))
			case strings.HasPrefix(unit, "millisecond"):
				return time.Duration(f * float64(time.Millisecond))
			}
		}
	}
	return 0
}
