package gemini_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/provider/gemini"
)

// The table of finish reasons has a row for each that the official SDK knows.
func TestFinishReasons(t *testing.T) {
	wiretest.CheckRows(t, gemini.FinishReasons,
		wiretest.Enumeration{Module: "google.golang.org/genai", Type: "FinishReason"})
}
