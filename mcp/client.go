package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/guard"
	"github.com/pawl-go/pawl/mcp/internal/transport"
)

// Options are the options of New. Nil and the zero value decline every question, pin nothing, and
// give the server no access to the model.
type Options struct {
	// Ask passes a question of the server to a person. Nil means that every question is declined.
	Ask    func(ctx context.Context, q Question) (Answer, error)
	Sample *Sampling // gives the server access to a model; nil means no access
	Lock   *Lock     // the accepted definitions; nil means that nothing is pinned
	// OtherTools lists the names of the other tools of the agent. A tool of this server that has
	// one of these names, or mentions one, is not offered.
	OtherTools []string
	// OtherServers lists the other servers of the agent. A tool of this server whose name could be
	// the name of one of theirs gets part of a hash in its name.
	OtherServers []Server
	// Notice receives the verdict on anything of the server that was not simply accepted. It may be
	// called concurrently. Nil means that notices are dropped.
	Notice func(Notice)
	// Login shows a person the address of a login page and returns the address to which the login
	// redirected. Nil means that no login is possible.
	Login func(ctx context.Context, url string) (string, error)
	// IDToken returns the ID token of the user for OAuth.Identity, which issued it. It is called
	// when a token of the server is needed. With an error no token is requested. Nil means that a
	// server with an Identity is an error.
	IDToken func(ctx context.Context) (string, error)
	// Header returns headers for each HTTP request to the server, in addition to Server.Headers:
	// the credentials of the caller, whom it finds in ctx. ctx is the context of the call, if a
	// call causes the request, and has no caller for requests that begin or keep a session. With an
	// error the request fails and nothing is sent. A server that ties a session to one user needs a
	// Client for each user. Nil means none.
	Header func(ctx context.Context) (http.Header, error)
	Getenv func(name string) string // nil means os.Getenv
}

// Notice reports something that a server sent and that was not simply accepted.
type Notice struct {
	Server  string  `json:"server"`         // the name of the server
	Tool    string  `json:"tool,omitempty"` // the server's name for the tool
	Verdict Verdict `json:"verdict"`        // what became of it
	Text    string  `json:"text"`           // what was sent, in a sentence
}

// String returns "server: tool: verdict: text".
func (n Notice) String() string {
	text := "mcp " + n.Server + ": "
	if n.Tool != "" {
		text += show(n.Tool) + ": "
	}
	return text + string(n.Verdict) + ": " + n.Text
}

func (o *Options) getenv(name string) string {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.Getenv(name)
}

// Client is an MCP server as a Toolset. It starts the server, or connects to it, when its tools are
// first requested, and again after the connection was lost. It is safe for concurrent use. Close it
// after use.
//
// A server that cannot be reached when its tools are first requested is an error, or has no tools
// if it is optional. A server that was up before has no tools while it is away: a run begins
// without them, Notice says so once, and the connection is tried again with growing pauses.
type Client struct {
	server Server
	opts   Options
	sdk    *sdk.Client
	web    *web
	notice func(Verdict, string, string)

	turn    chan struct{} // holds a token: one goroutine at a time starts, lists and closes
	live    *session
	changed atomic.Pointer[sdk.ClientSession] // the connection whose change waits for the turn
	closing sync.WaitGroup                    // dropped connections that are still closing
	closed  bool
	failed  error // error of the last start, and when it may be repeated
	until   time.Time
	pause   time.Duration
	ended   chan struct{} // closed by the first Close

	mu       sync.Mutex
	wasUp    bool     // its tools were listed at least once
	attempt  *attempt // to reach a server that is away, in the background; nil means none
	isClosed bool     // no attempt begins
	// tools created before, by digest and name: a tool keeps its compiled schema
	tools    map[string]*pawl.Tool
	more     map[string]*pawl.Tool // for resources and prompts
	calls    map[string]*atWork    // calls by progress token
	token    int
	reported map[string]bool // notices about tools that were already sent
	missing  string          // why the server could not be reached the last time
	asked    int
	sampled  int // requests of the server for the model
}

// atWork is a call that was sent to the server.
type atWork struct {
	ctx      context.Context
	token    string
	inv      *pawl.Invocation
	name     string // the model's name for the tool
	asks     int
	words    atomic.Int64  // progress notifications emitted so far
	reported chan struct{} // receives a token after each of them
}

// session is one connection, or one lifetime of a process.
type session struct {
	conn     *sdk.ClientSession
	proc     *process
	repairer *repairer
	cancel   context.CancelFunc
	use      sync.WaitGroup // calls in progress
	listed   []Listed
	fresh    bool          // listed is up to date
	gone     chan struct{} // closed when the connection is lost

	// For HTTP.
	cancels transport.Cancels
	denied  atomic.Bool // whether the server refused to begin the session
}

// New checks s and returns a Client for it without starting it. o may be nil.
func New(s Server, o *Options) (*Client, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	c := &Client{
		server:   s,
		opts:     *cmp.Or(o, new(Options)),
		turn:     make(chan struct{}, 1),
		tools:    map[string]*pawl.Tool{},
		more:     map[string]*pawl.Tool{},
		calls:    map[string]*atWork{},
		reported: map[string]bool{},
		ended:    make(chan struct{}),
	}
	c.notice = func(v Verdict, tool, text string) {
		if c.opts.Notice != nil {
			c.opts.Notice(Notice{Server: s.Name, Tool: tool, Verdict: v, Text: text})
		}
	}
	if s.URL != "" {
		var err error
		c.web, err = s.web(&c.opts)
		if err != nil {
			return nil, err
		}
	}

	c.sdk = sdk.NewClient(&sdk.Implementation{Name: "pawl", Version: "0"}, c.sdkOptions())
	c.sdk.AddSendingMiddleware(c.discovery)
	return c, nil
}

// sdkOptions returns the options of the SDK's client. A server may ask a person, or use the model,
// only if the program allows it: a capability that is not announced is not requested.
func (c *Client) sdkOptions() *sdk.ClientOptions {
	options := &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ProgressNotificationHandler: c.progress,
		ToolListChangedHandler:      func(_ context.Context, r *sdk.ToolListChangedRequest) { c.stale(r.Session) },
	}
	if c.opts.Ask != nil {
		options.ElicitationHandler = c.elicit
		options.Capabilities.Elicitation = &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{},
			URL:  &sdk.URLElicitationCapabilities{},
		}
	}
	if c.opts.Sample != nil && c.opts.Sample.Model != nil {
		//lint:ignore SA1019 servers of older protocols ask for it
		options.CreateMessageHandler = c.createMessage
	}
	return options
}

var _ pawl.Toolset = (*Client)(nil)

// Tools returns the tools that are offered. The list is requested again after the server has
// announced a change, and after it was restarted.
func (c *Client) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	live, err := c.reach(ctx)
	if err != nil {
		return nil, c.without(ctx, err)
	}
	if c.missed("") {
		c.notice(Accepted, "", "it can be reached again")
	}

	var tools []*pawl.Tool
	for _, l := range live.listed {
		if l.Tool != nil {
			tools = append(tools, l.Tool)
		}
		c.reportOnce(l)
	}
	return append(tools, c.extras(live)...), nil
}

// reportOnce sends a notice about a tool that was not simply accepted, once.
func (c *Client) reportOnce(l Listed) {
	c.mu.Lock()
	key := string(l.Verdict) + "\x00" + l.Digest()
	reported := c.reported[key]
	c.reported[key] = true
	c.mu.Unlock()
	if reported {
		return
	}
	if l.Verdict != Accepted {
		c.notice(l.Verdict, l.Name, l.Why)
	}
	for _, text := range l.Ignored {
		c.notice(Ignored, l.Name, text)
	}
}

// List returns every tool of the server with its verdict, in the server's order.
func (c *Client) List(ctx context.Context) ([]Listed, error) {
	s, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	return s.listed, nil
}

// Locked returns the tools that the lock contains for the server, as they would be offered, sorted
// by name. It does not contact the server. ok is false if the lock has no entry for the server.
func (c *Client) Locked() (tools []*pawl.Tool, ok bool) {
	if !c.opts.Lock.Has(c.server) {
		return nil, false
	}
	var pinned []Listed
	for _, d := range c.opts.Lock.Servers[c.server.Name].Tools {
		pinned = append(pinned, Listed{Definition: d})
	}
	for _, l := range c.server.inspect(pinned, &c.opts, c.runner) {
		if l.Tool != nil {
			tools = append(tools, l.Tool)
		}
	}
	return tools, true
}

// view is a snapshot of a connection.
type view struct {
	listed []Listed
	caps   *sdk.ServerCapabilities
}

// current returns the connection with an up-to-date list.
func (c *Client) current(ctx context.Context) (*view, error) {
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	defer c.release()

	s, err := c.up(ctx)
	if err != nil {
		return nil, fmt.Errorf("mcp server %s: %w", c.server.Name, err)
	}
	return &view{s.listed, s.conn.InitializeResult().Capabilities}, nil
}

// acquire waits for the turn, and release passes it on.
func (c *Client) acquire(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) release() { <-c.turn }

// Close ends the connection, and the program with all processes that it started. The Client cannot
// be used afterwards.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.isClosed {
		c.isClosed = true
		close(c.ended)
	}
	c.mu.Unlock()

	// An attempt to reach the server may have the turn. It ends with c.ended.
	c.turn <- struct{}{}
	defer c.release()
	c.closed = true
	if c.live != nil {
		c.live.close()
		c.live = nil
	}
	c.closing.Wait()
	if c.web != nil {
		c.web.guard.CloseIdleConnections()
	}
	return nil
}

func (s *session) close() {
	if s.proc != nil {
		// The process ends first: a server that does not respond would block the steps below.
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = guard.Call(func() { s.conn.Close() })
		}()
		s.proc.Close()
		<-done
	} else {
		s.cancels.Wait(s.gone)
		s.conn.Close()
	}
	s.cancel()
	<-s.gone
}

// stale marks the list of tools as out of date. A server may report changes without end: while one
// report waits, others of the connection have no effect.
func (c *Client) stale(conn *sdk.ClientSession) {
	if c.changed.Swap(conn) == conn {
		return
	}

	// The handler must not wait for a list that is being fetched.
	go func() {
		c.turn <- struct{}{}
		defer c.release()

		c.changed.CompareAndSwap(conn, nil)
		if c.live != nil && c.live.conn == conn {
			c.live.fresh = false
		}
	}()
}

// up returns the connection with its list, and creates them if needed. The caller holds the turn.
func (c *Client) up(ctx context.Context) (*session, error) {
	// After a failure, callers get its error for a while, so that a server that cannot start is not
	// started constantly.
	if c.failed != nil && time.Now().Before(c.until) {
		return nil, c.failed
	}

	s, err := c.connect(ctx)
	if err == nil {
		s, err = c.list(ctx, s)
	}
	switch {
	case err == nil:
		c.failed = nil
		c.pause = 0
		c.mu.Lock()
		c.wasUp = true
		c.mu.Unlock()
	case ctx.Err() == nil && !c.closed:
		c.pause = min(max(2*c.pause, 250*time.Millisecond), 30*time.Second)
		c.failed = err
		c.until = time.Now().Add(c.pause)
	}
	return s, err
}

// connect returns the connection and creates it if needed. The caller holds the turn.
func (c *Client) connect(ctx context.Context) (*session, error) {
	if c.closed {
		return nil, errors.New("it is closed")
	}
	if s := c.live; s != nil {
		if s.alive() {
			return s, nil
		}
		c.live = nil
		s.close()
		c.notice(Disconnected, "", "the connection was lost; it is opened again")
	}

	s, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.live = s
	return s, nil
}

// dial starts or reaches the server and negotiates a protocol version.
func (c *Client) dial(ctx context.Context) (*session, error) {
	s := &session{repairer: new(repairer), gone: make(chan struct{})}
	var t sdk.Transport
	if c.web != nil {
		t = c.web.transport(s)
	} else {
		proc, out, err := c.server.start(c.opts.getenv)
		if err != nil {
			return nil, err
		}
		s.proc = proc
		t = proc.transport(out, s.repairer)
	}

	// The connection outlives the call that made it, so it has its own context. While it is being
	// made, the context of the call ends it as well.
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	wait, done := context.WithTimeoutCause(ctx, c.server.startTime(), errSlow)
	defer done()
	stop := context.AfterFunc(wait, cancel)
	conn, err := c.sdk.Connect(life, t, nil)
	inTime := stop()
	if !inTime || err != nil {
		cancel()
		if err == nil {
			conn.Close()
		}
		err = c.startError(wait, s.proc, err)
		if s.denied.Load() {
			err = &fault{text: err.Error(), cause: errDenied}
		}
		return nil, err
	}

	s.conn = conn
	go func() {
		defer close(s.gone)
		_ = guard.Call(func() { _ = conn.Wait() })
	}()
	return s, nil
}

// startError returns why a server did not start, with its last words if it is a process, and ends
// the process. ctx is the context of the start, and err the error of the connection, or nil.
func (c *Client) startError(ctx context.Context, proc *process, err error) error {
	cause := context.Cause(ctx)
	words := ""
	if proc != nil {
		words = proc.waitWords(ctx)
		if words != "" {
			words = "; " + words
		}
		proc.Close()
	}

	switch {
	case errors.Is(cause, errSlow):
		return fmt.Errorf("it did not answer within %v%s", c.server.startTime(), words)
	case cause != nil:
		return cause
	case proc != nil:
		return fmt.Errorf("it did not start: %s%s", clip(clean(err.Error()), 300), words)
	}
	return &fault{text: clip(clean(err.Error()), 600), cause: err}
}

// discovery limits the first request of the newest protocol. A server that does not know the
// request and does not respond is then contacted with the older handshake in the remaining time.
func (c *Client) discovery(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, req)
		}

		ctx, cancel := context.WithTimeout(ctx, c.server.startTime()/2)
		defer cancel()
		return next(ctx, method, req)
	}
}

var errSlow = errors.New("it took too long to start")
