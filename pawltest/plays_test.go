package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/plays"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// openPlay returns the model of a play. The provider is at its own host only if the play needs it.
func openPlay(p plays.Play, carry http.RoundTripper) llm.Model {
	const other = "http://127.0.0.1:1/v1"
	switch p.API {
	case pawltest.Responses:
		return openai.New("m", &openai.Options{BaseURL: other, Key: "k", HTTP: carry})
	case pawltest.Anthropic:
		return anthropic.New("m", &anthropic.Options{BaseURL: other, Key: "k", HTTP: carry})
	case pawltest.Gemini:
		return gemini.New("m", &gemini.Options{BaseURL: other, Key: "k", HTTP: carry})
	}
	base := other
	if p.Vendor {
		base = openai.DefaultBaseURL
	}
	return openai.NewChat("m", &openai.Options{BaseURL: base, Key: "k", HTTP: carry})
}

// No call of a reply is executed that its provider calls unfinished, and its text is no answer. The
// calls and texts of complete replies are.
func TestUnfinishedReplies(t *testing.T) {
	stage := new(plays.Stage)
	for _, p := range plays.All {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%s/stream=%t", p.API, p.Word, stream), func(t *testing.T) {
				playCall(t, stage, p, stream)
				playText(t, stage, p, stream)
			})
		}
	}
}

// run runs an agent with a Write tool on a line of a play, and returns how often the tool ran.
func runPlay(t *testing.T, stage *plays.Stage, p plays.Play, line string, stream bool) (*pawl.Result, int, error) {
	t.Helper()
	ran := 0
	write := &pawl.Tool{Name: plays.Tool, Description: "Writes a file.", Effect: pawl.EffectWrite,
		Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
			ran++
			return llm.TextResult("ok"), nil
		}}
	agent := &pawl.Agent{Model: openPlay(p, stage), Tools: []pawl.Toolset{write}}
	res, err := runAgent(t.Context(), agent, []llm.Message{llm.User(line)}, stream)
	return res, ran, err
}

func playCall(t *testing.T, stage *plays.Stage, p plays.Play, stream bool) {
	t.Helper()
	res, ran, err := runPlay(t, stage, p, p.Line(true, stream, "go"), stream)
	want := map[bool]int{true: 1}[p.Complete]
	if ran != want {
		t.Errorf("the call ran %d times, want %d; %v", ran, want, err)
	}
	if p.Complete && (err != nil || res.Text() != plays.Done) {
		t.Errorf("got %q, %v", res.Text(), err)
	}
}

func playText(t *testing.T, stage *plays.Stage, p plays.Play, stream bool) {
	t.Helper()
	line := p.Line(false, stream, "go")
	res, _, err := runPlay(t, stage, p, line, stream)
	switch {
	case p.Continued:
		if err != nil || res.Text() != plays.Text+plays.Done || stage.Requests(line) != 2 || res.Spent.Requests != 2 {
			t.Errorf("got %q after %d requests, %+v, %v", res.Text(), stage.Requests(line), res.Spent, err)
		}
	case p.Complete:
		if err != nil || res.Stop != pawl.StopAnswer || res.Text() != plays.Text {
			t.Errorf("got %s, %q, %v", res.Stop, res.Text(), err)
		}
	case res.Stop == pawl.StopAnswer:
		t.Errorf("half a reply is the answer %q", res.Text())
	}
}

// A word that is not known is named by a notice, and so is a reason that has nothing to do with the
// size of the reply.
func TestUnknownEndingsAreNamed(t *testing.T) {
	for _, p := range plays.All {
		_, reason, _ := strings.Cut(p.Word, ":")
		named := strings.EqualFold(p.Word, "tomorrow") || reason == "tomorrow" || reason == "steered" || p.Word == "OTHER"
		var notices []string
		req := &llm.Request{Messages: []llm.Message{llm.User(p.Line(false, true, "go"))}}
		for d, err := range openPlay(p, new(plays.Stage)).Stream(t.Context(), req) {
			var refused *llm.ProviderError
			if err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if d.Notice != nil && d.Notice.Code == "finish" {
				notices = append(notices, d.Notice.Text)
			}
		}
		text := strings.Join(notices, "\n")
		if word := strings.TrimPrefix(p.Word, "incomplete:"); named && !strings.Contains(text, word) || p.Complete && text != "" {
			t.Errorf("%s %s: got the notices %q", p.API, p.Word, notices)
		}
	}
}
