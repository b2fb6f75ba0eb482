package anthropic_test

import (
	"net/http"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
)

func TestSuite(t *testing.T) {
	pawltest.TestAdapter(t, func(t *testing.T, url string) llm.Model {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		return anthropic.New("another-model", &anthropic.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: tr})
	})
}
