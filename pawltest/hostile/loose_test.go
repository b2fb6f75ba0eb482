package hostile_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/pawltest/hostile"
)

// Where a runtime may choose, the kit accepts both ways. pawl takes one of them, always the same.
func TestWhatPawlDoesWhereTheKitTakesBoth(t *testing.T) {
	soak.Sequential(t)
	want := map[string]string{
		"unknown-forever":              "every wire stalled",
		"call-for-ever":                "every wire stalled",
		"call-failing-varied":          "every wire stalled",
		"call-ping-pong":               "every wire stalled",
		"body-cut":                     "every wire answer",
		"http-429-tomorrow":            "every wire failed",
		"finish-malformed-call":        "gemini failed",
		"choice-forced-thinking-clash": "anthropic-messages failed",
		"args-whole-then-again":        "openai-chat answer",
		"finish-calls-without":         "anthropic-messages failed, gemini answer, openai-chat failed, openai-responses answer",
		"empty-output":                 "anthropic-messages failed, openai-responses failed",
		// Where the request shows the empty reply, the model that is asked again goes on; else it
		// is silent again.
		"empty-reply":           "anthropic-messages failed, gemini failed, openai-chat answer, openai-responses failed",
		"empty-after-results":   "anthropic-messages failed, gemini failed, openai-chat answer, openai-responses failed",
		"reasoning-only":        "anthropic-messages failed, gemini answer, openai-chat answer, openai-responses failed",
		"id-duplicate":          "every wire failed",
		"stream-event-twice":    "every wire answer",
		"stream-events-swapped": "anthropic-messages answer, gemini answer, openai-chat answer, openai-responses failed",
		"stream-no-json":        "every wire failed",
	}
	var ids []string
	for _, b := range hostile.Behaviours() {
		if strings.Contains(b.Want.Stop, "|") {
			ids = append(ids, b.ID)
		}
	}
	agent := hostile.Agent(adapters)
	var mu sync.Mutex
	got := map[string]map[string]string{} // by id and API
	watched := func(ctx context.Context, job *hostile.Job) hostile.Report {
		r := agent(ctx, job)
		mu.Lock()
		defer mu.Unlock()
		stops := got[job.Behaviour.ID]
		if stops == nil {
			stops = map[string]string{}
			got[job.Behaviour.ID] = stops
		}
		if was, ok := stops[job.API]; ok && was != string(r.Stop) {
			t.Errorf("%s, %s: streamed and whole differ: %s, %s", job.Behaviour.ID, job.API, was, r.Stop)
		}
		stops[job.API] = string(r.Stop)
		return r
	}
	only := regexp.MustCompile("^(" + strings.Join(ids, "|") + ")$")
	if _, err := hostile.Play(t.Context(), watched, hostile.Behaviours(),
		&hostile.PlayOptions{Only: only}); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for id, stops := range got {
		told[id] = inWords(stops)
	}
	if diff := cmp.Diff(told, want); diff != "" {
		t.Errorf("how pawl stops, got -, want +\n%s", diff)
	}
}

func inWords(stops map[string]string) string {
	apis := slices.Sorted(maps.Keys(stops))
	all := make([]string, len(apis))
	same := len(apis) == 4
	for i, api := range apis {
		all[i] = api + " " + stops[api]
		same = same && stops[api] == stops[apis[0]]
	}
	if same {
		return "every wire " + stops[apis[0]]
	}
	return strings.Join(all, ", ")
}
