// Package load answers as a provider does, from prepared replies, so that it costs little itself:
// for measurements of what pawl costs. It speaks Chat Completions, Responses, Messages and
// generateContent, whole and streamed.
//
// The name of the model states the Job: its replies call tools for a number of rounds, and then the
// model answers. A Server keeps no state: the results in a request state its round.
package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Job is what the replies of a model ask for.
type Job struct {
	Rounds int // of calls, before the answer
	Calls  int // a round, at least 1
	Args   int // bytes of the arguments of a call, at least len(Args(0))
	Deltas int // the pieces in which the arguments of a call are streamed, at least 1
}

// Model returns the name of the model that does the job.
func (j Job) Model() string {
	return fmt.Sprintf("load-%dx%d-%d-%d", j.Rounds, j.Calls, j.Args, j.Deltas)
}

// parse reads the name of a model.
func parse(model string) (j Job, err error) {
	_, err = fmt.Sscanf(model, "load-%dx%d-%d-%d", &j.Rounds, &j.Calls, &j.Args, &j.Deltas)
	if err != nil || j.Rounds < 0 || j.Calls < 1 || j.Deltas < 1 {
		return j, fmt.Errorf("the model %q states no job, as load-3x5-64-8 does", model)
	}
	return j, nil
}

// The arguments of a call.
const (
	argsBegin = `{"path":"/a/b","limit":10,"query":"`
	argsEnd   = `"}`
	words     = "some words that a model may look for, "
)

// Args returns the arguments of a call: size bytes, or more if size is too small for an object.
func Args(size int) string {
	room := max(size-len(argsBegin)-len(argsEnd), 0)
	return argsBegin + filled(room) + argsEnd
}

// filled returns n bytes of text.
func filled(n int) string { return strings.Repeat(words, n/len(words)+1)[:n] }

// Answer is the text after the last round.
var Answer = "DONE: " + filled(58)

// Server answers requests. The zero value is ready to use. It is safe for concurrent use.
type Server struct {
	replies sync.Map // prepared, by question
	buffers sync.Pool
}

// question is what decides about a reply.
type question struct {
	api    string // the last word of the path
	model  string
	stream bool
	usage  bool // Chat Completions: with a chunk that has the usage
	// the results in the request, of all rounds so far
	results int
}

// reply is a prepared body.
type reply struct {
	body   []byte
	stream bool
}

// api is the prepared side of a provider.
type api struct {
	path   string // the last word of the path of a request
	result string // stands once in each result of a request
	whole  func(model string, j Job, round int) []byte
	stream func(model string, j Job, round int, usage bool) []byte
}

var apis = []api{
	{"completions", `"tool_call_id":`, chatWhole, chatStream},
	{"responses", `"function_call_output"`, responsesWhole, responsesStream},
	{"messages", `"tool_result"`, messagesWhole, messagesStream},
	{"generateContent", `"functionResponse"`, geminiWhole, geminiStream},
	{"streamGenerateContent", `"functionResponse"`, geminiWhole, geminiStream},
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.answer(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", a.contentType())
	w.Write(a.body)
	if a.stream {
		w.(http.Flusher).Flush() // no Content-Length, as in a stream
	}
}

// RoundTrip answers a request in the same process, without net/http.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := s.answer(r)
	if err != nil {
		return nil, err
	}
	res := &http.Response{
		StatusCode:    http.StatusOK,
		Header:        http.Header{"Content-Type": {a.contentType()}},
		Body:          io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)),
	}
	if a.stream {
		res.ContentLength = -1
	}
	return res, nil
}

func (a *reply) contentType() string {
	if a.stream {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}

// answer returns the reply to a request.
func (s *Server) answer(r *http.Request) (*reply, error) {
	b, _ := s.buffers.Get().(*bytes.Buffer)
	if b == nil {
		b = new(bytes.Buffer)
	}
	defer s.buffers.Put(b)
	b.Reset()
	if _, err := b.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	r.Body.Close()

	a, q, err := read(r.URL.Path, b.Bytes())
	if err != nil {
		return nil, err
	}
	if known, ok := s.replies.Load(q); ok {
		return known.(*reply), nil
	}
	made, err := a.make(q)
	if err != nil {
		return nil, err
	}
	s.replies.Store(q, made)
	return made, nil
}

// read returns the question of a request.
func read(path string, body []byte) (*api, question, error) {
	var q question
	for i := range apis {
		a := &apis[i]
		if !strings.HasSuffix(path, "/"+a.path) && !strings.HasSuffix(path, ":"+a.path) {
			continue
		}
		q.api = a.path
		q.stream = a.path == "streamGenerateContent" || bytes.Contains(body, []byte(`"stream":true`))
		q.usage = bytes.Contains(body, []byte(`"include_usage":true`))
		q.results = bytes.Count(body, []byte(a.result))
		var found bool
		if q.model, found = modelOf(path, body); !found {
			return nil, q, errors.New("the request names no model")
		}
		return a, q, nil
	}
	return nil, q, fmt.Errorf("no API has the path %s", path)
}

// modelOf returns the model of a request: Gemini has it in the path, the others in the body.
func modelOf(path string, body []byte) (string, bool) {
	if _, rest, ok := strings.Cut(path, "/models/"); ok {
		name, _, _ := strings.Cut(rest, ":")
		return name, true
	}
	_, rest, found := bytes.Cut(body, []byte(`"model":"`))
	name, _, closed := bytes.Cut(rest, []byte(`"`))
	return string(name), found && closed
}

// make prepares a reply.
func (a *api) make(q question) (*reply, error) {
	j, err := parse(q.model)
	if err != nil {
		return nil, err
	}
	round := q.results / j.Calls
	switch {
	case q.results%j.Calls != 0:
		return nil, fmt.Errorf("%d results are no whole rounds of %d calls", q.results, j.Calls)
	case round > j.Rounds:
		return nil, fmt.Errorf("round %d of %d", round, j.Rounds)
	case q.stream:
		return &reply{body: a.stream(q.model, j, round, q.usage), stream: true}, nil
	}
	return &reply{body: a.whole(q.model, j, round)}, nil
}
