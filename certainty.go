package pawl

// certainty.go: whether a call that failed may have taken effect, in the record and for the model.

import (
	"errors"
	"strings"

	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// certaintyOf returns what err states about a call of w's tool. Empty means nothing, or a call that
// only reads: of such a call it does not matter whether it happened.
func (w *work) certaintyOf(err error) delivery.Certainty {
	var e *delivery.Error
	if !errors.As(err, &e) || !w.mayChange() {
		return ""
	}
	return e.Certainty
}

// mayChange reports whether a call of the tool may change the world, itself or by nested calls.
func (w *work) mayChange() bool {
	if w.tool == nil {
		return true
	}
	switch w.tool.Effect {
	case EffectWrite, EffectIdempotent, EffectCompose:
		return true
	}
	return false
}

// interruptedCertainty returns what is known about a call that ended with its context, or without
// its tool: nothing but what err states, so that it may have happened if it can change something.
func (w *work) interruptedCertainty(err error) delivery.Certainty {
	stated := w.certaintyOf(err)
	if stated == "" && w.mayChange() {
		return delivery.Unknown
	}
	return stated
}

// sentence returns the words of a certainty for the model, to follow a text without a full stop.
func sentence(c delivery.Certainty) string {
	switch c {
	case delivery.NotSent:
		return ". It was not sent."
	case delivery.Refused:
		return ". It was refused before any work."
	case delivery.Unknown:
		return ". What it does may have happened."
	}
	return "."
}

// withCertainty returns the result of a delivery.Error with the words of c.
func withCertainty(r llm.ToolResult, c delivery.Certainty) llm.ToolResult {
	before, after := "", ""
	switch c {
	case delivery.NotSent:
		before = "Not sent: "
	case delivery.Refused:
		before = "Refused before any work: "
	case delivery.Unknown:
		after = " What the call does may have happened."
		if !strings.HasSuffix(strings.TrimSpace(r.Text()), ".") {
			after = "." + after
		}
	}

	parts := []llm.Part{}
	if before != "" {
		parts = append(parts, llm.Text{Text: before})
	}
	parts = append(parts, r.Parts...)
	if after != "" {
		parts = append(parts, llm.Text{Text: after})
	}
	r.Parts = parts
	r.IsError = true
	return r
}
