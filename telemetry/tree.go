package telemetry

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// tree is the spans of an outermost run, by their keys. What the middleware sees, where the work is done, and what the events tell, later, meet here.
type tree struct {
	t    *Telemetry
	root *node
	key  llm.Key // of the outermost run; "" before it began

	mu    sync.Mutex
	nodes map[llm.Key]*node   // runs and calls under way
	begun map[llm.Key]*timing // calls whose tool was begun, as the events tell
	asks  map[llm.Key]*asking // by run: its request under way, as the events tell
	mine  map[llm.Key]bool    // requests that the middleware makes the spans of
	fault map[llm.Key]string  // by run: error.type of the request that failed last
	again bool                // what is told was kept by an engine, so no request is sent that the middleware does not see
	over  bool
}

// node is the span of a run or a call.
type node struct {
	span       trace.Span
	name       string
	start, end time.Time // end: when the middleware was left; zero: it was not, or there is none
	last       time.Time // when the middleware was entered last
	repeats    int       // how often it was entered again
}

// timing is what the events tell of a call under way.
type timing struct {
	call  llm.ToolCall
	start time.Time // of the first attempt
	last  time.Time // of the one under way
}

// asking is what the events tell of a request under way.
type asking struct {
	key         llm.Key
	model       string
	start, last time.Time
	attempts    int
	span        trace.Span // nil: not begun, and not if the middleware sees the request
}

// place is where a context is: in the run or the call at key of a tree; "" is the outermost run.
type place struct {
	tree *tree
	key  llm.Key
	call *pawl.Invocation // that the context was in then; nil: none
}

type placeKey struct{}

// placeOf returns the tree that what has this key belongs to; nil: none, or ctx is in one of which it is no part, since a tool can begin
// a run by itself, whose keys begin anew.
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

// up is the key without its last segment; "" has none.
func up(key llm.Key) llm.Key {
	return key[:max(0, strings.LastIndexByte(string(key), '/'))]
}

// runOf is the run that the request with that key belongs to.
func runOf(request llm.Key) llm.Key { return up(up(request)) }

func newTree(t *Telemetry, root *node) *tree {
	return &tree{t: t, root: root, nodes: map[llm.Key]*node{}, begun: map[llm.Key]*timing{}, asks: map[llm.Key]*asking{}, mine: map[llm.Key]bool{},
		fault: map[llm.Key]string{}}
}

// parent is what has the span that what has this key stands below. The caller holds mu.
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

// call makes the span of a call. The caller holds mu.
func (tr *tree) call(key llm.Key, c llm.ToolCall, start time.Time) *node {
	n := tr.t.startCall(trace.ContextWithSpan(context.Background(), tr.parent(key).span), key, c, start)
	tr.nodes[key] = n
	return n
}

// run returns the span of a run inside of a call, made if it is not there. The caller holds mu.
func (tr *tree) run(key llm.Key) *node {
	n := tr.nodes[key]
	if n == nil {
		_, n = tr.t.startRun(trace.ContextWithSpan(context.Background(), tr.parent(key).span))
		n.span.SetAttributes(pawlKey.String(string(key)))
		tr.nodes[key] = n
	}
	return n
}

// startRun begins the span of a run, whose agent is not known yet.
func (t *Telemetry) startRun(ctx context.Context, links ...trace.Link) (context.Context, *node) {
	n := &node{start: time.Now()}
	ctx, n.span = t.tracer.Start(ctx, invokeAgent, trace.WithTimestamp(n.start), trace.WithLinks(links...), trace.WithAttributes(
		operationName.String(invokeAgent), providerName.String(t.o.Provider)))
	if id := RunID(ctx); id != "" {
		n.span.SetAttributes(conversationID.String(id))
	}
	return ctx, n
}

// startCall begins the span of a call.
func (t *Telemetry) startCall(ctx context.Context, key llm.Key, c llm.ToolCall, start time.Time) *node {
	_, span := t.tracer.Start(ctx, executeTool+" "+c.Name, trace.WithTimestamp(start), trace.WithAttributes(
		operationName.String(executeTool), toolName.String(c.Name), toolType.String("function"), toolCallID.String(c.ID), pawlKey.String(string(key))))
	return &node{span: span, name: c.Name, start: start}
}

// failedAttempt makes the span of an attempt that is made again, below that of its request or call.
func (t *Telemetry) failedAttempt(parent trace.Span, n int, start, end time.Time, fault, text string) {
	if end.Before(start) {
		start = end
	}
	_, span := t.tracer.Start(trace.ContextWithSpan(context.Background(), parent), attempt, trace.WithTimestamp(start), trace.WithAttributes(pawlAttempt.Int(n)))
	t.failed(span, fault, text)
	span.End(trace.WithTimestamp(end))
}

// endRun ends the span of a run.
func (t *Telemetry) endRun(n *node, res *pawl.Result, fault, text string) {
	end := time.Now()
	if res != nil {
		u := res.Spent.Usage
		n.span.SetAttributes(pawlStop.String(string(res.Stop)))
		n.span.SetAttributes(usageOf(&u)...)
	}
	t.failed(n.span, fault, text)
	n.span.End(trace.WithTimestamp(end))
	set := t.metricSet(invokeAgent, "", "")
	if n.name != "" {
		set = append(set, agentName.String(n.name))
	}
	t.measured(set, fault, end.Sub(n.start))
}

func usageOf(u *llm.Usage) (set []attribute.KeyValue) {
	for _, n := range [...]struct {
		key   attribute.Key
		count int
	}{{inputTokens, u.Input}, {outputTokens, u.Output}, {cacheReadTokens, u.CacheRead}, {cacheWriteTokens, u.CacheWrite}, {reasoningTokens, u.Reasoning}} {
		if n.count > 0 {
			set = append(set, n.key.Int(n.count))
		}
	}
	return set
}
