package telemetry

// model.go: the span of a request to a model.

import (
	"cmp"
	"context"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// model creates a span for each request.
type model struct {
	telemetry *Telemetry
	inner     llm.Model
}

var _ llm.Model = (*model)(nil)

// Unwrap returns the wrapped model.
func (m *model) Unwrap() llm.Model { return m.inner }

// Stream calls the wrapped model with a context that contains the span.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		q, ctx := m.telemetry.ask(ctx, req)
		defer q.endSpan()
		for d, err := range m.inner.Stream(ctx, req) {
			q.observe(d, err)
			if !yield(d, err) {
				return
			}
		}
	}
}

// request is a request in progress.
type request struct {
	telemetry *Telemetry
	tree      *tree // nil means none
	req       *llm.Request
	span      trace.Span
	model     string
	start     time.Time
	last      time.Time // start of the current attempt
	attempts  int
	replied   reply
	whole     *llm.Response // only with content; otherwise nil
	err       error
}

// reply holds the recorded properties of a reply.
type reply struct {
	model, id string
	finish    llm.FinishReason
	usage     *llm.Usage
	calls     bool          // it contains calls
	first     time.Duration // time until the first fragment; 0 means that it arrived in one piece
}

// ask begins the span of a request.
func (t *Telemetry) ask(ctx context.Context, req *llm.Request) (*request, context.Context) {
	q := &request{telemetry: t, req: req, model: cmp.Or(req.Model, t.options.Model), start: time.Now(), attempts: 1}
	q.last = q.start
	parent := ctx
	at, _ := ctx.Value(placeKey{}).(place)
	// A run that a tool starts by itself has keys that begin anew. Its requests must not count for
	// this tree.
	if v := pawl.InvocationFrom(ctx); v == at.call || under(req.Key, v.Key) {
		q.tree = placeOf(ctx, req.Key)
	}
	if tr := q.tree; tr != nil {
		tr.mu.Lock()
		if !tr.over {
			tr.mine[req.Key] = true
			// Nested runs share the context of the tool that started them, so that the span of the
			// run is found by the key.
			if run := runOf(req.Key); run != "" && pawl.InvocationFrom(ctx) != nil {
				parent = trace.ContextWithSpan(ctx, tr.run(run).span)
			}
		}
		tr.mu.Unlock()
	}
	ctx, q.span = t.startRequest(parent, req.Key, q.model, q.start)
	if q.span.IsRecording() {
		q.span.SetAttributes(settings(req)...)
		if t.options.Content {
			q.whole = new(llm.Response)
		}
	}
	return q, ctx
}

// startRequest begins the span of a request to model. An empty model means unknown.
func (t *Telemetry) startRequest(ctx context.Context, key llm.Key, model string, start time.Time) (context.Context,
	trace.Span) {
	name := chat
	set := []attribute.KeyValue{semconv.GenAIOperationNameChat, semconv.GenAIProviderNameKey.String(t.options.Provider)}
	if model != "" {
		name += " " + model
		set = append(set, semconv.GenAIRequestModel(model))
	}
	set = given(set, key != "", pawlKey.String(string(key)))
	set = given(set, RunID(ctx) != "", semconv.GenAIConversationID(RunID(ctx)))
	return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(start),
		trace.WithAttributes(set...))
}

// settings returns the settings of a request.
func settings(req *llm.Request) []attribute.KeyValue {
	set := []attribute.KeyValue{semconv.GenAIRequestStream(!req.Whole)}
	s := &req.Settings
	set = given(set, s.MaxTokens > 0, semconv.GenAIRequestMaxTokens(s.MaxTokens))
	if s.Temperature != nil {
		set = append(set, semconv.GenAIRequestTemperature(*s.Temperature))
	}
	if s.TopP != nil {
		set = append(set, semconv.GenAIRequestTopP(*s.TopP))
	}
	set = given(set, len(s.StopSequences) > 0, semconv.GenAIRequestStopSequences(s.StopSequences...))
	return given(set, req.Output != nil, semconv.GenAIOutputTypeJSON)
}

// observe processes a fragment.
func (q *request) observe(d llm.Delta, err error) {
	if err != nil {
		q.err = err
		return
	}
	if d.Notice != nil && d.Notice.Code == "retry" {
		now := time.Now()
		q.telemetry.failedAttempt(q.span, q.attempts, q.last, now, other, d.Notice.Text)
		q.attempts++
		q.last = now
		return
	}
	if _, call := d.Part.(llm.ToolCall); call {
		q.replied.calls = true
	}
	// A whole reply has no first chunk, only an end.
	if d.Part != nil && q.replied.first == 0 && !q.req.Whole {
		q.replied.first = time.Since(q.start)
	}
	if q.whole != nil && q.whole.Add(d) != nil {
		q.whole = nil // the run detects the same fault
	}
	r := &q.replied
	r.model, r.id, r.finish = cmp.Or(d.Model, r.model), cmp.Or(d.ID, r.id), cmp.Or(d.Finish, r.finish)
	if d.Usage != nil {
		r.usage = d.Usage
	}
}

// endSpan ends the span. A request that was not read to its end was cancelled.
func (q *request) endSpan() {
	fault, text := faultOf(q.err), textOf(q.err)
	if fault == "" && q.replied.finish == "" {
		fault = faultCancelled
	}
	if q.span.IsRecording() && q.telemetry.options.Content {
		q.span.SetAttributes(q.telemetry.content(q.req, q.whole)...)
	}
	q.telemetry.endRequest(q.span, q.model, &q.replied, q.start, time.Now(), fault, text)
	if tr := q.tree; tr != nil && fault != "" {
		tr.mu.Lock()
		tr.fault[runOf(q.req.Key)] = fault
		tr.mu.Unlock()
	}
}

// endRequest ends the span of a request with the properties of its reply.
func (t *Telemetry) endRequest(span trace.Span, model string, r *reply, start, end time.Time, fault, text string) {
	set := given(nil, r.model != "", semconv.GenAIResponseModel(r.model))
	set = given(set, r.id != "", semconv.GenAIResponseID(r.id))
	if r.finish == llm.FinishReasonStop && r.calls {
		// calls determine the finish reason, as in Response.Add
		r.finish = llm.FinishReasonToolCalls
	}
	set = given(set, r.finish != "", semconv.GenAIResponseFinishReasons(string(r.finish)))
	if r.first > 0 {
		set = append(set, semconv.GenAIResponseTimeToFirstChunk(r.first.Seconds()))
		t.first.Record(context.Background(), r.first.Seconds(),
			metric.WithAttributes(t.metricSet(chat, model, r.model)...))
	}
	if r.usage != nil {
		set = append(set, t.usageOf(r.usage)...)
		t.used(model, r.model, *r.usage)
	}
	span.SetAttributes(set...)
	t.failed(span, fault, text)
	span.End(trace.WithTimestamp(end))
	measured(t.duration, t.metricSet(chat, model, r.model), fault, end.Sub(start))
}
