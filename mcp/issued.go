package mcp

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// issued are the tokens that were obtained for a server, which a server may repeat in its results.
// They are in no configuration, so that only the client can hide them.
type issued struct {
	mu     sync.Mutex
	tokens []string // the last ones
	hide   atomic.Pointer[redact.Redactor]
}

// mostIssued is the number of tokens that are remembered: a result may come after a renewal.
const mostIssued = 4

// add adds a token that is sent.
func (s *issued) add(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.tokens, token) {
		return
	}
	s.tokens = append(s.tokens[max(0, len(s.tokens)-mostIssued+1):], token)

	hide := new(redact.Redactor)
	_ = hide.Add(s.tokens...) // a token is long
	s.hide.Store(hide)
}

// hidden returns a result without tokens of the server.
func (c *Client) hidden(res llm.ToolResult) llm.ToolResult {
	if c.web == nil {
		return res
	}
	return c.web.issued.hide.Load().ToolResult(res)
}

// hiddenIn returns an error of the server without its tokens.
func (c *Client) hiddenIn(err error) error {
	if c.web == nil {
		return err
	}
	return c.web.issued.hide.Load().Error(err)
}
