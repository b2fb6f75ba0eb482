package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/telemetry"
)

// Each line contains the ID of the run and its position in the trace. Content is present only if
// requested.
func TestLines(t *testing.T) {
	for _, content := range []bool{false, true} {
		b := newBench(t, telemetry.Options{Model: "m", Content: content})
		var out bytes.Buffer
		broken := tool("broken", pawl.EffectWrite, func(context.Context) (string, error) { return "", errors.New("canary") })
		a := b.agent("a", true, script.New(script.Call("broken", `{}`), script.Call("canary", `{}`), script.Fail(errors.New("canary"))), broken)
		ctx := telemetry.WithRunID(t.Context(), "r7")
		if _, err := run(ctx, b.Runner(b.Log(a, slog.New(slog.NewJSONHandler(&out, nil)))), llm.User("canary")); err == nil {
			t.Fatal("the run has not failed")
		}
		if has := strings.Contains(out.String(), "canary"); has != content {
			t.Errorf("content %v: written %v\n%s", content, has, out.String())
		}
		root := b.spans.Started()[0].SpanContext()
		var got []string
		for line := range strings.Lines(out.String()) {
			var l struct {
				Level, Msg, Run, Key, Outcome, Stop string
				RunID                               string `json:"run_id"`
				TraceID                             string `json:"trace_id"`
				SpanID                              string `json:"span_id"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			if l.RunID != "r7" || l.TraceID != root.TraceID().String() || l.SpanID != root.SpanID().String() {
				t.Errorf("%s is of another run", line)
			}
			got = append(got, strings.Join(strings.Fields(fmt.Sprint(l.Level, " ", l.Msg, " ", l.Run, " ", l.Key, " ",
				l.Outcome, l.Stop)), " "))
		}
		want := []string{"INFO run started run", "INFO reply run run/0/model", "WARN call run run/1/0 error", "INFO reply run run/1/model", "WARN call run run/2/0 unknown_tool",
			"ERROR run ended run failed", "ERROR run failed"}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("got -, want +\n%s", diff)
		}
	}
}

// ends is a run that only ends.
type ends struct{ res *pawl.Result }

func (e ends) Stream(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		yield(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: e.res}, nil)
	}
}

// The level of the end of a run follows the class of its stop reason.
func TestLevelOfStops(t *testing.T) {
	want := map[pawl.StopClass]string{
		pawl.ClassAnswered:  "INFO",
		pawl.ClassWaiting:   "INFO",
		pawl.ClassLimited:   "INFO",
		pawl.ClassCancelled: "INFO",
		pawl.ClassFailed:    "ERROR",
	}
	runtest.Stops(t, want, nil, func(res *pawl.Result) string {
		b := newBench(t, telemetry.Options{})
		var out bytes.Buffer
		for range b.Log(ends{res}, slog.New(slog.NewJSONHandler(&out, nil))).Stream(t.Context()) {
		}
		var line struct{ Level, Msg string }
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "run ended" {
			t.Fatalf("%v: %s", err, &out)
		}
		return line.Level
	})
}
