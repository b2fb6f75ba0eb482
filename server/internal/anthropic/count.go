package anthropic

// count.go: an estimate of the tokens of a request.

import (
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/server/internal/turns"
)

// countTokens handles POST /v1/messages/count_tokens.
func (c *call) countTokens() error {
	var r messagesRequest
	if err := c.Read(&r); err != nil {
		return err
	}
	in, err := r.convert(c.limitOf)
	if err != nil {
		return err
	}
	in.Agent = strings.TrimSuffix(in.Agent, turns.SideName)
	n, err := c.Runs.Estimate(c.Context(), c.Caller(), in.Request)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, object{"input_tokens": n})
}
