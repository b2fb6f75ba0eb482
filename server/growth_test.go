package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/script"
)

// TestManyMessages counts what a request with many messages allocates: twice the messages cost
// twice as much, and not four times.
func TestManyMessages(t *testing.T) {
	soak.Sequential(t)
	say := func(*llm.Request) script.Turn { return script.Say("done") }
	listener := &pawl.Agent{
		Name:       "listener",
		Model:      &script.Model{Turns: []script.Turn{script.Loop(script.Func(say))}, Quiet: true},
		Middleware: []pawl.Middleware{(&policy.Flow{}).Middleware()},
	}
	v := serve(t, func(o *options) { o.Agents = []*pawl.Agent{listener} })

	alternating := func(user, assistant string) func(i int) string {
		return func(i int) string {
			if i%2 == 0 {
				return fmt.Sprintf(user, i)
			}
			return fmt.Sprintf(assistant, i)
		}
	}
	const (
		userText      = `{"role":"user","content":"a%d"}`
		assistantText = `{"role":"assistant","content":"b%d"}`
		userParts     = `{"role":"user","parts":[{"type":"text","text":"a%d"}]}`
		assistParts   = `{"role":"assistant","parts":[{"type":"text","text":"b%d"}]}`
	)
	for _, test := range []struct {
		name, path, body string // %s in the body is the messages
		message          func(i int) string
	}{
		{"a user's", "/v1/chat/completions", `{"model":"listener","messages":[%s]}`, alternating(userText, userText)},
		{"both sides'", "/v1/chat/completions", `{"model":"listener","messages":[%s]}`, alternating(userText, assistantText)},
		{"Responses", "/v1/responses", `{"model":"listener","input":[%s]}`, alternating(userText, assistantText)},
		{"runs", "/v1/runs", `{"agent":"listener","wait":true,"messages":[%s]}`, alternating(userParts, assistParts)},
	} {
		cost := func(n int) (count, bytes uint64) {
			all := make([]string, n+1) // the last is the user's
			for i := range all {
				all[i] = test.message(i)
			}
			body := fmt.Sprintf(test.body, strings.Join(all, ","))
			want := 200
			if test.path == "/v1/runs" {
				want = 201
			}

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			v.do("POST", test.path, body, want, nil)
			runtime.ReadMemStats(&after)
			return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
		}

		cost(100) // caches
		count, bytes := cost(1000)
		for _, n := range []uint64{2, 4} {
			moreCount, moreBytes := cost(int(1000 * n))

			// Slices that grow in steps account for the half more.
			if moreCount > count*n*3/2 || moreBytes > bytes*n*3/2 {
				t.Errorf("%s: %d objects and %d KiB for 1,000 messages, %d and %d for %d",
					test.name, count, bytes>>10, moreCount, moreBytes>>10, 1000*n)
			}
		}
	}
}
