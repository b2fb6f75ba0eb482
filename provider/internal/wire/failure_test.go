package wire

import (
	"testing"
	"time"
)

func TestRetryIn(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Rate limit reached for m on tokens per min (TPM): Limit 10, Used 9, Requested 3. Please try again in 1.2s. Visit x.": 1200 * time.Millisecond,
		"Please try again in 20ms.":          20 * time.Millisecond,
		"Please try again in 6m0s.":          6 * time.Minute,
		"Please retry in 34.074824224s.":     34074824224,
		"try again in 20 seconds":            20 * time.Second,
		"Please retry after 2 minutes.":      2 * time.Minute,
		"Try again in a while":               0,
		"try again in -3s":                   0,
		"try again in 99999999999999999999s": 0,
		"try again in ":                      0,
		"":                                   0,
	} {
		if got := RetryIn(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
