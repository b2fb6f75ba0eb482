package telemetry

// tree.go: the open spans of a run, by key, and their places in the trace.

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// tree holds the spans of an outermost run by their keys. It combines what the middleware sees
// during the work with what the events report later.
type tree struct {
	t    *Telemetry
	root *node
	key  llm.Key // key of the outermost run; empty before it started

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
	return &tree{t: t, root: root, nodes: map[llm.Key]*node{}, begun: map[llm.Key]*timing{},
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
	n := tr.t.startCall(trace.ContextWithSpan(context.Background(), tr.parent(key).span), key, c, start)
	tr.nodes[key] = n
	return n
}

// run returns the span of a nested run and creates it if needed. The caller holds mu.
func (tr *tree) run(key llm.Key) *node {
	n := tr.nodes[key]
	if n == nil {
		_, n = tr.t.startRun(trace.ContextWithSpan(context.Background(), tr.parent(key).span))
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
