package pawltest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/reply"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// computed is a response that a Simulator computes in the background.
type computed struct {
	events    []reply.Event // of the stream; its last one has the complete response
	streamed  bool          // the request asked for a stream
	asked     int           // GETs of the response object
	done      bool          // the client has received the complete response
	cancelled bool
}

// inBackground reports whether a request to Responses asks for a reply in the background.
func inBackground(got *Received) bool {
	var w struct {
		Background bool `json:"background"`
	}
	return got.API == Responses && json.Unmarshal(got.Body, &w) == nil && w.Background
}

// background answers a request for a reply in the background, and keeps the answer.
func (s *Simulator) background(w http.ResponseWriter, ctx context.Context, answer *reply.Reply, fault *Fault,
	model llm.Model) {
	s.mu.Lock()
	answer.ID = fmt.Sprintf("%s_%d", answer.ID, len(s.computed)+1)
	s.mu.Unlock()
	answer.Background = true
	c := &computed{streamed: !answer.Request.Whole}
	resp := new(llm.Response)
	for d, err := range model.Stream(context.WithoutCancel(ctx), answer.Request) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil && len(c.events) == 0 {
			writeError(w, toAPIError(err), answer.API, fault)
			return
		} else if err != nil {
			c.events = append(c.events, answer.Failed(toAPIError(err))...)
			break
		}
		c.events = append(c.events, answer.Events(d)...)
	}
	s.mu.Lock()
	if s.computed == nil {
		s.computed = map[string]*computed{}
	}
	s.computed["resp_"+answer.ID] = c
	s.mu.Unlock()
	if c.streamed {
		s.continued(w, ctx, c, -1, fault)
		return
	}
	raw(w, http.StatusOK, "application/json", fault, answer.InProgress())
}

// later answers a request about the response id, which was computed in the background.
func (s *Simulator) later(w http.ResponseWriter, r *http.Request, got *Received, at endpoint, fault *Fault) {
	s.mu.Lock()
	c := s.computed[at.id]
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case fault.Body != nil:
		raw(w, http.StatusOK, "application/json", fault, fault.Body)
	case c == nil:
		writeError(w, &wire.Error{Status: 404, Message: "Response with id '" + at.id + "' not found."}, got.API, fault)
	case at.cancel && r.Method == http.MethodPost:
		s.mu.Lock()
		c.cancelled = c.cancelled || !c.done
		s.mu.Unlock()
		raw(w, http.StatusOK, "application/json", fault, s.state(c, false))
	case at.cancel || r.Method != http.MethodGet:
		writeError(w, &wire.Error{Status: 405, Message: "Not allowed to " + r.Method + " on " + r.URL.Path + "."}, got.API, fault)
	case query.Get("stream") == "true" && !c.streamed:
		writeError(w, &wire.Error{Status: 400, Param: "stream", Message: "The response was not created with stream=true."}, got.API, fault)
	case query.Get("stream") == "true":
		after := int64(-1)
		if n, err := strconv.ParseInt(query.Get("starting_after"), 10, 64); err == nil {
			after = n
		}
		s.continued(w, r.Context(), c, after, fault)
	default:
		s.mu.Lock()
		c.asked++
		n := c.asked
		s.mu.Unlock()
		busy := n == 1
		if s.opts.Background != nil {
			busy = s.opts.Background(at.id, n)
		}
		raw(w, http.StatusOK, "application/json", fault, s.state(c, busy))
	}
}

// state returns the response object. busy means that the reply is not complete.
func (s *Simulator) state(c *computed, busy bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := c.events[0]
	last := c.events[len(c.events)-1]
	if c.cancelled || busy {
		last = first
	}
	var e struct {
		Response map[string]any `json:"response"`
	}
	if err := json.Unmarshal([]byte(last.Data), &e); err != nil {
		panic(fmt.Sprintf("pawltest: %v", err)) // we wrote it
	}
	switch {
	case c.cancelled:
		e.Response["status"] = "cancelled"
	case busy:
		e.Response["status"] = "in_progress"
	default:
		c.done = true
	}
	return wire.Marshal(e.Response)
}

// continued writes the events of a stream after the event with the number after.
func (s *Simulator) continued(w http.ResponseWriter, ctx context.Context, c *computed, after int64, fault *Fault) {
	w.Header().Set("Content-Type", cmp.Or(fault.ContentType, "text/event-stream"))
	defer recoverEnded()
	out := &stream{to: w, fault: fault, gone: ctx.Done()}
	if after+1 < int64(len(c.events)) { // events have their index as their number
		out.send(c.events[max(after+1, 0):])
	}
	s.mu.Lock()
	c.done = true
	s.mu.Unlock()
	out.finish()
}
