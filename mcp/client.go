package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
)

// Options are what a Client has beside its Server. The zero value is ready: nothing is asked, nothing is pinned, and the model is not lent.
type Options struct {
	Ask    func(ctx context.Context, q Question) (Answer, error) // asks a person what the server wants to know; nil: every question is declined
	Sample *Sampling                                             // lends the server a model; nil: not
	Lock   *Lock                                                 // what was accepted; nil: nothing is pinned
	Beside []string                                              // names of the tools that stand beside this server's: what it calls the same, or speaks of, is not let in
	Notice func(Notice)                                          // is told what became of what the server said; may be called concurrently; nil: nobody
	Login  func(ctx context.Context, url string) (string, error) // shows a person where to log in, and returns the address that it led back to; nil: nobody can
	Getenv func(name string) string                              // nil: os.Getenv
}

// Notice tells of something that a server said and that was not simply taken.
type Notice struct {
	Server  string  `json:"server"`
	Tool    string  `json:"tool,omitempty"` // as the server calls it
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
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

// Client is an MCP server as a Toolset. It is started, or connected to, when its tools are asked for first, and again when it was lost. It may be used
// concurrently. Close it.
type Client struct {
	server Server
	opts   Options
	sdk    *sdk.Client
	web    *web
	notice func(Verdict, string, string)

	turn    chan struct{} // holds a token: one goroutine at a time starts, lists and closes
	live    *session
	closing sync.WaitGroup // connections that were dropped
	closed  bool
	failed  error // why the last start failed, and when it may be tried again
	until   time.Time
	pause   time.Duration

	mu      sync.Mutex
	tools   map[string]*pawl.Tool // made before, by digest and name: a tool keeps its compiled schema
	more    map[string]*pawl.Tool // for resources and prompts
	calls   map[string]*atWork    // by progress token
	token   int
	told    map[string]bool // notices about tools, told once
	missing string          // why an optional server was not reached last
	asked   int
	sample  sampled
}

// atWork is a call that the server has been given.
type atWork struct {
	ctx   context.Context
	token string
	inv   *pawl.Invocation
	name  string // the tool, as a model calls it
	asks  int
	words atomic.Int64  // of progress that were told
	told  chan struct{} // has a token after each
}

// session is one connection, or one life of a process.
type session struct {
	conn   *sdk.ClientSession
	proc   *process
	mender *mender
	cancel context.CancelFunc
	use    sync.WaitGroup // calls that are at work
	listed []Listed
	fresh  bool          // listed is what the server says now
	gone   chan struct{} // closed when the connection is lost

	cancels cancels // over HTTP
}

// New checks s and returns a Client for it, without starting it. o may be nil.
func New(s Server, o *Options) (*Client, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	c := &Client{server: s, turn: make(chan struct{}, 1), tools: map[string]*pawl.Tool{}, more: map[string]*pawl.Tool{}, calls: map[string]*atWork{}, told: map[string]bool{}}
	if o != nil {
		c.opts = *o
	}
	if s.URL != "" {
		var err error
		if c.web, err = s.web(&c.opts); err != nil {
			return nil, err
		}
	}
	c.notice = func(v Verdict, tool, text string) {
		if c.opts.Notice != nil {
			c.opts.Notice(Notice{Server: s.Name, Tool: tool, Verdict: v, Text: text})
		}
	}
	options := &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ProgressNotificationHandler: c.progress,
		ToolListChangedHandler:      func(_ context.Context, r *sdk.ToolListChangedRequest) { c.stale(r.Session) },
	}
	if c.opts.Ask != nil {
		options.ElicitationHandler = c.elicit
		options.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	}
	if c.opts.Sample != nil && c.opts.Sample.Model != nil {
		//lint:ignore SA1019 servers of older protocols ask for it
		options.CreateMessageHandler = c.createMessage
	}
	c.sdk = sdk.NewClient(&sdk.Implementation{Name: "pawl", Version: "0"}, options)
	c.sdk.AddSendingMiddleware(c.discovery)
	return c, nil
}

var _ pawl.Toolset = (*Client)(nil)

// Tools returns the tools that are offered. The list is asked for again when the server has said that it changed, and when it was started anew.
func (c *Client) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	live, err := c.current(ctx)
	if err != nil {
		if c.server.Optional && ctx.Err() == nil {
			if c.missed(err.Error()) {
				c.notice(Ignored, "", "it cannot be reached and is left out: "+err.Error())
			}
			return nil, nil
		}
		return nil, err
	}
	c.missed("")
	var tools []*pawl.Tool
	for _, l := range live.listed {
		if l.Tool != nil {
			tools = append(tools, l.Tool)
		}
		if l.Verdict != Accepted {
			c.tellOnce(l)
		}
	}
	return append(tools, c.extras(live)...), nil
}

// missed notes why the server cannot be reached ("": it can), and reports whether that is news.
func (c *Client) missed(why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.missing != why
	c.missing = why
	return news
}

// tellOnce tells of a tool that was not simply taken.
func (c *Client) tellOnce(l Listed) {
	c.mu.Lock()
	key := string(l.Verdict) + "\x00" + l.Digest()
	told := c.told[key]
	c.told[key] = true
	c.mu.Unlock()
	if !told {
		c.notice(l.Verdict, l.Name, l.Why)
	}
}

// List returns every tool of the server with what became of it, in the server's order.
func (c *Client) List(ctx context.Context) ([]Listed, error) {
	s, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	return s.listed, nil
}

// Locked returns the tools that the lock has of the server, as they would be offered, in the order of their names; the server is not asked. ok is false where
// the lock has nothing of it.
func (c *Client) Locked() (tools []*pawl.Tool, ok bool) {
	if !c.opts.Lock.Has(c.server) {
		return nil, false
	}
	p := c.opts.Lock.Servers[c.server.Name]
	for _, l := range c.server.inspect(p.Tools, &c.opts, c.runner) {
		if l.Tool != nil {
			tools = append(tools, l.Tool)
		}
	}
	return tools, true
}

// view is what a connection was at one time.
type view struct {
	listed []Listed
	caps   *sdk.ServerCapabilities
}

// current is the connection with its list up to date.
func (c *Client) current(ctx context.Context) (*view, error) {
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	defer c.release()
	s, err := c.connect(ctx)
	if err == nil {
		err = c.list(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("mcp server %s: %w", c.server.Name, err)
	}
	return &view{s.listed, s.conn.InitializeResult().Capabilities}, nil
}

func (c *Client) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) release() { <-c.turn }

// Close ends the connection, and the program with all it has started. The Client cannot be used afterwards.
func (c *Client) Close() error {
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
	if s.proc != nil { // first: a server that does not answer would hold what follows
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.conn.Close()
		}()
		s.proc.Close()
		<-done
	} else {
		s.cancels.wait(s.gone)
		s.conn.Close()
	}
	s.cancel()
	<-s.gone
}

// stale notes that a list is not what the server says now.
func (c *Client) stale(conn *sdk.ClientSession) {
	go func() { // the handler must not wait for a list that is on its way
		c.turn <- struct{}{}
		defer c.release()
		if c.live != nil && c.live.conn == conn {
			c.live.fresh = false
		}
	}()
}

// connect returns the connection, and makes one where there is none. The caller has the turn.
func (c *Client) connect(ctx context.Context) (*session, error) {
	if c.closed {
		return nil, errors.New("it is closed")
	}
	if s := c.live; s != nil {
		select {
		case <-s.gone:
			c.live = nil
			s.close()
			c.notice(Ended, "", "the connection was lost; it is made again")
		default:
			return s, nil
		}
	}
	if c.failed != nil && time.Now().Before(c.until) {
		return nil, c.failed
	}
	s, err := c.dial(ctx)
	if err != nil {
		if ctx.Err() == nil { // whoever asks next waits a little, so that a server that cannot start is not started all the time
			c.pause = min(max(2*c.pause, 250*time.Millisecond), 30*time.Second)
			c.failed, c.until = err, time.Now().Add(c.pause)
		}
		return nil, err
	}
	c.failed, c.pause, c.live = nil, 0, s
	return s, nil
}

// startTime bounds starting and listing.
func (s *Server) startTime() time.Duration {
	if s.StartSeconds == 0 {
		return 30 * time.Second
	}
	return time.Duration(s.StartSeconds) * time.Second
}

// callTime bounds a call, in the form of pawl.Tool.
func (s *Server) callTime() time.Duration { return time.Duration(s.CallSeconds) * time.Second }

// dial starts or reaches the server, and agrees with it on a protocol.
func (c *Client) dial(ctx context.Context) (*session, error) {
	s := &session{mender: new(mender), gone: make(chan struct{})}
	var t sdk.Transport
	if c.web != nil {
		t = c.web.transport(s.mender, &s.cancels)
	} else {
		proc, out, err := c.server.start(c.opts.getenv)
		if err != nil {
			return nil, err
		}
		s.proc, t = proc, proc.transport(out, s.mender)
	}
	// The connection outlives the call that made it, so it has a context of its own; while it is made, that of the call ends it too.
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	wait, done := context.WithTimeoutCause(ctx, c.server.startTime(), errSlow)
	defer done()
	stop := context.AfterFunc(wait, cancel)
	conn, err := c.sdk.Connect(life, t, nil)
	if !stop() || err != nil {
		cancel()
		if err == nil {
			conn.Close()
		}
		cause := context.Cause(wait)
		if s.proc != nil {
			words := s.proc.waitWords(wait)
			s.proc.Close()
			if words != "" {
				words = "; its last words: " + clip(lastLines(words, 3), 600)
			}
			if errors.Is(cause, errSlow) {
				return nil, fmt.Errorf("it did not answer within %v%s", c.server.startTime(), words)
			}
			if cause == nil {
				return nil, fmt.Errorf("it did not start: %s%s", clip(clean(err.Error()), 300), words)
			}
		}
		switch {
		case errors.Is(cause, errSlow):
			return nil, fmt.Errorf("it did not answer within %v", c.server.startTime())
		case cause != nil:
			return nil, cause
		}
		return nil, errors.New(clip(clean(err.Error()), 600))
	}
	s.conn = conn
	go func() {
		_ = conn.Wait()
		close(s.gone)
	}()
	return s, nil
}

// discovery bounds the question that opens the newest protocol: a server that does not know it, and says nothing instead of that, is then asked in the older way, in
// the time that is left.
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

func lastLines(s string, n int) string {
	l := strings.Split(s, "\n")
	return strings.Join(l[max(0, len(l)-n):], "\n")
}

// list brings the tools of s up to date. The caller has the turn.
func (c *Client) list(ctx context.Context, s *session) error {
	if s.fresh {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.startTime(), errSlow)
	defer cancel()
	var defs []Definition
	var bad []Listed
	if caps := s.conn.InitializeResult().Capabilities; caps != nil && caps.Tools != nil {
		s.mender.take()
		params := &sdk.ListToolsParams{}
		seen := map[string]bool{}
		for {
			res, err := s.conn.ListTools(ctx, params)
			if err != nil {
				return c.listError(ctx, err)
			}
			for _, t := range res.Tools {
				defs = append(defs, s.definition(t))
			}
			if res.NextCursor == "" || seen[res.NextCursor] || len(defs) >= maxTools {
				if res.NextCursor != "" {
					c.notice(Cut, "", fmt.Sprintf("its list of tools does not end; %d are taken", min(len(defs), maxTools)))
				}
				break
			}
			seen[res.NextCursor] = true
			params = &sdk.ListToolsParams{Cursor: res.NextCursor}
		}
		bad = s.mender.take()
	}
	s.listed = append(c.server.inspect(defs, &c.opts, c.runner), bad...)
	c.keep(s.listed)
	s.fresh = true
	return nil
}

func (c *Client) listError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return fmt.Errorf("it did not list its tools within %v", c.server.startTime())
	}
	return fmt.Errorf("its list of tools: %s", clip(clean(err.Error()), 300))
}

// keep puts tools that were made before in the place of equal ones, so that schemas are compiled once.
func (c *Client) keep(listed []Listed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]*pawl.Tool{}
	for i := range listed {
		l := &listed[i]
		if l.Tool == nil {
			continue
		}
		key := l.As + "\x00" + l.Digest()
		if was := c.tools[key]; was != nil {
			l.Tool = was
		}
		now[key] = l.Tool
	}
	c.tools = now
}

// definition is what the server said of t, from the bytes that it sent.
func (s *session) definition(t *sdk.Tool) Definition {
	if raw := s.mender.tool(t.Name); raw != nil {
		if d, err := readDefinition(raw); err == nil {
			return d
		}
	}
	return Definition{Name: t.Name, Title: t.Title, Description: t.Description, Input: asJSON(t.InputSchema), Output: asJSON(t.OutputSchema), Annotations: asJSON(t.Annotations)}
}

// Names returns the names of tools, for Options.Beside.
func Names(tools []*pawl.Tool) []string {
	names := map[string]bool{}
	for _, t := range tools {
		names[t.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
