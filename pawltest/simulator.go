package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
)

// Simulator is a provider on loopback. It answers POSTs to URL+"/chat/completions" and URL+"/responses" with what its
// model says to the request, streamed or whole as was asked.
//
// A history that Check finds fault with is refused with status 400, as are a body that cannot be read, a model that is not
// named, and encrypted reasoning that the Simulator did not write. Errors of the model become errors of the API: a
// *pawl.ProviderError keeps its status and code; a script that is played out is status 400; others are status 500.
//
// A Simulator may be used concurrently.
type Simulator struct {
	URL string // where it is, ending in /v1

	model pawl.Model
	opts  SimulatorOptions
	host  host

	mu  sync.Mutex
	log []*Received
}

// SimulatorOptions are the optional settings of a Simulator.
type SimulatorOptions struct {
	Key   string                          // the key that requests must bear, or get status 401; "": any or none
	Fault func(n int, r *Received) *Fault // what goes wrong with request n, from 1; nil, or a nil Fault: nothing
}

// Received is a request that a server got.
type Received struct {
	API        string        // Chat, Responses, or "" for a path that is neither's
	Path       string        // of the URL
	Header     http.Header   // without keys and cookies
	Body       []byte        // as sent
	Request    *pawl.Request // read from Body; nil when it could not be read
	Violations []Violation   // what Check found
}

// Fault is what goes wrong with one request. Fields can be combined; the zero Fault changes nothing.
type Fault struct {
	Hold <-chan struct{} // the answer waits until it is closed, or the client leaves

	// Status, when not 0, answers with an error of that status in place of the reply.
	Status     int
	Code       string // the error's code; "": one that fits Status
	Message    string // the error's message; "": "made to fail"
	RetryAfter string // Retry-After, in seconds or as a date; "": none

	Body        []byte // this body in place of the reply, or of the error's; nil: none
	ContentType string // its content type; "": what the reply would have had

	// Break breaks the connection: of a stream after After events, of a whole reply after half of its body.
	Break bool
	After int
	Raw   string // written into a stream after After events; the stream then ends there, with the connection unbroken. "": nothing
}

// Faults returns a Fault function that gives faults to the first requests, in order; nil stands for none.
func Faults(faults ...*Fault) func(int, *Received) *Fault {
	return func(n int, _ *Received) *Fault {
		if n > len(faults) {
			return nil
		}
		return faults[n-1]
	}
}

// NewSimulator starts a Simulator on a free port of loopback that answers with what model says. Close it.
func NewSimulator(model pawl.Model, opts *SimulatorOptions) (*Simulator, error) {
	s := &Simulator{model: model}
	if opts != nil {
		s.opts = *opts
	}
	url, err := s.host.start(s.serve)
	s.URL = url + "/v1"
	return s, err
}

// Close ends what is being answered and waits for it.
func (s *Simulator) Close() error { return s.host.close() }

// Received returns what was received so far, in order. It must not be changed.
func (s *Simulator) Received() []*Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request) {
	got, err := receive(r)
	if err != nil {
		return // the client left
	}
	s.mu.Lock()
	s.log = append(s.log, got)
	n := len(s.log)
	s.mu.Unlock()
	fault := &Fault{}
	if s.opts.Fault != nil {
		if f := s.opts.Fault(n, got); f != nil {
			fault = f
		}
	}
	if !wait(r.Context(), fault.Hold) {
		return
	}
	if refusal := s.refuse(got, r, fault); refusal != nil {
		refusal.write(w, fault)
		return
	}
	reply := newReply(got)
	if fault.Body != nil {
		raw(w, http.StatusOK, reply.contentType(), fault, fault.Body)
		return
	}
	if got.Request.Whole {
		s.whole(w, r.Context(), reply, fault)
	} else {
		s.stream(w, r.Context(), reply, fault)
	}
}

// refuse returns the error that answers a request before the model is asked, or nil.
func (s *Simulator) refuse(got *Received, r *http.Request, fault *Fault) *apiError {
	switch {
	case fault.Status != 0:
		return &apiError{Status: fault.Status, Code: fault.Code, Message: or(fault.Message, "made to fail")}
	case s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key:
		return &apiError{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided."}
	case got.API == "":
		return &apiError{Status: 404, Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}
	case r.Method != http.MethodPost:
		return &apiError{Status: 405, Message: "Not allowed to " + r.Method + " on " + r.URL.Path + "."}
	case len(got.Violations) > 0:
		v := got.Violations[0]
		return &apiError{Status: 400, Param: v.Place, Message: "Invalid request: " + v.Text + "."}
	case got.Request == nil:
		return &apiError{Status: 400, Message: "We could not parse the JSON body of your request."}
	case got.Request.Model == "":
		return &apiError{Status: 400, Param: "model", Message: "You must provide a model parameter."}
	case got.API == Responses && strings.Contains(string(got.Body), `"previous_response_id":"`):
		return &apiError{Status: 400, Code: "previous_response_not_found", Param: "previous_response_id", Message: "Previous response not found: nothing is stored here."}
	}
	for _, m := range got.Request.Messages {
		for _, p := range m.Parts {
			if p, ok := p.(pawl.Reasoning); ok && p.Opaque != nil {
				var item struct {
					ID        string `json:"id"`
					Encrypted string `json:"encrypted_content"`
				}
				json.Unmarshal(p.Opaque.Data, &item)
				if _, ok := unseal(item.Encrypted); !ok && item.Encrypted != "" {
					return &apiError{Status: 400, Code: "invalid_encrypted_content",
						Message: "The encrypted content for item " + item.ID + " could not be verified."}
				}
			}
		}
	}
	return nil
}

// whole answers with one body.
func (s *Simulator) whole(w http.ResponseWriter, ctx context.Context, reply *reply, fault *Fault) {
	resp := new(pawl.Response)
	for d, err := range s.model.Stream(ctx, reply.req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			toAPIError(err).write(w, fault)
			return
		}
	}
	if resp.Finish == "" {
		panic(http.ErrAbortHandler) // a model that ends without an end: so does the answer
	}
	raw(w, http.StatusOK, reply.contentType(), fault, reply.body(resp))
}

// stream answers with server-sent events.
func (s *Simulator) stream(w http.ResponseWriter, ctx context.Context, reply *reply, fault *Fault) {
	flusher := w.(http.Flusher)
	written := 0
	send := func(events []event) {
		for _, e := range events {
			if written == 0 {
				w.Header().Set("Content-Type", or(fault.ContentType, reply.contentType()))
			}
			if (fault.Break || fault.Raw != "") && written == fault.After {
				if fault.Raw != "" {
					io.WriteString(w, fault.Raw)
					flusher.Flush()
				}
				if fault.Break {
					panic(http.ErrAbortHandler)
				}
				panic(errEnded)
			}
			e.write(w)
			flusher.Flush()
			written++
		}
	}
	defer func() {
		if v := recover(); v != nil && v != errEnded {
			panic(v)
		}
	}()
	ended := false
	for d, err := range s.model.Stream(ctx, reply.req) {
		if err != nil {
			if written == 0 {
				toAPIError(err).write(w, fault)
			} else {
				send(reply.failed(toAPIError(err)))
			}
			return
		}
		send(reply.events(d))
		ended = ended || d.Finish != ""
	}
	if !ended {
		panic(http.ErrAbortHandler)
	}
}

// errEnded is what ends a stream early and in order.
var errEnded = errors.New("ended by a fault")

// apiError is an error as OpenAI's APIs write it.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param,omitempty"`
	Code    string `json:"code,omitempty"`
}

func toAPIError(err error) *apiError {
	e := &apiError{Status: 500, Message: err.Error()}
	var p *pawl.ProviderError
	if errors.As(err, &p) {
		e.Message = p.Message
		e.Code = string(p.Code)
		if p.Status != 0 {
			e.Status = p.Status
		}
	}
	if isExhausted(err) {
		e.Status = 400
	}
	e.complete()
	return e
}

func (e *apiError) complete() {
	kind, code := "invalid_request_error", ""
	switch {
	case e.Status == 401:
		code = "invalid_api_key"
	case e.Status == 404:
		code = "not_found"
	case e.Status == 429:
		kind, code = "requests", "rate_limit_exceeded"
	case e.Status >= 500:
		kind, code = "server_error", "server_error"
	}
	e.Type, e.Code = or(e.Type, kind), or(e.Code, code)
}

func (e *apiError) write(w http.ResponseWriter, fault *Fault) {
	e.complete()
	if fault.RetryAfter != "" {
		w.Header().Set("Retry-After", fault.RetryAfter)
	}
	body := marshal(map[string]any{"error": e})
	if fault.Body != nil {
		body = fault.Body
	}
	f := *fault
	f.Break = false
	raw(w, e.Status, "application/json", &f, body)
}

// raw writes a whole body, or half of it where the fault says so.
func raw(w http.ResponseWriter, status int, contentType string, fault *Fault, body []byte) {
	w.Header().Set("Content-Type", or(fault.ContentType, contentType))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if fault.Break {
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

// receive reads a request and looks it through.
func receive(r *http.Request) (*Received, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	got := &Received{API: apiOf(r.URL.Path), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	for name := range got.Header {
		switch name {
		case "Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization":
			delete(got.Header, name)
		}
	}
	if got.API != "" && r.Method == http.MethodPost {
		got.Violations = Check(got.API, body)
		got.Request, _ = ReadRequest(got.API, body)
	}
	return got, nil
}

// wait waits for hold, and reports whether the client is still there.
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

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// host is an HTTP server on loopback.
type host struct {
	server  *http.Server
	cancel  context.CancelFunc
	done    chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// start listens on a free port and returns the URL.
func (h *host) start(serve http.HandlerFunc) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("pawltest: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.done = cancel, make(chan struct{})
	h.server = &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !h.enter() {
				panic(http.ErrAbortHandler)
			}
			defer h.serving.Done()
			serve(w, r)
		}),
	}
	go func() {
		defer close(h.done)
		h.server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), nil
}

// enter counts a request that is being served, unless the host is closed.
func (h *host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.serving.Add(1)
	}
	return !h.closed
}

func (h *host) close() error {
	if h.server == nil {
		return nil
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	err := h.server.Close()
	<-h.done
	h.serving.Wait()
	return err
}
