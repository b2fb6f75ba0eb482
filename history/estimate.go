package history

// estimate.go: the size of a request before its provider has counted it.

import (
	"github.com/pawl-go/pawl/history/internal/fold"
	"github.com/pawl-go/pawl/llm"
)

// Estimate returns about how many tokens a request has: its messages and its tools. A provider
// counts less for most texts.
func Estimate(req *llm.Request) (tokens int) {
	return int(float64(fold.Weight(req.Messages, req.Tools)) * firstRatio)
}
