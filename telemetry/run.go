package telemetry

// run.go: the span of a run, made from its events, and the open spans of a run, by key, with their
// places in the trace.

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/runtrace"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
)

// Runner returns a Runner that calls r and creates a span for each run, which the contexts of
// models and tools contain. It also creates the spans of everything that Middleware does not see.
// Result.Values of its outermost runs contains the traceparent: see LinkTo. If r is an
// OutputRunner, so is the result.
//
// Put it innermost, directly around the run, because it needs the original errors. It records no
// content itself.
func (t *Telemetry) Runner(r pawl.Runner) pawl.Runner {
	return observe.Wrap(r, func(r pawl.Runner) observe.RunnerFunc {
		return func(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
			return func(yield func(pawl.Event, error) bool) { t.follow(ctx, r, msgs, yield) }
		}
	})
}

// follow executes a run.
func (t *Telemetry) follow(ctx context.Context, r pawl.Runner, msgs []llm.Message, yield func(pawl.Event, error) bool) {
	ctx, root := t.startRun(ctx, linksOf(ctx)...)
	tr := newTree(t, root)
	var res *pawl.Result
	var failed error
	broken := true
	plain := false // an error after the end says the reason of the stop
	defer func() { tr.close(res, failed, broken) }()
	ctx = context.WithValue(ctx, placeKey{}, place{tree: tr, call: pawl.InvocationFrom(ctx)})
	// The journal stores the trace of this attempt, and the next attempt links to it.
	if at := root.span.SpanContext(); at.IsValid() {
		ctx = runtrace.With(ctx, traceparent(at))
	}
	for e, err := range r.Stream(ctx, msgs...) {
		if err != nil {
			if !plain {
				failed = err
			}
			// A copy: the caller may share the error and its Result.
			if stop, ok := err.(*pawl.StopError); ok {
				c := *stop
				c.Result = named(stop.Result, root.span.SpanContext())
				err = &c
			}
		} else {
			tr.observe(e)
			if e.Kind == pawl.EventRunEnded && e.Run == tr.key {
				res = e.Result
				plain = e.Error == ""
				e.Result = named(res, root.span.SpanContext())
			}
		}
		if !yield(e, err) {
			return
		}
	}
	broken = false
}

// named returns res with the position of its run in a trace.
func named(res *pawl.Result, at trace.SpanContext) *pawl.Result {
	if res == nil || !at.IsValid() {
		return res
	}
	c := *res
	c.Values = maps.Clone(res.Values)
	if c.Values == nil {
		c.Values = pawl.Values{}
	}
	c.Values[traceparentValue] = []byte(`"` + traceparent(at) + `"`)
	return &c
}

// observe processes an event.
func (tr *tree) observe(e pawl.Event) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch e.Kind {
	case pawl.EventRunStarted:
		tr.started(e)
	case pawl.EventRequestStarted:
		now := time.Now()
		tr.asks[e.Run] = &asking{key: e.Path, model: e.Model, start: now, last: now, attempts: 1}
	case pawl.EventResponseReceived:
		tr.replied(e.Run, e.Response)
	case pawl.EventCallStarted:
		// A repeated attempt of a call emits this event again.
		b := tr.begun[e.Path]
		now := time.Now()
		if b == nil {
			b = &timing{call: *e.Call, start: now}
			tr.begun[e.Path] = b
		}
		b.last = now
	case pawl.EventNotice:
		tr.noticed(e)
	case pawl.EventCallCompleted:
		tr.complete(e.Execution)
	case pawl.EventRunEnded:
		tr.ended(e)
	}
}

// started names a run after its agent.
func (tr *tree) started(e pawl.Event) {
	tr.telemetry.options.Redactor.AddTools(e.Offered...)
	n := tr.root
	if tr.key == "" {
		tr.key = e.Run
		tr.nodes[e.Run] = n
		n.span.SetAttributes(pawlKey.String(string(e.Run)))
	} else if e.Run != tr.key {
		n = tr.run(e.Run)
	}
	n.name = e.Agent
	n.span.SetName(invokeAgent + " " + e.Agent)
	n.span.SetAttributes(semconv.GenAIAgentName(e.Agent))
}

// replied creates the span of a request that the middleware did not see. resp is nil if there was
// no reply.
func (tr *tree) replied(run llm.Key, resp *llm.Response) {
	a := tr.asks[run]
	if a == nil {
		return
	}
	delete(tr.asks, run)
	// The middleware has its own span of this request, which saw more.
	if tr.mine[a.key] {
		delete(tr.mine, a.key)
		return
	}
	// A resumed run replays the replies of earlier attempts, which have spans already.
	if tr.again {
		return
	}

	var r reply
	var fault string
	span := tr.asked(a)
	if resp != nil {
		r = reply{model: resp.Model, id: resp.ID, finish: resp.Finish, usage: &resp.Usage}
		if tr.telemetry.options.Content {
			span.SetAttributes(tr.telemetry.content(nil, resp)...)
		}
	} else {
		fault = other
		tr.fault[run] = fault
	}
	tr.telemetry.endRequest(span, a.name(tr.telemetry), &r, a.start, time.Now(), fault, "")
}

// asked returns the span of a request that the middleware does not see.
func (tr *tree) asked(a *asking) trace.Span {
	if a.span == nil {
		_, a.span = tr.telemetry.startRequest(trace.ContextWithSpan(context.Background(), tr.parent(a.key).span), a.key,
			a.name(tr.telemetry), a.start)
	}
	return a.span
}

func (a *asking) name(t *Telemetry) string {
	if a.model != "" {
		return a.model
	}
	return t.options.Model
}

// noticed creates the span of a failed attempt.
func (tr *tree) noticed(e pawl.Event) {
	now := time.Now()
	switch {
	case e.Code == "attempt" && tr.key == "":
		tr.again = true
		tr.root.linkAttempt(e.Data)
	case e.Code != "retry":
	case e.Path != "":
		b := tr.begun[e.Path]
		if b == nil {
			return
		}
		n := tr.nodes[e.Path]
		if n == nil {
			n = tr.call(e.Path, b.call, b.start)
		}
		start := b.last
		end := now
		if !n.end.IsZero() && n.end.Before(now) { // a call that started early emits its events late
			start, end = n.start, n.end
		}
		n.repeats++
		tr.telemetry.failedAttempt(n.span, n.repeats, start, end, other, e.Text)
	default:
		if a := tr.asks[e.Run]; a != nil && !tr.mine[a.key] && !tr.again {
			tr.telemetry.failedAttempt(tr.asked(a), a.attempts, a.last, now, other, e.Text)
			a.attempts++
			a.last = now
		}
	}
}

// ended ends the spans of a nested run and its unfinished spans. The outermost run is ended by
// close, which knows the error.
func (tr *tree) ended(e pawl.Event) {
	// A run that ends during a request had no reply to it.
	tr.replied(e.Run, nil)
	if e.Run == tr.key {
		return
	}
	n := tr.nodes[e.Run]
	if n == nil {
		return
	}
	delete(tr.nodes, e.Run)
	fault := ""
	if e.Result != nil && e.Result.Stop.Class() == pawl.ClassFailed {
		fault = tr.fault[e.Run]
		if fault == "" {
			fault = other
		}
	}
	delete(tr.fault, e.Run)
	tr.telemetry.endRun(n, e.Result, fault, e.Error)
}

// close ends all open spans. res is the result of the run, or nil if it has none. broken means that
// the caller stopped ranging, or that it panicked.
func (tr *tree) close(res *pawl.Result, err error, broken bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	// A tool that the run has abandoned may make further calls. From now on their middleware ends
	// their spans itself.
	tr.over = true
	for run := range tr.asks {
		tr.replied(run, nil)
	}
	delete(tr.nodes, tr.key)
	for _, n := range tr.nodes {
		tr.telemetry.failed(n.span, faultCancelled, "")
		n.span.End()
	}
	fault := faultOf(err)
	if fault == "" && res == nil && broken {
		fault = faultCancelled
	}
	tr.telemetry.endRun(tr.root, res, fault, textOf(err))
}

// startRun begins the span of a run whose agent is not known yet.
func (t *Telemetry) startRun(ctx context.Context, links ...trace.Link) (context.Context, *node) {
	n := &node{start: time.Now()}
	ctx, n.span = t.tracer.Start(ctx, invokeAgent, trace.WithTimestamp(n.start), trace.WithLinks(links...),
		trace.WithAttributes(
			semconv.GenAIOperationNameKey.String(invokeAgent), semconv.GenAIProviderNameKey.String(t.options.Provider)))
	if id := RunID(ctx); id != "" {
		n.span.SetAttributes(semconv.GenAIConversationID(id))
	}
	return ctx, n
}

// endRun ends the span of a run.
func (t *Telemetry) endRun(n *node, res *pawl.Result, fault, text string) {
	end := time.Now()
	if res != nil {
		u := res.Spent.Usage
		n.span.SetAttributes(pawlStop.String(string(res.Stop)))
		n.span.SetAttributes(t.usageOf(&u)...)
	}
	t.failed(n.span, fault, text)
	n.span.End(trace.WithTimestamp(end))
	set := t.metricSet(invokeAgent, "", "")
	set = given(set, n.name != "", semconv.GenAIAgentName(n.name))
	measured(t.runs, set, fault, end.Sub(n.start))
}

func (t *Telemetry) usageOf(u *llm.Usage) (set []attribute.KeyValue) {
	set = given(set, u.Input > 0, semconv.GenAIUsageInputTokens(u.Input))
	set = given(set, u.Output > 0, semconv.GenAIUsageOutputTokens(u.Output))
	set = given(set, u.CacheRead > 0, semconv.GenAIUsageCacheReadInputTokens(u.CacheRead))
	set = given(set, u.CacheWrite > 0, t.options.Names.cacheWrite().Int(u.CacheWrite))
	return given(set, u.Reasoning > 0, semconv.GenAIUsageReasoningOutputTokens(u.Reasoning))
}

// tree holds the spans of an outermost run by their keys. It combines what the middleware sees
// during the work with what the events report later.
type tree struct {
	telemetry *Telemetry
	root      *node
	key       llm.Key // key of the outermost run; empty before it started

	mu    sync.Mutex
	nodes map[llm.Key]*node   // runs and calls in progress
	begun map[llm.Key]*timing // calls whose tool was started, according to the events
	asks  map[llm.Key]*asking // current request of each run, according to the events
	mine  map[llm.Key]bool    // requests for which the middleware creates the spans
	fault map[llm.Key]string  // error.type of the last failed request of each run
	// the events are a replay by an engine, so no request is sent that the middleware does not see
	again bool
	over  bool
}

// node is the span of a run or a call.
type node struct {
	span trace.Span
	name string
	// end: when the middleware returned; zero means not yet, or that there is none
	start, end time.Time
	last       time.Time // when the middleware was entered last
	repeats    int       // how often the middleware was entered again
}

// timing holds the times of a call in progress, according to the events.
type timing struct {
	call  llm.ToolCall
	start time.Time // start of the first attempt
	last  time.Time // start of the current attempt
}

// asking describes a request in progress, according to the events.
type asking struct {
	key         llm.Key
	model       string
	start, last time.Time
	attempts    int
	span        trace.Span // nil means not started, or that the middleware sees the request
}

// place is the position of a context: in the run or the call with key in a tree. An empty key means
// the outermost run.
type place struct {
	tree *tree
	key  llm.Key
	call *pawl.Invocation // invocation of the context at that time; nil means none
}

type placeKey struct{}

// placeOf returns the tree of the run or call with this key. It returns nil if there is none, or if
// ctx is in a tree of another run, because a tool can start a run itself whose keys begin anew.
func placeOf(ctx context.Context, key llm.Key) *tree {
	at, ok := ctx.Value(placeKey{}).(place)
	if !ok || !under(key, at.key) {
		return nil
	}
	return at.tree
}

func under(key, outer llm.Key) bool {
	return outer == "" || len(key) > len(outer) && key[len(outer)] == '/' && strings.HasPrefix(string(key), string(outer))
}

// up returns the key without its last segment. It returns "" for an empty key.
func up(key llm.Key) llm.Key {
	return key[:max(0, strings.LastIndexByte(string(key), '/'))]
}

// runOf returns the run of the request with that key.
func runOf(request llm.Key) llm.Key { return up(up(request)) }

func newTree(t *Telemetry, root *node) *tree {
	return &tree{telemetry: t, root: root, nodes: map[llm.Key]*node{}, begun: map[llm.Key]*timing{},
		asks: map[llm.Key]*asking{}, mine: map[llm.Key]bool{},
		fault: map[llm.Key]string{}}
}

// parent returns the node above the run or call with that key. The caller holds mu.
func (tr *tree) parent(key llm.Key) *node {
	for k := up(key); k != ""; k = up(k) {
		if n := tr.nodes[k]; n != nil {
			return n
		}
		if b := tr.begun[k]; b != nil {
			return tr.call(k, b.call, b.start)
		}
	}
	return tr.root
}

// call creates the span of a call. The caller holds mu.
func (tr *tree) call(key llm.Key, c llm.ToolCall, start time.Time) *node {
	n := tr.telemetry.startCall(trace.ContextWithSpan(context.Background(), tr.parent(key).span), key, c, start)
	tr.nodes[key] = n
	return n
}

// run returns the span of a nested run and creates it if needed. The caller holds mu.
func (tr *tree) run(key llm.Key) *node {
	n := tr.nodes[key]
	if n == nil {
		_, n = tr.telemetry.startRun(trace.ContextWithSpan(context.Background(), tr.parent(key).span))
		n.span.SetAttributes(pawlKey.String(string(key)))
		tr.nodes[key] = n
	}
	return n
}

// failedAttempt creates the span of an attempt that is retried, below the span of its request or
// call.
func (t *Telemetry) failedAttempt(parent trace.Span, n int, start, end time.Time, fault, text string) {
	if end.Before(start) {
		start = end
	}
	_, span := t.tracer.Start(trace.ContextWithSpan(context.Background(), parent), attempt,
		trace.WithTimestamp(start), trace.WithAttributes(pawlAttempt.Int(n)))
	t.failed(span, fault, text)
	span.End(trace.WithTimestamp(end))
}
