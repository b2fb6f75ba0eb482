package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

const mayHave = "may have happened"

// A transport states how far a call came. The text for the model, the outcome and the event say the
// same: only a call that was sent, and that can change something, may have happened.
func TestCertainty(t *testing.T) {
	broken := errors.New("the connection is gone")
	stated := func(c delivery.Certainty) error { return delivery.NewError(c, "The shop cannot be reached", broken) }
	writes := []pawl.Effect{pawl.EffectWrite, pawl.EffectIdempotent, pawl.EffectCompose}
	reads := []pawl.Effect{pawl.EffectRead, pawl.EffectPure}
	ends := map[string]struct {
		cause   error // of the end of the context; nil means that it does not end
		timeout time.Duration
		outcome pawl.Outcome
	}{
		"it returns":        {nil, 0, pawl.OutcomeError},
		"it is too slow":    {nil, time.Second, pawl.OutcomeTimeout},
		"it is cancelled":   {pawl.ErrCancelled, 0, pawl.OutcomeCancelled},
		"it is interrupted": {errors.New("the machine stops"), 0, pawl.OutcomeCancelled},
	}
	for name, end := range ends {
		for _, c := range []struct {
			err  error
			want delivery.Certainty // of a call that can change something
		}{
			{stated(delivery.NotSent), delivery.NotSent},
			{stated(delivery.Refused), delivery.Refused},
			{stated(delivery.Unknown), delivery.Unknown},
			{broken, delivery.Unknown},
		} {
			for _, effect := range append(append([]pawl.Effect{}, writes...), reads...) {
				synctest.Test(t, func(t *testing.T) {
					waits := end.cause != nil || end.timeout > 0
					tool := &pawl.Tool{Name: "pay", Effect: effect, Timeout: max(end.timeout, time.Minute),
						Input: json.RawMessage(`{"type":"object"}`),
						Run: func(ctx context.Context, _ llm.ToolCall) (llm.ToolResult, error) {
							if waits {
								<-ctx.Done()
							}
							return llm.ToolResult{}, c.err
						}}
					if end.timeout > 0 {
						tool.Timeout = end.timeout
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if end.cause != nil {
						time.AfterFunc(time.Second, func() { cancel(end.cause) })
					}
					x := pawl.Toolsets{tool}.Execute(ctx, llm.ToolCall{ID: "1", Name: "pay"})

					want := c.want
					if effect == pawl.EffectRead || effect == pawl.EffectPure {
						want = ""
					}
					outcome := end.outcome
					if !waits && c.err == broken {
						want = "" // the tool says itself what happened
					}
					unknown := name == "it is interrupted" && want == delivery.Unknown && effect == pawl.EffectWrite
					if unknown {
						outcome = pawl.OutcomeUnknown
					}
					what := name + ", " + c.err.Error() + ", " + string(c.want) + ", " + effect.String()
					if x.Certainty != want || x.Outcome != outcome {
						t.Errorf("%s: %s, certainty %q; want %s, %q", what, x.Outcome, x.Certainty, outcome, want)
					}
					text := x.Result.Text()
					if unknown {
						text = x.Pending[0].Why
					}
					if strings.Contains(text, mayHave) != (want == delivery.Unknown) {
						t.Errorf("%s: the model reads %q", what, text)
					}
					if len(x.Pending) > 0 != unknown {
						t.Errorf("%s: %d questions", what, len(x.Pending))
					}
					b, err := json.Marshal(x)
					if err != nil || strings.Contains(string(b), `"certainty":"`+string(want)+`"`) != (want != "") {
						t.Errorf("%s: the execution is stored as %s, %v", what, b, err)
					}
				})
			}
		}
	}
}

// The words of a certainty surround what the transport says.
func TestCertaintyTexts(t *testing.T) {
	for c, want := range map[delivery.Certainty]string{
		delivery.NotSent: "Not sent: no connection",
		delivery.Refused: "Refused before any work: no connection",
		delivery.Unknown: "no connection. What the call does may have happened.",
	} {
		tool := pawl.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) {
			return "", delivery.NewError(c, "no connection", nil)
		})
		x := pawl.Toolsets{tool}.Execute(t.Context(), llm.ToolCall{ID: "1", Name: "pay"})
		if x.Result.Text() != want || !x.Result.IsError || x.Error != "no connection" {
			t.Errorf("%s: %q, error %q; want %q", c, x.Result.Text(), x.Error, want)
		}
	}
}

// A call that can be retried is, with any certainty, if its effect allows it.
func TestCertaintyRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for effect, want := range map[pawl.Effect]int{pawl.EffectIdempotent: 3, pawl.EffectWrite: 1} {
			tool := &pawl.Tool{Name: "pay", Effect: effect, Input: json.RawMessage(`{"type":"object"}`),
				Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) {
					return llm.ToolResult{}, delivery.NewError(delivery.Unknown, "lost", pawl.RetryableError(errors.New("lost")))
				}}
			if x := (pawl.Toolsets{tool}).Execute(t.Context(), llm.ToolCall{ID: "1", Name: "pay"}); x.Attempts != want {
				t.Errorf("%s: started %d times, want %d", effect, x.Attempts, want)
			}
		}
	})
}
