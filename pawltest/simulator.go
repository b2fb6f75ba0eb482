package pawltest

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/reply"
	"github.com/pawl-go/pawl/pawltest/internal/seal"
	"github.com/pawl-go/pawl/pawltest/internal/summaries"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Simulator is a provider on loopback. It answers POSTs with the reply of its model, streamed or
// whole as requested. The end of the path selects the API, with any prefix:
//
//	/chat/completions                                 Chat
//	/responses                                        Responses, also in the background, with
//	                                                  /responses/ID and /responses/ID/cancel
//	/messages                                         Anthropic; also /models/NAME:rawPredict
//	                                                  and :streamRawPredict
//	/models/NAME:generateContent                      Gemini
//	/models/NAME:streamGenerateContent?alt=sse        Gemini, streamed; without alt as a JSON
//	                                                  array, and with streamFunctionCallArguments
//	                                                  with arguments in pieces
//
// The Simulator rejects with status 400: a history in which Check finds a fault, a body that it
// cannot read, a missing model name, and reasoning or a signature that it did not write, or that is
// changed or at another part. Gemini models from 3 on also reject calls of the current turn without
// a signature.
//
// Errors of the model become errors of the API in its own shape: a *llm.ProviderError keeps its
// status and, on OpenAI's APIs, its code; a script without further turns is status 400; other
// errors are status 500.
//
// A script can use the words of a single API: an llm.Reasoning with an Opaque of provider
// "anthropic" or "gemini" is written as that block or part, such as a server-side tool's, and an
// unknown finish reason (pause_turn) is written unchanged.
//
// A Simulator is safe for concurrent use.
type Simulator struct {
	URL  string // its address, which ends in /v1
	Root string // the address without /v1

	model llm.Model
	opts  SimulatorOptions
	host  host

	mu    sync.Mutex
	log   []*Received
	count int
	// by the id of the response
	computed   map[string]*computed
	containers map[string]bool
}

// SimulatorOptions are the optional settings of a Simulator.
type SimulatorOptions struct {
	// Key is the required key; other requests get status 401. Empty means any key or none.
	Key string
	// Fault returns the fault of request n, from 1. Nil, or a nil Fault, means none.
	Fault func(n int, r *Received) *Fault
	NoIDs bool // Gemini: calls have no ids, as before Gemini 3

	Addr string // the listen address; empty means a free port of loopback
	// Model returns the model for r. Nil, or a nil Model, means the Simulator's own.
	Model func(r *Received) llm.Model
	// Background reports whether a response in the background is not complete when the client asks
	// for it the nth time, from 1. Nil means that it is not complete the first time. Streams and
	// their continuations have all events at once; a Fault can stall or break them.
	Background func(id string, n int) bool
	// Other answers requests to other paths. Nil means status 404.
	Other http.Handler
	Quiet bool // keep no log, for servers that run for long
	// BoundThinking binds the thinking of all Anthropic models to the tools, instructions and
	// messages before it, and refuses it elsewhere. Without it, only models that do so at Anthropic
	// bind it.
	BoundThinking bool
	// Tokens counts the input of r, for a request that orders the server to shorten the
	// conversation above a number of tokens (context_management, of Responses and Anthropic). Nil
	// means a token for every four bytes. A summary must come back unchanged, and hides what stands
	// before it.
	Tokens func(r *Received) int
	// Loose sends arguments that are no object as their value or as a string (Anthropic, Gemini).
	Loose bool
}

// Received is a request that a server received.
type Received struct {
	// API is Chat, Responses, Anthropic or Gemini. Empty means another path.
	API        string
	Method     string       // of HTTP
	Path       string       // of the URL
	Query      string       // of the URL
	Header     http.Header  // without keys and cookies
	Body       []byte       // as sent
	Request    *llm.Request // read from Body; nil if it is not readable
	Violations []Violation  // the result of Check
}

// NewSimulator starts a Simulator that answers with the replies of model. Close it after use.
func NewSimulator(model llm.Model, opts *SimulatorOptions) (*Simulator, error) {
	s := &Simulator{model: model}
	if opts != nil {
		s.opts = *opts
	}
	url, err := s.host.start(cmp.Or(s.opts.Addr, "127.0.0.1:0"), s.serve)
	s.URL = url + "/v1"
	s.Root = url
	return s, err
}

// Close cancels active answers and waits for their end.
func (s *Simulator) Close() error { return s.host.close() }

// Received returns the requests so far, in order. The caller must not change it.
func (s *Simulator) Received() []*Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) {
	if s.opts.Other != nil && endpointOf(r.URL.Path).api == "" {
		s.opts.Other.ServeHTTP(w, r)
		return
	}
	got, err := receive(r)
	if err != nil {
		return // the client left
	}
	n := s.note(got)
	fault := &Fault{}
	if s.opts.Fault != nil {
		if f := s.opts.Fault(n, got); f != nil {
			fault = f
		}
	}
	if !wait(r.Context(), fault.Hold) {
		return
	}
	for name, value := range fault.Header {
		w.Header().Set(name, value)
	}
	if refusal := s.refuse(got, r, fault); refusal != nil {
		writeError(w, refusal, got.API, fault)
		return
	}
	if at := endpointOf(r.URL.Path); at.id != "" {
		s.later(w, r, got, at, fault)
		return
	}
	got = new(*got) // the log has the whole
	got.Request, _ = summaries.Since(got.Request)
	answer := reply.New(got.API, got.Request, got.Body, reply.Options{NoIDs: s.opts.NoIDs, Loose: s.opts.Loose})
	if got.API == Anthropic {
		if all := seal.Prefixes(got.Request, s.opts.BoundThinking); all != nil {
			answer.Prefix = all[len(got.Request.Messages)]
		}
	}
	answer.Contained = s.contained
	answer.Array = got.API == Gemini && r.URL.Query().Get("alt") != "sse"
	if fault.Body != nil {
		raw(w, http.StatusOK, answer.ContentType(), fault, fault.Body)
		return
	}
	model := s.manage(got, answer, s.modelFor(got))
	if inBackground(got) {
		s.background(w, r.Context(), answer, fault, model)
		return
	}
	if got.Request.Whole {
		oneBody(w, r.Context(), model, answer, fault)
	} else {
		eventStream(w, r.Context(), model, answer, fault)
	}
}

// note logs a request and returns its number, from 1.
func (s *Simulator) note(got *Received) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.opts.Quiet {
		s.log = append(s.log, got)
	}
	return s.count
}

// modelFor returns what answers got.
func (s *Simulator) modelFor(got *Received) llm.Model {
	if s.opts.Model != nil {
		if m := s.opts.Model(got); m != nil {
			return m
		}
	}
	return s.model
}

// refuse returns the error that answers a request before the model is asked, or nil.
func (s *Simulator) refuse(got *Received, r *http.Request, fault *Fault) *wire.Error {
	switch {
	case fault.Status != 0:
		return &wire.Error{Status: fault.Status, Code: fault.Code, Message: cmp.Or(fault.Message, "made to fail")}
	case s.opts.Key != "" && s.opts.Key != keyOf(got.API, r):
		return wrongKey(got.API)
	case got.API == "":
		return &wire.Error{Status: 404, Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}
	case endpointOf(r.URL.Path).id != "":
		return nil
	case r.Method != http.MethodPost:
		return &wire.Error{Status: 405, Message: "Not allowed to " + r.Method + " on " + r.URL.Path + "."}
	case got.API == Anthropic && r.Header.Get("Anthropic-Version") == "" && !strings.Contains(string(got.Body), `"anthropic_version"`):
		return &wire.Error{Status: 400, Message: "anthropic-version: header is required"}
	case len(got.Violations) > 0:
		v := got.Violations[0]
		return &wire.Error{Status: 400, Param: v.Place, Message: "Invalid request: " + v.String() + "."}
	case got.Request == nil:
		return &wire.Error{Status: 400, Message: "We could not parse the JSON body of your request."}
	case got.Request.Model == "":
		return &wire.Error{Status: 400, Param: "model", Message: "You must provide a model parameter."}
	case got.API == Responses && strings.Contains(string(got.Body), `"previous_response_id":"`):
		return &wire.Error{Status: 400, Code: "previous_response_not_found", Param: "previous_response_id",
			Message: "Previous response not found: nothing is stored here."}
	}
	switch got.API {
	case Responses:
		return cmp.Or(unmanaged(got), seal.Responses(got.Request))
	case Anthropic:
		if err := cmp.Or(unmanaged(got), s.uncontained(got.Body)); err != nil {
			return err
		}
		read, _ := summaries.Since(got.Request)
		return seal.Anthropic(read, seal.Prefixes(read, s.opts.BoundThinking))
	case Gemini:
		return seal.Gemini(got.Request)
	}
	return nil
}

// keyOf returns the key of a request, from the place that its API defines.
func keyOf(api string, r *http.Request) string {
	key := ""
	switch api {
	case Anthropic: // newer clients send it as a bearer token
		key = r.Header.Get("X-Api-Key")
	case Gemini:
		return cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return cmp.Or(key, bearer)
}

func wrongKey(api string) *wire.Error {
	switch api {
	case Anthropic:
		return &wire.Error{Status: 401, Message: "invalid x-api-key"}
	case Gemini: // the status is already 400
		return &wire.Error{Status: 400, Reason: wire.KeyInvalid, Message: "API key not valid. Please pass a valid API key."}
	}
	return &wire.Error{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided."}
}

// contained stores a container that a reply names.
func (s *Simulator) contained(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers == nil {
		s.containers = map[string]bool{}
	}
	s.containers[id] = true
}

// uncontained refuses a container that no reply named.
func (s *Simulator) uncontained(body []byte) *wire.Error {
	var w struct{ Container string }
	if json.Unmarshal(body, &w) != nil || w.Container == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[w.Container] {
		return nil
	}
	return &wire.Error{Status: 400, Message: "container: " + w.Container + " was not found, or has expired"}
}

// oneBody answers with one body.
func oneBody(w http.ResponseWriter, ctx context.Context, model llm.Model, answer *reply.Reply, fault *Fault) {
	resp := new(llm.Response)
	for d, err := range model.Stream(ctx, answer.Request) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			writeError(w, toAPIError(err), answer.API, fault)
			return
		}
	}
	if resp.Finish == "" {
		panic(http.ErrAbortHandler) // a model that ends without a finish: so does the answer
	}
	raw(w, http.StatusOK, answer.ContentType(), fault, answer.Body(resp))
}

// eventStream answers with server-sent events.
func eventStream(w http.ResponseWriter, ctx context.Context, model llm.Model, answer *reply.Reply, fault *Fault) {
	out := &stream{to: w, fault: fault, gone: ctx.Done(), array: answer.Array}
	w.Header().Set("Content-Type", cmp.Or(fault.ContentType, answer.ContentType()))
	defer recoverEnded()
	ended := false
	for d, err := range model.Stream(ctx, answer.Request) {
		if err != nil {
			if out.events == 0 {
				writeError(w, toAPIError(err), answer.API, fault)
				return
			}
			out.send(answer.Failed(toAPIError(err)))
			out.finish()
			return
		}
		if d.Part == nil && !d.Done && d.Finish == "" && d.Usage == nil && d.Model == "" && d.ID == "" {
			continue // a notice, or a count of requests: no API sends it
		}
		out.send(answer.Events(d))
		ended = ended || d.Finish != ""
	}
	if !ended {
		panic(http.ErrAbortHandler)
	}
	out.finish()
}

// receive reads and checks a request.
func receive(r *http.Request) (*Received, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	at := endpointOf(r.URL.Path)
	got := &Received{API: at.api, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: body}
	for name := range got.Header {
		switch name {
		case "Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization":
			delete(got.Header, name)
		}
	}
	if got.API != "" && at.id == "" && r.Method == http.MethodPost {
		got.Violations = CheckModel(got.API, at.model, body)
		got.Request, _ = ReadRequest(got.API, body)
		if got.Request != nil && at.model != "" {
			got.Request.Model = at.model
			got.Request.Whole = !at.stream
		}
	}
	return got, nil
}

// wait waits for hold, and reports whether the client is still connected.
func wait(ctx context.Context, hold <-chan struct{}) bool {
	if hold == nil {
		return true
	}
	select {
	case <-hold:
		return true
	case <-ctx.Done():
		return false
	}
}
