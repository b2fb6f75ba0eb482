package openai_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/provider/openai"
)

const sdk = "github.com/openai/openai-go/v3"

// The tables of both APIs have a row for each word that the official SDK knows.
func TestFinishReasons(t *testing.T) {
	wiretest.CheckRows(t, openai.FinishReasons,
		wiretest.Enumeration{Module: sdk, Type: "ChatCompletionChoice", Field: "FinishReason"},
		wiretest.Enumeration{Module: sdk, Type: "ChatCompletionChunkChoice", Field: "FinishReason"})
}

func TestStatuses(t *testing.T) {
	wiretest.CheckRows(t, openai.Statuses,
		wiretest.Enumeration{Module: sdk, Folder: "responses", Type: "ResponseStatus"})
	wiretest.CheckRows(t, openai.IncompleteReasons,
		wiretest.Enumeration{Module: sdk, Folder: "responses", Type: "ResponseIncompleteDetails", Field: "Reason"})
}
