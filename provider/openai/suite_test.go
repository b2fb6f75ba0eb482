package openai_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Both APIs pass the suite that every adapter must pass, over HTTP.
func TestSuite(t *testing.T) {
	for name, open := range map[string]func(string, *openai.Options) *openai.Model{
		pawltest.Responses: openai.New,
		pawltest.Chat:      openai.NewChat,
	} {
		t.Run(name, func(t *testing.T) {
			pawltest.TestAdapter(t, func(t *testing.T, url string) llm.Model {
				tr := &http.Transport{}
				t.Cleanup(tr.CloseIdleConnections)
				return open("another-model", &openai.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: tr})
			})
		})
	}
}
