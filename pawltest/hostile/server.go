package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Server offers Behaviours on a port, over the four APIs, to any runtime in any language. The
// behaviour is chosen by the path (/b/ID/v1/chat/completions) or by the model's name (hostile/ID,
// at /v1/chat/completions). ID@TAG keeps conversations apart that go on at the same time; without a
// tag, a conversation that begins anew takes the place of the one before. After its verdict was
// read, a behaviour begins anew with the next conversation, so that clients are judged one by one.
//
//	/                      the behaviours, for people
//	/index.json            the same as data: tools to define, set-up, turns, expected outcome
//	/b/ID                  one of them
//	/b/ID/verdict          what the runtime did, from the wire alone; DELETE forgets it
//	/verdicts              DELETE forgets all
type Server struct {
	Root string // where it is: "http://127.0.0.1:port"

	sim   *pawltest.Simulator
	all   []Behaviour
	tools map[string]*Tool
	apis  []string
	plays atomic.Int64 // by Play, for tags

	mu       sync.Mutex
	models   map[string]llm.Model // by behaviour
	sessions map[string]*session  // by ID@TAG
	order    []string             // of sessions, oldest first
}

// ServerOptions are the optional settings of a Server.
type ServerOptions struct {
	Addr string   // where to listen; empty means a free port of loopback
	APIs []string // the APIs to offer; nil means all
}

// session is one conversation.
type session struct {
	id  string
	log []*pawltest.Received
	n   []int // for each request, its turn

	judged bool // its verdict was read
}

// maxSessions and keptRequests limit the memory of a Server.
const (
	maxSessions = 256
	maxRequests = 400
)

// NewServer starts a Server. Close it.
func NewServer(all []Behaviour, opts *ServerOptions) (*Server, error) {
	s := &Server{all: all, tools: Tools(), apis: pawltest.APIs(), models: map[string]llm.Model{},
		sessions: map[string]*session{}}
	addr := ""
	if opts != nil {
		addr = opts.Addr
		if opts.APIs != nil {
			s.apis = opts.APIs
		}
	}
	sim, err := pawltest.NewSimulator(nobody{},
		&pawltest.SimulatorOptions{Addr: addr, Quiet: true, Loose: true, Model: s.model, Fault: s.fault,
			Other: s.pages()})
	if err != nil {
		return nil, err
	}
	s.sim, s.Root = sim, sim.Root
	return s, nil
}

// Close ends the active answers and waits for their end.
func (s *Server) Close() error { return s.sim.Close() }

// nobody is the model for requests that name no behaviour.
type nobody struct{}

func (nobody) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{}, &llm.ProviderError{Status: 404, Code: llm.CodeNotFound, Message: "no such behaviour: choose one by path (/b/ID/v1/…) or by model (hostile/ID); / lists them"})
	}
}

// chosen returns the session's name of a request, and its behaviour. "" and nil mean that the
// request names none.
func (s *Server) chosen(r *pawltest.Received) (string, *Behaviour) {
	name := ""
	if rest, ok := strings.CutPrefix(r.Path, "/b/"); ok {
		name, _, _ = strings.Cut(rest, "/")
	} else if r.Request != nil {
		name, _ = strings.CutPrefix(r.Request.Model, "hostile/")
	}
	id, _, _ := strings.Cut(name, "@")
	b := Find(s.all, id)
	if b == nil {
		return "", nil
	}
	return name, b
}

// model returns the model that answers a request.
func (s *Server) model(r *pawltest.Received) llm.Model {
	_, b := s.chosen(r)
	if b == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.models[b.ID]
	if m == nil {
		m = b.model()
		s.models[b.ID] = m
	}
	return m
}

// fault records a request in its session and returns its fault.
func (s *Server) fault(_ int, r *pawltest.Received) *pawltest.Fault {
	name, b := s.chosen(r)
	switch {
	case b == nil:
		return nil
	case !slices.Contains(s.apis, r.API):
		return &pawltest.Fault{Status: 404, Message: "this API is not offered here; offered: " + strings.Join(s.apis, ", ")}
	}
	n := replies(r.Request)
	attempt := s.note(name, n, r)
	t := b.turn(n)
	if t == nil || t.Wire.IsZero() || t.Wire.Times > 0 && attempt >= t.Wire.Times {
		return nil
	}
	return t.Wire.fault(place{r.API, r.Request != nil && !r.Request.Whole})
}

// note logs a request, and returns how often its turn was requested before.
func (s *Server) note(name string, n int, r *pawltest.Received) (attempt int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[name]
	// A new conversation.
	goesOn := c != nil && !c.judged && (strings.Contains(name, "@") || slices.Max(c.n) == 0)
	if c == nil || n == 0 && !goesOn {
		c = &session{id: name}
		s.sessions[name] = c
		s.order = append(slices.DeleteFunc(s.order, func(o string) bool { return o == name }), name)
		if len(s.order) > maxSessions {
			delete(s.sessions, s.order[0])
			s.order = s.order[1:]
		}
	}
	for _, m := range c.n {
		if m == n {
			attempt++
		}
	}
	if len(c.log) < maxRequests {
		c.log = append(c.log, r)
	}
	c.n = append(c.n, n)
	return attempt
}

// Log returns the requests of a session so far. They must not be changed.
func (s *Server) Log(name string) []*pawltest.Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sessions[name]; c != nil {
		return slices.Clone(c.log)
	}
	return nil
}

// Reset drops the data of all sessions.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
	s.order = nil
}

// Forget drops the data of a session.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, name)
	s.order = slices.DeleteFunc(s.order, func(o string) bool { return o == name })
}

// Entry is a Behaviour in the index, with the full definitions of its tools.
type Entry struct {
	*Behaviour
	Task      string            `json:"task"`      // the user's message
	Define    []*Tool           `json:"define"`    // the tools to offer
	Addresses map[string]string `json:"addresses"` // base URL by API
	Verdict   string            `json:"verdict"`   // the path of the verdict
}

func (s *Server) entry(b *Behaviour) Entry {
	e := Entry{Behaviour: b, Task: b.task(), Addresses: map[string]string{}, Verdict: s.Root + "/b/" + b.ID + "/verdict"}
	for _, name := range b.Tools {
		e.Define = append(e.Define, s.tools[name])
	}
	for _, api := range s.apis {
		if b.On(api, true) || b.On(api, false) {
			e.Addresses[api] = Base(s.Root, b.ID, api)
		}
	}
	return e
}

// Base is the base URL that a client of api is given to meet a behaviour, named ID or ID@TAG.
func Base(root, name, api string) string {
	base := root + "/b/" + name
	switch api {
	case pawltest.Anthropic:
		return base
	case pawltest.Gemini:
		return base + "/v1beta"
	}
	return base + "/v1"
}

// Verdict is the behaviour of a runtime, as far as the wire shows it.
type Verdict struct {
	Behaviour string `json:"behaviour"`
	Requests  int    `json:"requests"`
	API       string `json:"api,omitempty"`
	// The API accepts every conversation of the requests.
	Valid   bool     `json:"valid"`
	Results []string `json:"results"` // the head of each, in call order
	// Faults. Empty means that the wire shows none.
	Wrong  []string `json:"wrong"`
	Unseen []string `json:"unseen,omitempty"` // facts that the wire cannot show; check them by hand
	Passed bool     `json:"passed"`           // there were requests, and no fault was found
}

// judge notes that the verdict about a session was read.
func (s *Server) judge(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.sessions[name]; c != nil {
		c.judged = true
	}
}

// Verdict judges the session named ID or ID@TAG from the wire alone. The next conversation of that
// name begins another session.
func (s *Server) Verdict(name string) (*Verdict, error) {
	id, _, _ := strings.Cut(name, "@")
	b := Find(s.all, id)
	if b == nil {
		return nil, fmt.Errorf("no behaviour %q", id)
	}
	log := s.Log(name)
	s.judge(name)
	v := &Verdict{Behaviour: id, Requests: len(log), Valid: true, Results: []string{}, Wrong: []string{}}
	if len(log) == 0 {
		v.Unseen = []string{"no request came yet"}
		return v, nil
	}
	v.API = log[0].API
	for _, r := range log {
		v.Valid = v.Valid && len(r.Violations) == 0 && r.Request != nil
	}
	for _, c := range answered(lastMessages(log)) {
		text := "(none)"
		if c.result != nil {
			text = clip(c.result.Text(), 200)
		}
		v.Results = append(v.Results, c.call.Name+": "+text)
	}
	if wrong := b.Judge(&Seen{API: log[0].API, Log: log}); wrong != nil {
		v.Wrong = wrong
	}
	v.Unseen = []string{"the run stops with: " + b.Want.Stop}
	v.Passed = len(v.Wrong) == 0
	return v, nil
}

// pages answers the paths that belong to no API.
func (s *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /index.json", func(w http.ResponseWriter, r *http.Request) {
		list := make([]Entry, len(s.all))
		for i := range s.all {
			list[i] = s.entry(&s.all[i])
		}
		writeJSON(w, 200, map[string]any{"how": How(s.Root), "behaviours": list})
	})
	mux.HandleFunc("GET /b/{name}", func(w http.ResponseWriter, r *http.Request) {
		id, _, _ := strings.Cut(r.PathValue("name"), "@")
		if b := Find(s.all, id); b != nil {
			writeJSON(w, 200, s.entry(b))
			return
		}
		writeJSON(w, 404, map[string]string{"error": "no behaviour " + id + "; / lists them"})
	})
	mux.HandleFunc("GET /b/{name}/verdict", func(w http.ResponseWriter, r *http.Request) {
		v, err := s.Verdict(r.PathValue("name"))
		if err != nil {
			writeJSON(w, 404, map[string]string{"error": err.Error() + "; / lists them"})
			return
		}
		writeJSON(w, 200, v)
	})
	mux.HandleFunc("DELETE /verdicts", func(w http.ResponseWriter, r *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /b/{name}/verdict", func(w http.ResponseWriter, r *http.Request) {
		s.Forget(r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "%s\n", How(s.Root))
	for i := range s.all {
		b := &s.all[i]
		fmt.Fprintf(w, "%-26s %s\n", b.ID, b.Title)
	}
}

// How describes how to point a runtime at a Server.
func How(root string) string {
	return fmt.Sprintf(`Models that behave badly. Point a runtime at one of them, with any key and any model name:

  Chat Completions   %[1]s/b/ID/v1       (POST …/chat/completions)
  Responses          %[1]s/b/ID/v1       (POST …/responses)
  Anthropic          %[1]s/b/ID          (POST …/v1/messages)
  Gemini             %[1]s/b/ID/v1beta   (POST …/models/NAME:generateContent)

Or name the model hostile/ID at %[1]s. ID@TAG in place of ID keeps conversations apart.

  GET    /index.json      what each does, the tools to define, and what must come of it
  GET    /b/ID            one of them
  GET    /b/ID/verdict    what your runtime did, as far as the wire shows it
  DELETE /b/ID/verdict    forget it
  DELETE /verdicts        forget all

After its verdict was read, a behaviour begins anew with the next conversation.

A tool returns a text that begins with its receipt: ran NAME ARGUMENTS, with the arguments it was given as JSON with sorted keys
and without spaces; arguments of more than 300 bytes as "(N bytes)". A tool that fails does so with the receipt before the reason.
`, root)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	e.Encode(v) // the client has disconnected, or has the answer
}
