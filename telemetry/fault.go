package telemetry

// fault.go: error.type and the status of a failed span.

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

const (
	faultCancelled = "cancelled"
	faultTimeout   = "timeout"
)

// faultOf returns the error.type of err, from a closed list: the codes of a ProviderError, the
// outcomes of a call, cancelled, timeout, transcript, output and _OTHER. It returns "" for nil.
func faultOf(err error) string {
	var (
		pe *llm.ProviderError
		te *pawl.ToolError
		tr *pawl.TranscriptError
		oe *pawl.OutputError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &te):
		return string(te.Execution.Outcome)
	case errors.As(err, &pe):
		return string(pe.Code)
	case errors.As(err, &tr):
		return "transcript"
	case errors.As(err, &oe):
		return "output"
	case errors.Is(err, pawl.ErrTime), errors.Is(err, context.DeadlineExceeded):
		return faultTimeout
	case errors.Is(err, pawl.ErrCancelled), errors.Is(err, context.Canceled):
		return faultCancelled
	}
	return other
}

// failed records an error on a span. Its text may repeat words of the model or a tool, so it counts
// as content.
func (t *Telemetry) failed(span trace.Span, fault, text string) {
	if fault == "" {
		return
	}
	if !t.o.Content {
		text = ""
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(fault))
	span.SetStatus(codes.Error, t.o.Redactor.String(text))
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
