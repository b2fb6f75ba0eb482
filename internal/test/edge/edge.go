// Package edge is the way between a client and a server of pawl in tests: a proxy that counts
// requests and loses connections, as networks and other proxies do.
//
// The last task "slow NAME" in a request decides. The agent gives it to a tool that calls Hold. The
// beginning of NAME says what happens when the tool has begun:
//
//	lose    the first connection breaks; the tool ends when the client repeats the request
//	stop    nothing: the client may wait for the tool at /edge/held?name=NAME, and disconnect
//	quiet   the tool ends after Silence, or, if this is 0, after three signs of life that follow:
//	        comments of server-sent events
//
// All connections that are silent for Patience break.
package edge

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options are the times of an Edge.
type Options struct {
	Patience time.Duration // how long a connection may be silent; 0 means 30 s
	Silence  time.Duration // how long the tool of a quiet task takes; 0 means three signs
}

// Edge is the proxy. It also has the state of the agent's tool.
type Edge struct {
	URL string
	Options

	mu    sync.Mutex
	tasks map[string]*task
	cuts  int
}

// task is what the proxy knows of a task.
type task struct {
	posts       int
	held, end   chan struct{} // closed when the tool begins, and when it may end
	begin, free func()
}

// New starts a proxy to a server. It ends with the test.
func New(t testing.TB, server string, o Options) *Edge {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	e := &Edge{Options: o, tasks: map[string]*task{}}
	forward := &httputil.ReverseProxy{FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		// the connection breaks; the status is the proxy's only where nothing cut it
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	mux := http.NewServeMux()
	mux.HandleFunc("/edge/held", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		select {
		case <-e.task("slow " + r.FormValue("name")).held:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { e.pass(forward, w, r) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	e.URL = s.URL
	return e
}

func (e *Edge) task(text string) *task {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.tasks[text]
	if k == nil {
		k = &task{held: make(chan struct{}), end: make(chan struct{})}
		k.begin, k.free = sync.OnceFunc(func() { close(k.held) }), sync.OnceFunc(func() { close(k.end) })
		e.tasks[text] = k
	}
	return k
}

// Hold is the agent's tool: it returns when the task may end, or with the context.
func (e *Edge) Hold(ctx context.Context, name string) error {
	k := e.task("slow " + name)
	k.begin()
	var silence <-chan time.Time
	if strings.HasPrefix(name, "quiet") && e.Silence > 0 {
		silence = time.After(e.Silence)
	}
	select {
	case <-k.end:
	case <-silence:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Posts returns the number of requests by task.
func (e *Edge) Posts() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]int{}
	for text, k := range e.tasks {
		all[text] = k.posts
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n == 0 })
	return all
}

// Cuts returns the number of connections that were broken because they were silent.
func (e *Edge) Cuts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cuts
}

var asked = regexp.MustCompile(`"((?:slow|refund|pay|fail) [\w.-]+)`)

// pass forwards a request.
func (e *Edge) pass(to http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	idle := time.AfterFunc(e.Patience, func() {
		e.mu.Lock()
		e.cuts++
		e.mu.Unlock()
		cancel()
	})
	defer idle.Stop()
	p := &pieces{w, func([]byte) { idle.Reset(e.Patience) }}
	if b, err := io.ReadAll(r.Body); r.Method == "POST" && err == nil {
		r.Body = io.NopCloser(bytes.NewReader(b))
		if all := asked.FindAllSubmatch(b, -1); len(all) > 0 {
			e.watch(ctx, cancel, string(all[len(all)-1][1]), p)
		}
	}
	to.ServeHTTP(p, r.WithContext(ctx))
}

// watch counts a request for a task, and does what its name says.
func (e *Edge) watch(ctx context.Context, cut func(), text string, p *pieces) {
	k := e.task(text)
	e.mu.Lock()
	k.posts++
	first := k.posts == 1
	e.mu.Unlock()
	kind, _, _ := strings.Cut(strings.TrimPrefix(text, "slow "), "-")
	switch {
	case kind == "quiet" && e.Silence == 0:
		n, went := 0, p.wrote
		p.wrote = func(b []byte) {
			if went(b); b[0] != ':' {
				return
			}
			select {
			case <-k.held:
				if n++; n == 3 {
					k.free()
				}
			default:
			}
		}
	case kind == "lose" && !first:
		k.free()
	case kind == "lose":
		go func() {
			select {
			case <-k.held:
				cut()
			case <-ctx.Done():
			}
		}()
	}
}

// pieces calls wrote after each piece of a response.
type pieces struct {
	http.ResponseWriter
	wrote func([]byte)
}

func (p *pieces) Write(b []byte) (int, error) {
	n, err := p.ResponseWriter.Write(b)
	p.wrote(b)
	return n, err
}

// Unwrap is for http.ResponseController.
func (p *pieces) Unwrap() http.ResponseWriter { return p.ResponseWriter }
