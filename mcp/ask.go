package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Question is a server's request for input from a person (elicitation). A user interface must show
// that the server asks, and not pawl: the answer goes to the server and never approves a call of
// pawl.
type Question struct {
	Server  string // name of the server
	Call    string // tool that is executing, by the model's name for it; empty means unknown
	Message string // the server's text, without invisible characters
	// Schema is the schema of the answer: an object whose fields are texts, numbers, booleans or
	// lists of words. Nil means yes or no.
	Schema json.RawMessage
	// URL is a page that the person should open (https). The answer is then yes or no without
	// content.
	URL string
}

// Answer is a person's answer to a Question.
type Answer struct {
	Accept  bool           // false means no
	Content map[string]any // matches Question.Schema
}

// maxAsks is the maximum number of questions during one call.
const maxAsks = 5

var secretField = regexp.MustCompile(`(?i)(^|[_\W])(pass(word|phrase|wd|code)?|secret|token|api[_ -]?key|` +
	`private[_ -]?key|credential|pin|cvv|ssn|otp)s?([_\W]|$)`)

// elicit passes a question of the server to a person.
func (c *Client) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	no := func(why string) (*sdk.ElicitResult, error) {
		c.notice(Refused, "", "a question: "+why)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	w := c.atWork(ctx)
	busy, asks := c.countAsk(w)
	q := Question{
		Server:  c.server.Name,
		Message: clip(clean(r.Params.Message), 2000),
		URL:     r.Params.URL,
		Schema:  cleanJSON(asJSON(r.Params.RequestedSchema)),
	}

	switch {
	case !busy:
		return no("it belongs to no call in progress")
	case asks > maxAsks:
		return no(fmt.Sprintf("more than %d during one call", maxAsks))
	case len(q.Schema) > 16<<10:
		return no("its form is too long")
	case q.URL != "" && !opensSafely(q.URL):
		return no("the page that it wants opened has no https address: " + clip(show(q.URL), 200))
	}
	for _, name := range fields(q.Schema) {
		if secretField.MatchString(name) {
			return no("it asks for a secret (" + clip(show(name), 60) + ") in a form")
		}
	}

	// A question of a call ends with the call.
	if w != nil {
		q.Call = w.name
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(w.ctx, stop)()
	}

	a, err := c.opts.Ask(ctx, q)
	switch {
	case ctx.Err() != nil:
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		return no("it could not be asked: " + err.Error())
	case !a.Accept:
		return &sdk.ElicitResult{Action: "decline"}, nil
	case q.URL != "":
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	return &sdk.ElicitResult{Action: "accept", Content: a.Content}, nil
}

// countAsk counts a question of the call w, or of the server if w is nil. It returns whether a call
// is in progress, and the count.
func (c *Client) countAsk(w *atWork) (busy bool, asks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := &c.asked
	if w != nil {
		count = &w.asks
	}
	*count++
	return len(c.calls) > 0, *count
}

// opensSafely reports whether a person may open the address: an https address without a user name,
// which could look like another host, and without invisible characters.
func opensSafely(address string) bool {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return false
	case u.Scheme != "https" || u.Host == "":
		return false
	case u.User != nil:
		return false
	}
	return strings.IndexFunc(address, unseen) < 0
}

// fields returns the names and titles of the fields of a form.
func fields(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]struct {
			Title  string `json:"title"`
			Format string `json:"format"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	var out []string
	for name, p := range s.Properties {
		out = append(out, name, p.Title, p.Format)
	}
	return out
}
