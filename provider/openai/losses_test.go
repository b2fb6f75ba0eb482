package openai_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

var (
	responsesFrames = &wiretest.Frames{Kind: wiretest.EventType}
	chatFrames      = &wiretest.Frames{Kind: chatKind, Silent: []string{"arguments", "begin of a call", "whole call"}}
)

// chatKind names a chunk by its content.
func chatKind(data []byte) string {
	if string(data) == "[DONE]" {
		return "[DONE]"
	}
	var c struct {
		Choices []struct {
			Finish *string `json:"finish_reason"`
			Delta  struct {
				Calls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	json.Unmarshal(data, &c)
	for _, ch := range c.Choices {
		switch calls := ch.Delta.Calls; {
		case len(calls) > 0 && calls[0].Function.Name != "" && json.Valid([]byte(calls[0].Function.Arguments)):
			return "whole call"
		case len(calls) > 0 && calls[0].Function.Name != "":
			return "begin of a call"
		case len(calls) > 0:
			return "arguments"
		case ch.Finish != nil && *ch.Finish != "":
			return "finish_reason"
		}
	}
	return "any other"
}

// The negative control: without the comparison, the same streams have other calls, and they run.
func TestLossesFindsWrongCalls(t *testing.T) {
	soak.Sequential(t)
	open := func(h http.RoundTripper) llm.Model { return openai.Unchecked(openai.New("m", known(h))) }
	_, plays, wrong := wiretest.LossTable(wiretest.Losses(t, responsesWire, responsesFrames, open))
	runs, bad := wiretest.Executions(t, responsesWire, responsesFrames, open)
	t.Logf("%d of %d streams have other calls; %d of %d runs execute other calls", wrong, plays, len(bad), runs)
	if wrong < 250 || len(bad) < 250 {
		t.Errorf("only %d streams and %d runs have other calls", wrong, len(bad))
	}
}
