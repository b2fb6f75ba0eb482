package policy

// guard_checks.go: the ready-made checks of a Guard: by a model, and by a moderation endpoint.

import (
	"bytes"
	"context"
	_ "embed" // the page
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// modelCheckPage is the instruction of a model that checks, with %s for the rules.
//
//go:embed guard_check.md
var modelCheckPage string

const modelCheckSchema = `{"type":"object","properties":{` +
	`"action":{"type":"string","enum":["allow","replace","stop"]},"text":{"type":"string"}},` +
	`"required":["action","text"],"additionalProperties":false}`

// ModelCheck returns a check by a model, which gets the rules and one text at a time. An answer
// that is no ruling is an error of the check. A model can be deceived by the text that it checks.
func ModelCheck(m llm.Model, rules string) func(context.Context, Guarded) (Ruling, error) {
	page := fmt.Sprintf(strings.TrimSpace(modelCheckPage), strings.TrimSpace(rules))
	return func(ctx context.Context, what Guarded) (r Ruling, err error) {
		text, err := json.Marshal(what)
		if err != nil {
			return r, err
		}
		resp, err := llm.Complete(ctx, m, &llm.Request{
			Output:   json.RawMessage(modelCheckSchema),
			Messages: []llm.Message{llm.System(page), llm.User(string(text))},
		})
		r.Usage = resp.Usage
		r.Requests = resp.Requests
		if err != nil {
			return r, err
		}
		r.Requests++ // the answered request

		// A ruling that was cut is none.
		if resp.Finish != llm.FinishReasonStop {
			return r, fmt.Errorf("the reply of its model ended with %s", resp.Finish)
		}
		r.Action, r.Text, err = parseRuling(resp.Message.Text())
		return r, err
	}
}

// parseRuling reads the answer of a model, also in a fence.
func parseRuling(answer string) (GuardAction, string, error) {
	answer = strings.TrimSpace(answer)
	answer = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(answer, "```json"), "```"), "```")
	d := json.NewDecoder(bytes.NewReader([]byte(answer)))
	d.DisallowUnknownFields()

	var said struct {
		Action GuardAction `json:"action"`
		Text   string      `json:"text"`
	}
	if err := d.Decode(&said); err != nil || d.More() {
		return "", "", errors.New("the reply of its model is no ruling")
	}
	return said.Action, said.Text, nil
}

// FlagCheck returns a check by a moderation endpoint, such as openai.Moderator.Flagged. A text that
// has flags is stopped, and the flags are the reason.
func FlagCheck(flagged func(ctx context.Context, text string) ([]string, error)) func(context.Context,
	Guarded) (Ruling, error) {
	return func(ctx context.Context, what Guarded) (Ruling, error) {
		flags, err := flagged(ctx, what.Text)
		switch {
		case err != nil:
			return Ruling{}, err
		case len(flags) > 0:
			return Ruling{Action: GuardStop, Text: "it is flagged as " + strings.Join(flags, ", ")}, nil
		}
		return Ruling{Action: GuardAllow}, nil
	}
}
