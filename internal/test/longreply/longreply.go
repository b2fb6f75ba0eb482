// Package longreply has a conversation whose replies the provider computes in the background, for
// the tests of engines that fetch them after a restart.
package longreply

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
)

// Turns is the number of replies of a conversation: calls, and the answer.
const Turns = 6

// Talker answers by the conversation alone, so that a repeated request gets the same reply.
func Talker() llm.Model {
	var all []script.Turn
	for n := 1; n < Turns; n++ {
		turn := script.Call("look", fmt.Sprintf(`{"n":%d}`, n))
		turn.Parts = append([]llm.Part{llm.Text{Text: fmt.Sprintf("Step %d of a long way.", n)}}, turn.Parts...)
		all = append(all, turn)
	}
	return script.New(append(all, script.Say("That is all."))...)
}

// Agent returns an agent whose model asks the simulator at url for replies in the background, and
// for each of them again after poll.
func Agent(url string, poll time.Duration, transport http.RoundTripper) *pawl.Agent {
	look := pawl.Func("look", "looks", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprint("seen ", in.N), nil
	})
	look.Effect = pawl.EffectRead
	return &pawl.Agent{Tools: []pawl.Toolset{look}, Model: openai.New("gpt-4o", &openai.Options{BaseURL: url, Key: "k",
		Background: true, Poll: poll, HTTP: transport})}
}

// Counted returns the numbers of requests for a reply, of requests that fetch one, and of cancelled
// replies.
func Counted(s *pawltest.Simulator) (asked, fetched, cancelled int) {
	for _, r := range s.Received() {
		switch {
		case strings.HasSuffix(r.Path, "/cancel"):
			cancelled++
		case r.Method == http.MethodGet:
			fetched++
		default:
			asked++
		}
	}
	return asked, fetched, cancelled
}
