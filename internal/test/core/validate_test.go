package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

func TestValidate(t *testing.T) {
	tool := &pawl.Tool{Name: "weather", Passive: true, Input: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`)}
	for _, tt := range []struct{ args, want string }{
		{`{"city":"Oslo"}`, ""},
		{`{"city":"Oslo","days":"3"}`, ""}, // would be repaired
		{``, "needs them"},
		{`{"city":{}}`, "field city: expected string"},
		{`{"city":`, "not valid JSON"},
	} {
		err := tool.Validate(json.RawMessage(tt.args))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.args, err, tt.want)
		}
	}
}
