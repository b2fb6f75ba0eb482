package speed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/load"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
	"github.com/pawl-go/pawl/telemetry"
)

// Setup is what a kind of run is started with. Close it after the last run.
type Setup struct {
	Job     load.Job
	Stream  bool
	Wire    string            // one of Wires
	URL     string            // the base URL of Chat Completions
	HTTP    http.RoundTripper // nil means pawl's own transport
	History int               // messages before the task
	Tools   int               // offered tools; 0 means 10
	Dir     string            // for files
	Sync    bool              // databases wait for the disk
	Listen  bool              // servers are reached over a loopback port, and not by a call

	conversation []llm.Message // made once
	closers      []func()
}

// Close releases what was started.
func (s *Setup) Close() {
	for _, c := range s.closers {
		c()
	}
	s.closers = nil
}

// Run makes one run, and returns text that ends with the answer or contains it.
type Run func(ctx context.Context) (string, error)

// Kind is a way to run the job with pawl.
type Kind struct {
	Name    string
	Streams bool // always
	start   func(*Setup) (Run, error)
}

// Kinds are the kinds of runs that are measured.
var Kinds = []Kind{
	{Name: "plain", start: (*Setup).plain},
	{Name: "from-a-file", start: (*Setup).fromFile},
	{Name: "telemetry", Streams: true, start: (*Setup).traced},
	{Name: "durable-memory", start: func(s *Setup) (Run, error) { return s.durableWrites(new(store.MemoryJournal)) }},
	{Name: "durable-sqlite", start: func(s *Setup) (Run, error) { return s.inSQLite(s.durableWrites) }},
	{Name: "durable-sqlite-reads", start: func(s *Setup) (Run, error) { return s.inSQLite(s.durableReads) }},
	{Name: "server-memory", Streams: true, start: func(s *Setup) (Run, error) { return s.served(new(store.MemoryJournal)) }},
	{Name: "server-sqlite", Streams: true, start: func(s *Setup) (Run, error) { return s.inSQLite(s.served) }},
}

// Wires are the APIs of providers.
var Wires = []string{"chat", "responses", "anthropic", "gemini"}

const key = "sk-load-of-the-bench"

// model returns the model that does the job.
func (s *Setup) model() llm.Model {
	switch s.Wire {
	case "responses":
		return openai.New(s.Job.Model(), &openai.Options{BaseURL: s.URL, Key: key, HTTP: s.HTTP})
	case "anthropic":
		return anthropic.New(s.Job.Model(), &anthropic.Options{BaseURL: s.URL, Key: key, HTTP: s.HTTP})
	case "gemini":
		return gemini.New(s.Job.Model(), &gemini.Options{BaseURL: s.URL, Key: key, HTTP: s.HTTP})
	}
	return openai.NewChat(s.Job.Model(), &openai.Options{BaseURL: s.URL, Key: key, HTTP: s.HTTP})
}

// Start starts runs of the kind with that name.
func (s *Setup) Start(kind string) (Run, error) {
	s.conversation = append(History(s.History), llm.User(Task))
	for _, k := range Kinds {
		if k.Name == kind {
			return k.start(s)
		}
	}
	return nil, fmt.Errorf("there is no kind %q of runs", kind)
}

func (s *Setup) offered(effect pawl.Effect) []pawl.Toolset {
	n := s.Tools
	if n == 0 {
		n = 10
	}
	return Offered(Tools(n), effect)
}

// agent returns an agent that does the job, with pawl's defaults but for one: the watch for
// repeated calls is off, because the job consists of them.
func (s *Setup) agent(effect pawl.Effect) *pawl.Agent {
	return &pawl.Agent{
		Name:         "load",
		Instructions: Instructions,
		Model:        s.model(),
		Tools:        s.offered(effect),
		Limits:       pawl.Limits{Rounds: s.Job.Rounds + 5, LoopThreshold: -1},
	}
}

// whole is a Runner that can ask for whole replies.
type whole interface {
	Run(ctx context.Context, msgs ...llm.Message) (*pawl.Result, error)
}

// run makes one run of r.
func (s *Setup) run(ctx context.Context, r pawl.Runner) (string, error) {
	var res *pawl.Result
	var err error
	if s.Stream {
		res, err = pawl.Collect(r.Stream(ctx, s.conversation...), nil)
	} else {
		res, err = r.(whole).Run(ctx, s.conversation...)
	}
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

func (s *Setup) runs(r pawl.Runner) Run {
	return func(ctx context.Context) (string, error) { return s.run(ctx, r) }
}

func (s *Setup) plain() (Run, error) { return s.runs(s.agent(pawl.EffectUnstated)), nil }

// fromFile runs an agent of a file, with what files bring: the window, the log of flow, and rules
// for approvals.
func (s *Setup) fromFile() (Run, error) {
	text := fmt.Sprintf(`agent: load
model: {name: %q, base_url: %q, key_env: KEY}
instructions: %q
history: {window: {tokens: 1000000}}
limits: {repeats: 50}
approve: {ask: ["effect:write"]}
`, "openai-chat:"+s.Job.Model(), s.URL, Instructions)
	file, err := config.Parse("agent.yaml", []byte(text), &config.Options{
		Getenv: func(name string) string { return map[string]string{"KEY": key}[name] },
		Tools:  s.offered(pawl.EffectRead),
		HTTP:   s.HTTP,
		Dir:    s.Dir,
	})
	if err != nil {
		return nil, err
	}
	built, err := file.Build(context.Background(), "")
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, built.Close)
	return s.runs(built.Agent), nil
}

// traced runs with spans that are complete and then dropped, so that only pawl's side counts.
func (s *Setup) traced() (Run, error) {
	spans := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(dropped{}))
	tel, err := telemetry.New(&telemetry.Options{Tracer: spans})
	if err != nil {
		return nil, err
	}
	a := s.agent(pawl.EffectUnstated)
	a.Middleware = append(a.Middleware, tel.Middleware())
	return s.runs(tel.Runner(a)), nil
}

// dropped is a sdktrace.SpanProcessor that drops its spans.
type dropped struct{}

func (dropped) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (dropped) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (dropped) Shutdown(context.Context) error                  { return nil }
func (dropped) ForceFlush(context.Context) error                { return nil }

func (s *Setup) inSQLite(start func(store.Journal) (Run, error)) (Run, error) {
	db, err := sqlite.Open(filepath.Join(s.Dir, "pawl.db"), &sqlite.Options{NoSync: !s.Sync})
	if err != nil {
		return nil, err
	}
	run, err := start(db)
	s.closers = append(s.closers, func() { db.Close() })
	return run, err
}

func (s *Setup) durableWrites(j store.Journal) (Run, error) { return s.durable(j, pawl.EffectWrite) }
func (s *Setup) durableReads(j store.Journal) (Run, error)  { return s.durable(j, pawl.EffectRead) }

func (s *Setup) durable(journal store.Journal, effect pawl.Effect) (Run, error) {
	engine := &durable.Engine{Journal: journal}
	agent := s.agent(effect)
	var n atomic.Int64
	return func(ctx context.Context) (string, error) {
		return s.run(ctx, engine.Runner(fmt.Sprint("run-", n.Add(1)), agent))
	}, nil
}

// served posts runs to a server, and reads their events.
func (s *Setup) served(journal store.Journal) (Run, error) {
	srv, err := server.New([]*pawl.Agent{s.agent(pawl.EffectWrite)}, journal, nil)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { srv.Close(context.Background()) })
	post := s.post(srv)
	var n atomic.Int64
	return func(ctx context.Context) (string, error) {
		body := fmt.Sprintf(`{"id":"run-%d","input":%q}`, n.Add(1), Task)
		return post(ctx, body)
	}, nil
}

// post returns a function that posts a run to h and returns its events.
func (s *Setup) post(h http.Handler) func(ctx context.Context, body string) (string, error) {
	url := "http://localhost"
	if s.Listen {
		listening := httptest.NewServer(h)
		s.closers = append(s.closers, listening.Close)
		url = listening.URL
	}
	return func(ctx context.Context, body string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/runs", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		w := &written{header: http.Header{}, status: http.StatusOK}
		if s.Listen {
			err = w.fetch(r)
		} else {
			r.RemoteAddr = "127.0.0.1:1"
			h.ServeHTTP(w, r)
		}
		if err == nil && w.status/100 != 2 {
			err = fmt.Errorf("status %d: %s", w.status, w.body.Bytes())
		}
		return w.body.String(), err
	}
}

// written is an http.ResponseWriter that keeps the body.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *written) Header() http.Header         { return w.header }
func (w *written) WriteHeader(status int)      { w.status = status }
func (w *written) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *written) Flush()                      {}

// fetch sends r over the network.
func (w *written) fetch(r *http.Request) error {
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	w.status = res.StatusCode
	_, err = w.body.ReadFrom(res.Body)
	return errors.Join(err, res.Body.Close())
}
