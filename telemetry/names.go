package telemetry

// names.go: the names that are not part of the conventions, operations, and error.type with the
// status of a failed span. run.go sets the attributes of runs, model.go sets them for requests,
// call.go for calls.

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Conventions is the version of the semantic conventions that most names are of: the last version
// in go.opentelemetry.io/otel that contains generative AI. Names has the others.
const Conventions = "1.41.0"

// Names are the names of the conventions for generative AI, which change. Most are the same in all
// versions; the others are stated here.
type Names string

const (
	// Names2026 are the names of the conventions' own repository,
	// github.com/open-telemetry/semantic-conventions-genai, of November 2026. Tokens that are
	// written to a cache are gen_ai.usage.cache_write.input_tokens. Runs have the metric
	// gen_ai.invoke_agent.duration, calls gen_ai.execute_tool.duration.
	Names2026 Names = "2026"
	// Names1_41 are the names of version 1.41: gen_ai.usage.cache_creation.input_tokens, and
	// gen_ai.client.operation.duration for requests, runs and calls.
	Names1_41 Names = "1.41"
)

// names has all Names.
var names = []Names{Names2026, Names1_41}

// The names that version 1.41 does not have.
const (
	invokeAgentDuration = "gen_ai.invoke_agent.duration"
	executeToolDuration = "gen_ai.execute_tool.duration"
	cacheWriteTokens    = attribute.Key("gen_ai.usage.cache_write.input_tokens")
)

// cacheWrite returns the attribute of tokens that are written to a cache.
func (n Names) cacheWrite() attribute.Key {
	if n == Names1_41 {
		return semconv.GenAIUsageCacheCreationInputTokensKey
	}
	return cacheWriteTokens
}

// Attributes that are not part of the conventions.
const (
	pawlKey      = attribute.Key("pawl.key")           // the llm.Key of a run, request or call
	pawlStop     = attribute.Key("pawl.run.stop")      // how a run ended
	pawlOutcome  = attribute.Key("pawl.call.outcome")  // how a call ended
	pawlAttempts = attribute.Key("pawl.call.attempts") // number of times its tool was started
	pawlCached   = attribute.Key("pawl.call.cached")   // its result came from an earlier call
	pawlRepairs  = attribute.Key("pawl.call.repairs")  // number of repairs of its arguments
	// number of the failed attempt at a request or a call, from 1
	pawlAttempt = attribute.Key("pawl.attempt")
	pawlLink    = attribute.Key("pawl.link") // of a link: the relation to the other run
)

// Operations of the conventions, and attempt, which is not part of them.
const (
	invokeAgent = "invoke_agent"
	chat        = "chat"
	executeTool = "execute_tool"
	attempt     = "attempt"
)

// The bucket bounds that the conventions require.
var (
	tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216,
		67108864}
	durationBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	runBounds      = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	firstBounds    = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
		10.0}
)

// other is the conventions' value for anything without a name.
const other = "_OTHER"

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
	// The order matters: the error of a tool wraps the error of the model that the tool has asked.
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
	if !t.options.Content {
		text = ""
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(fault))
	span.SetStatus(codes.Error, t.options.Redactor.String(text))
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
