package history_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// An option that no request can meet ends a run before it begins. The error names the option and
// says what it may be.
func TestWindowOptions(t *testing.T) {
	for _, test := range []struct {
		options history.WindowOptions
		want    string // empty means no error
	}{
		{history.WindowOptions{}, ""},
		{history.WindowOptions{Tokens: 8_000, Reserve: 7_999}, ""},
		{history.WindowOptions{Reserve: 8_000}, ""}, // the model may state a larger window
		{history.WindowOptions{High: 1, Low: 0.99, Round: 1}, ""},
		{history.WindowOptions{Tokens: -1}, "Tokens is -1, want 0 or more"},
		{history.WindowOptions{Reserve: -1}, "Reserve is -1, want 0 or more"},
		{history.WindowOptions{HighTokens: -1}, "HighTokens is -1, want 0 or more"},
		{history.WindowOptions{Stub: -1}, "Stub is -1, want 0 or more"},
		{history.WindowOptions{Low: -0.1}, "Low is -0.1 and High is 0.8, want 0 < Low < High <= 1"},
		{history.WindowOptions{Low: 0.8}, "Low is 0.8 and High is 0.8, want"},
		{history.WindowOptions{High: 0.3}, "Low is 0.4 and High is 0.3, want"},
		{history.WindowOptions{High: 1.1}, "Low is 0.4 and High is 1.1, want"},
		{history.WindowOptions{High: math.NaN()}, "Low is 0.4 and High is NaN, want"},
		{history.WindowOptions{Round: -0.5}, "Round is -0.5, want more than 0 and at most 1"},
		{history.WindowOptions{Round: 1.5}, "Round is 1.5, want more than 0 and at most 1"},
		{history.WindowOptions{Round: math.NaN()}, "Round is NaN, want"},
		{history.WindowOptions{Tokens: 8_000, Reserve: 8_000}, "Reserve is 8000, want less than Tokens, which is 8000"},
		{history.WindowOptions{Tokens: 8_000, Reserve: 9_000}, "Reserve is 9000, want less than Tokens, which is 8000"},
	} {
		model := script.New(script.Say("hi"))
		agent := &pawl.Agent{Model: model, Middleware: []pawl.Middleware{history.Window(&test.options)}}
		_, err := agent.Run(t.Context(), llm.User("go"))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%+v: got the error %v", test.options, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), "window: "+test.want)):
			t.Errorf("%+v: got the error %v, want %q", test.options, err, test.want)
		}
		if err != nil && len(model.Requests()) > 0 {
			t.Errorf("%+v: the model was asked", test.options)
		}
	}
}
