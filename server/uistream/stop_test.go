package uistream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/server/uistream"
)

// Each protocol shows a stop reason by its class.
func TestStops(t *testing.T) {
	aisdk := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "finish stop",
		pawl.ClassWaiting:   "finish tool-calls",
		pawl.ClassLimited:   "finish length",
		pawl.ClassCancelled: "abort",
		pawl.ClassFailed:    "error",
	}
	agui := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "RUN_FINISHED success",
		pawl.ClassWaiting:   "RUN_FINISHED success", // with the open calls, of which there are none
		pawl.ClassLimited:   "RUN_FINISHED success",
		pawl.ClassCancelled: "RUN_FINISHED cancelled",
		pawl.ClassFailed:    "RUN_ERROR",
	}
	agui0 := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "RUN_FINISHED success",
		pawl.ClassWaiting:   "RUN_FINISHED success",
		pawl.ClassLimited:   "RUN_FINISHED success",
		pawl.ClassCancelled: "RUN_ERROR",
		pawl.ClassFailed:    "RUN_ERROR",
	}
	for protocol, want := range map[uistream.Protocol]map[pawl.StopClass]string{
		uistream.AISDK6: aisdk,
		uistream.AISDK7: aisdk,
		uistream.AGUI0:  agui0,
		uistream.AGUI1:  agui,
	} {
		t.Run(string(protocol), func(t *testing.T) {
			runtest.Stops(t, want, nil, func(res *pawl.Result) string {
				return lastOf(t, stream(options(protocol), []pawl.Event{
					{Kind: pawl.EventRunStarted, Run: "run", Agent: "clerk"},
					{Kind: pawl.EventRunEnded, Run: "run", Result: res},
				}))
			})
		})
	}
}

// lastOf returns the type of the last event, with the reason or the outcome that it names.
func lastOf(t *testing.T, frames [][]byte) string {
	t.Helper()
	last := ""
	for _, frame := range frames {
		for line := range bytes.Lines(frame) {
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok {
				data = line
			}
			var event struct {
				Type         string
				FinishReason string
				Outcome      struct{ Type string }
			}
			if json.Unmarshal(data, &event) != nil || event.Type == "" {
				continue // [DONE], or no event
			}
			last = string(bytes.TrimSpace(fmt.Appendf(nil, "%s %s%s", event.Type, event.FinishReason, event.Outcome.Type)))
		}
	}
	return last
}
