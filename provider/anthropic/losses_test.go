package anthropic_test

import (
	"encoding/json"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// messagesFrames names an event by its type, and a fragment by the type of its delta.
var messagesFrames = &wiretest.Frames{Silent: []string{"input_json_delta"}, Kind: func(data []byte) string {
	var e struct {
		Type  string
		Delta struct{ Type string }
	}
	json.Unmarshal(data, &e)
	if e.Delta.Type != "" {
		return e.Delta.Type
	}
	return e.Type
}}
