package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/far"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
)

// A week of a server with an agent that uses an MCP server whose tokens live for 60 s and whose
// sessions end after five minutes without a request, which is away for an hour, and whose tokens
// cannot be renewed for an hour. Every request is answered, and a call of the tool runs once or, in
// these two hours, not at all.
func TestWeek(t *testing.T) {
	const between = 15 * time.Minute
	const day = 24 * time.Hour
	away := hours{3 * day, 3*day + time.Hour}
	noTokens := hours{5 * day, 5*day + time.Hour}

	var clock atomic.Int64
	remote := &far.Server{
		Clock:       func() time.Duration { return time.Duration(clock.Load()) },
		TokenTime:   time.Minute,
		SessionTime: 5 * time.Minute,
		Away:        away.has,
		NoTokens:    noTokens.has,
	}
	// Real connections end before the clock of the bubble goes on.
	web := httptest.NewUnstartedServer(remote)
	web.Config.SetKeepAlivesEnabled(false)
	web.Start()
	defer web.Close()

	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		client, err := mcp.New(mcp.Server{
			Name:  "far",
			URL:   web.URL + "/mcp",
			OAuth: &mcp.OAuth{ClientID: "week", SecretEnv: "SECRET"},
		}, &mcp.Options{
			Getenv: func(string) string { return "week-secret" },
			Notice: func(n mcp.Notice) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, n.Text)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		agent := &pawl.Agent{Name: "week", Model: noting(), Tools: []pawl.Toolset{client}}
		s, err := server.New([]*pawl.Agent{agent}, new(store.MemoryJournal), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())

		begun := time.Now()
		calls := 0
		for time.Since(begun) < 7*day {
			passed := time.Since(begun)
			clock.Store(int64(passed))
			answer := answered(t, s, passed)
			_, noted := strings.CutPrefix(answer, "noted ")
			switch {
			case noted:
				calls++
				if answer != "noted "+strconv.Itoa(calls) {
					t.Fatalf("after %v: got %q, want call %d", passed, answer, calls)
				}
			case !away.has(passed) && !noTokens.has(passed):
				t.Fatalf("after %v: got %q, want call %d", passed, answer, calls+1)
			case answer != "no tool" && !strings.Contains(answer, "was not made"):
				t.Fatalf("after %v: got %q", passed, answer)
			}
			time.Sleep(between)
		}

		// The clock has moved: the server saw what it is made for.
		seen := remote.Seen()
		if seen.Calls != calls || calls < 600 || seen.Tokens < 600 || seen.Sessions < 600 {
			t.Errorf("%d calls, and the server has %+v", calls, seen)
		}
		mu.Lock()
		defer mu.Unlock()
		gone := strings.Count(strings.Join(told, "\n"), "its tools are missing until it can")
		back := strings.Count(strings.Join(told, "\n"), "it can be reached again")
		if gone != 2 || back != 2 {
			t.Errorf("%d notices that it is away, %d that it is back: %q", gone, back, told)
		}
	})
}

// hours is a time of the week.
type hours struct{ from, to time.Duration }

func (h hours) has(passed time.Duration) bool { return passed >= h.from && passed < h.to }

// noting is a model that calls the tool if it is offered, and answers with its result.
func noting() llm.Model {
	return &script.Model{Quiet: true, Turns: []script.Turn{script.Loop(script.Func(func(r *llm.Request) script.Turn {
		if results := script.Results(r); len(results) > 0 {
			return script.Say(results[len(results)-1].Text())
		}
		for _, tool := range r.Tools {
			if tool.Name == "far_note" {
				return script.Call("far_note", `{}`)
			}
		}
		return script.Say("no tool")
	}))}}
}

// answered makes one run, and returns its answer.
func answered(t *testing.T, s http.Handler, passed time.Duration) string {
	t.Helper()
	body := fmt.Sprintf(`{"id":"run-%d","input":"Write a note.","wait":true}`, passed/time.Second)
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/runs", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var run struct{ Stop, Answer string }
	if err := json.Unmarshal(w.Body.Bytes(), &run); err != nil || run.Stop != string(pawl.StopAnswer) {
		t.Fatalf("after %v: got status %d, %s, %v", passed, w.Code, w.Body, err)
	}
	return run.Answer
}
