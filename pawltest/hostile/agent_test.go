package hostile_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adapters opens pawl's adapters.
func adapters(api, base string, silence time.Duration) (llm.Model, error) {
	switch api {
	case pawltest.Chat:
		return openai.NewChat("hostile",
			&openai.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Responses:
		return openai.New("hostile",
			&openai.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Anthropic:
		return anthropic.New("hostile",
			&anthropic.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	case pawltest.Gemini:
		return gemini.New("hostile",
			&gemini.Options{BaseURL: base, Key: "none-needed", FirstByteTimeout: silence, SilenceTimeout: silence}), nil
	}
	return nil, fmt.Errorf("unknown API %q", api)
}

// pawl meets every behaviour on every wire.
func TestAgent(t *testing.T) {
	rows, err := pawlRows()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, s := range r.Scores {
			if len(s.Wrong) > 0 {
				t.Errorf("%s, %s, %s: %v", r.ID, s.API, s.Mode, s.Wrong)
			}
		}
	}
}
