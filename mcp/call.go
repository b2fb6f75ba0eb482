package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/internal/guard"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// runner returns the function that executes the calls of a tool.
func (c *Client) runner(d Definition) pawl.ToolFunc {
	digest := d.Digest()
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var res *sdk.CallToolResult
		s, refusal, err := c.within(ctx, d.Name, digest, func(ctx context.Context, s *session) (err error) {
			res, err = c.callTool(ctx, s, d.Name, call)
			return err
		})
		switch {
		case refusal != "":
			c.notice(Refused, d.Name, refusal)
			return llm.ErrorResult("Not run: " + refusal), nil
		case err != nil:
			return c.failure(ctx, s, err)
		}
		out := c.hidden(c.result(ctx, &d, res))
		if u := foreign.UnfitIn(res.Meta); u != nil && out.IsError {
			unfit := &pawl.OutputError{Text: u.Answer, Faults: u.Faults}
			return llm.ToolResult{}, &delivery.Error{Result: out, Err: c.hiddenIn(unfit)}
		}
		return out, nil
	}
}

// callTool sends a call.
func (c *Client) callTool(ctx context.Context, s *session, name string,
	call llm.ToolCall) (*sdk.CallToolResult, error) {
	ctx, work := c.begin(ctx, call.Name)
	defer c.endCall(work)
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: name, Arguments: json.RawMessage(call.Args)}
	if len(call.Args) == 0 {
		params.Arguments = json.RawMessage("{}")
	}
	params.SetProgressToken(work.token)

	heard := s.repairer.watch(work.token)
	res, err := s.conn.CallTool(ctx, params)
	work.heard(ctx, heard())
	return res, err
}

// within calls do with a connection, and once more with a new one if the server no longer has the
// session: it has then not processed the request. A nil session means that do was not called. See
// ready for the refusal.
func (c *Client) within(ctx context.Context, name, digest string,
	do func(ctx context.Context, s *session) error) (*session, string, error) {
	for again := false; ; again = true {
		s, refusal, err := c.ready(ctx, name, digest)
		if err != nil || refusal != "" {
			return nil, refusal, err
		}

		err = c.send(ctx, s, do)
		s.use.Done()
		if again || certaintyOf(err) != expired || ctx.Err() != nil {
			return s, "", err
		}
		c.drop(s)
	}
}

// sendKey marks the contexts of the requests of a call. Requests that begin or list a session may
// belong to a call too, and have no effect.
type sendKey struct{}

// send calls do, after the engine of the run has stored the intent of the call: before the first
// byte to a program, and for HTTP when there is a connection (carrier.sendOnce).
func (c *Client) send(ctx context.Context, s *session, do func(ctx context.Context, s *session) error) error {
	if c.web == nil {
		if err := pawl.InvocationFrom(ctx).Sending(ctx); err != nil {
			return &wire.NotDone{Err: err, Own: true}
		}
	}
	return do(context.WithValue(ctx, sendKey{}, true), s)
}

// notMade returns the error of a call that was never sent to the server, or that the server refused
// before any work.
func notMade(ctx context.Context, server string, err error) error {
	text := fmt.Sprintf("the call was not made: the MCP server %s cannot be reached: %v", server, err)
	if !isDown(err) {
		text = fmt.Sprintf("the call to the MCP server %s was not made: %v", server, err)
	}
	if ctx.Err() != nil {
		return delivery.NewError(delivery.NotSent, text, context.Cause(ctx))
	}
	return delivery.NewError(delivery.NotSent, text, retryable(err, err))
}

// lostCall returns the error of a call that was sent and got no result.
func lostCall(text string, err error) error {
	return delivery.NewError(delivery.Unknown, text, err)
}

// ready returns the connection for a call, which stays in use until the caller calls Done.
// Otherwise it returns the reason why the tool must not be called: its current definition differs
// from the definition that the model got.
func (c *Client) ready(ctx context.Context, name, digest string) (*session, string, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, "", err
	}
	defer c.release()

	s, err := c.up(ctx)
	if err != nil {
		return nil, "", err
	}

	// A resource or a prompt has no definition that could have changed.
	if name == "" {
		s.use.Add(1)
		return s, "", nil
	}
	i := slices.IndexFunc(s.listed, func(l Listed) bool { return l.Name == name })
	switch {
	case i < 0:
		return nil, "the server " + c.server.Name + " no longer has this tool. Do without it.", nil
	case s.listed[i].Digest() != digest:
		return nil, "the server " + c.server.Name + " has changed this tool since it was offered. Do without it.", nil
	case s.listed[i].Tool == nil:
		return nil, "the tool is not offered any more. Do without it.", nil
	}
	s.use.Add(1)
	return s, "", nil
}

type tokenKey struct{}

// begin records that the server executes a call. It returns the call's progress token.
func (c *Client) begin(ctx context.Context, name string) (context.Context, *atWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		c.asked = 0
	}
	c.token++
	token := "pawl-" + strconv.Itoa(c.token)
	ctx = context.WithValue(ctx, tokenKey{}, token)
	w := &atWork{ctx: ctx, token: token, inv: pawl.InvocationFrom(ctx), name: name, reported: make(chan struct{}, 1)}
	c.calls[token] = w
	return ctx, w
}

func (c *Client) endCall(w *atWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, w.token)
}

// heard waits until n progress notifications have been emitted, so that none follows the result. It
// does not wait for lost ones.
func (w *atWork) heard(ctx context.Context, n int) {
	if w.inv == nil {
		return
	}
	over := time.NewTimer(time.Second)
	defer over.Stop()
	for int(w.words.Load()) < n {
		select {
		case <-w.reported:
		case <-ctx.Done():
			return
		case <-over.C:
			return
		}
	}
}

// atWork returns the call that ctx belongs to, or the only call in progress. Nil means that there
// is none, or that it is ambiguous.
func (c *Client) atWork(ctx context.Context) *atWork {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, _ := ctx.Value(tokenKey{}).(string)
	if w := c.calls[token]; w != nil {
		return w
	}
	if len(c.calls) == 1 {
		for _, w := range c.calls {
			return w
		}
	}
	return nil
}

// progress emits a progress notification as an event of the run.
func (c *Client) progress(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
	token, _ := r.Params.ProgressToken.(string)
	c.mu.Lock()
	w := c.calls[token]
	c.mu.Unlock()
	if w == nil || w.inv == nil {
		return
	}
	text := clip(clean(r.Params.Message), 500)
	if text == "" {
		text = strconv.FormatFloat(r.Params.Progress, 'g', 6, 64)
		if r.Params.Total > 0 {
			text += " of " + strconv.FormatFloat(r.Params.Total, 'g', 6, 64)
		}
	}
	data, _ := json.Marshal(struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
	}{r.Params.Progress, r.Params.Total})
	w.inv.Emit(text, data)
	w.words.Add(1)
	select {
	case w.reported <- struct{}{}:
	default:
	}
}

// failure returns the result of a call that ended without one. A nil s means that it was not sent.
func (c *Client) failure(ctx context.Context, s *session, err error) (llm.ToolResult, error) {
	if s == nil {
		return llm.ToolResult{}, notMade(ctx, c.server.Name, err)
	}
	if ctx.Err() != nil {
		s.cancels.Add(1)
		return llm.ToolResult{}, context.Cause(ctx)
	}

	var said *jsonrpc.Error
	text := clip(clean(err.Error()), 500)
	if errors.As(err, &said) {
		text = clip(clean(said.Message), 2000)
	}
	switch certaintyOf(err) {
	case answered:
		return llm.ErrorResult(fmt.Sprintf("The MCP server %s refused the call: %s (code %d)", c.server.Name, text, said.Code)), nil
	case notSent:
		if isDown(err) {
			c.drop(s) // the next run learns whether the server is away
		}
		return llm.ToolResult{}, notMade(ctx, c.server.Name, &fault{text: text, cause: err})
	case refused, expired:
		said := fmt.Sprintf("the call was not made: the MCP server %s refused it: %s", c.server.Name, text)
		return llm.ToolResult{}, delivery.NewError(delivery.Refused, said, retryable(errors.New(text), err))
	}
	if !lost(err) && s.alive() {
		text = fmt.Sprintf("The MCP server %s gave no result that can be read: %s", c.server.Name, text)
		return llm.ToolResult{}, lostCall(text, retryable(err, err))
	}
	c.drop(s)
	if words := s.proc.waitWords(ctx); words != "" {
		c.notice(Disconnected, "", words)
	}
	// The pipeline retries the call if its effect permits, and otherwise shows this text to the
	// model.
	text = fmt.Sprintf("the connection to the MCP server %s was lost during the call, which was not repeated. "+
		"Find out what happened before you call it again", c.server.Name)
	return llm.ToolResult{}, lostCall(text, pawl.RetryableError(err))
}

func (s *session) alive() bool {
	return !closed(s.gone) && (s.proc == nil || !closed(s.proc.ended))
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lost reports whether err means that the connection is closed.
func lost(err error) bool {
	var sent *url.Error
	var on net.Error
	if errors.As(err, &sent) || errors.As(err, &on) {
		return true
	}
	return slices.ContainsFunc(closedErrors, func(closed error) bool { return errors.Is(err, closed) })
}

// closedErrors are the errors of the SDK and of pipes for a connection that is closed.
var closedErrors = []error{
	sdk.ErrConnectionClosed,
	sdk.ErrSessionMissing,
	io.EOF,
	io.ErrUnexpectedEOF,
	io.ErrClosedPipe,
}

// drop closes an unusable connection, so that the next call makes another one.
func (c *Client) drop(s *session) {
	c.turn <- struct{}{}
	defer c.release()
	c.abandon(s)
}

// abandon is drop for a caller that holds the turn.
func (c *Client) abandon(s *session) {
	if c.live != s {
		return
	}
	c.live = nil
	if s.proc != nil {
		s.proc.Close() // ends all its other calls
	}
	// calls over HTTP that are in progress may still get their replies; the next call does not
	// wait for them
	c.closing.Go(func() {
		s.use.Wait()
		_ = guard.Call(s.close)
	})
}

// certainty says what is known about a request that has no result.
type certainty int

const (
	unknown  certainty = iota // it was sent, and may have been executed
	notSent                   // it was not sent
	refused                   // the server refused it before any work
	expired                   // the server no longer has the session, and did not process it
	answered                  // the server executed it, or says why not
)

// certaintyOf judges the error of a request.
func certaintyOf(err error) certainty {
	var said *jsonrpc.Error
	var undone *wire.NotDone
	switch {
	case errors.As(err, &undone):
		return notSent
	case errors.Is(err, sdk.ErrSessionMissing):
		return expired
	case lost(err), !errors.As(err, &said):
		return unknown
	}
	switch said.Code {
	case wire.CodeExpired:
		return expired
	case wire.CodeRefused, wire.CodeBusy:
		return refused
	case wire.CodeUnread, wire.CodeAway:
		return unknown
	}
	return answered
}

// errDenied is part of the error of a session that the server did not begin for this client.
var errDenied = errors.New("the server refused this client")

// isDown reports whether err says that the server is away or busy, and not that it refuses this
// client, or that this side refused the request.
func isDown(err error) bool {
	var undone *wire.NotDone
	var said *jsonrpc.Error
	switch {
	case errors.Is(err, errDenied):
		return false
	case errors.As(err, &undone):
		return !undone.Own
	case errors.As(err, &said):
		return said.Code == wire.CodeBusy || said.Code == wire.CodeAway || said.Code == wire.CodeExpired
	}
	return true
}

// retryable marks an error of a server that is down, so that the pipeline retries the call if its
// effect allows it.
func retryable(err, cause error) error {
	if isDown(cause) {
		return pawl.RetryableError(err)
	}
	return err
}

// fault is an error with a text for people.
type fault struct {
	text  string
	cause error
}

// Error returns the text.
func (f *fault) Error() string { return f.text }

// Unwrap returns the cause.
func (f *fault) Unwrap() error { return f.cause }
