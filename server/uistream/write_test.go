package uistream_test

import (
	"errors"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/uistream"
)

// Write returns the error of a run, and its client gets a code in place of the text, which may
// contain addresses.
func TestWriteReturnsTheErrorOfTheRun(t *testing.T) {
	const secret = "dial tcp 10.0.0.7:443"
	denied := &llm.ProviderError{Provider: "test", Code: llm.CodeAuthentication, Message: secret}
	agent := func(turn script.Turn) iter.Seq2[pawl.Event, error] {
		a := &pawl.Agent{Name: "clerk", Model: &script.Model{Turns: []script.Turn{script.Loop(turn)}}}
		return func(yield func(pawl.Event, error) bool) { a.Stream(t.Context(), llm.User("hi"))(yield) }
	}
	lost := errors.New("disk /srv/data is full")
	events := func(list []pawl.Event, err error) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) {
			for _, ev := range list {
				if !yield(ev, nil) {
					return
				}
			}
			if err != nil {
				yield(pawl.Event{}, err)
			}
		}
	}
	begin := pawl.Event{Kind: pawl.EventRunStarted, Run: "run", Agent: "clerk"}
	end := func(stop pawl.StopReason, text string) pawl.Event {
		return pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Error: text, Result: &pawl.Result{Stop: stop, Cause: text}}
	}
	own := func(error) string { return "own text" }

	for _, test := range []struct {
		name   string
		events iter.Seq2[pawl.Event, error]
		text   func(error) string
		shown  string // "" means no error in the stream
		err    string // part of the error; "" means none
	}{
		{"an answer", agent(script.Say("Hello.")), nil, "", ""},
		{"the model fails", agent(script.Fail(denied)), nil, "the run failed (authentication)", secret},
		{"the model fails, own text", agent(script.Fail(denied)), own, "own text", secret},
		{"the events break off", events([]pawl.Event{begin}, lost), nil, "the run failed", lost.Error()},
		{"the events end early", events([]pawl.Event{begin}, nil), nil, "the run failed", "without a result"},
		{"stored events", events([]pawl.Event{begin, end(pawl.StopFailed, secret)}, nil), nil, "the run failed", secret},
		{"an error after the end", events([]pawl.Event{begin, end(pawl.StopAnswer, "")}, lost), nil, "", lost.Error()},
	} {
		for name, o := range map[string]uistream.Options{
			"AI SDK": {},
			"AG-UI":  {Protocol: uistream.AGUI1, Thread: "t", Request: "r"},
		} {
			o.ErrorText = test.text
			w := httptest.NewRecorder()
			err := uistream.Write(w, test.events, o)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s, %s: Write returns %v, want %q", test.name, name, err, test.err)
			}

			body := w.Body.String()
			if strings.Contains(body, secret) || strings.Contains(body, "/srv/data") {
				t.Errorf("%s, %s: the client gets the text of the error: %s", test.name, name, body)
			}
			fails := strings.Contains(body, `"type":"error"`) || strings.Contains(body, "RUN_ERROR")
			if fails != (test.shown != "") || !strings.Contains(body, test.shown) {
				t.Errorf("%s, %s: the client gets %s, want %q", test.name, name, body, test.shown)
			}
		}
	}
}

// The error of the connection and the error of the run are joined.
func TestWriteReturnsTheErrorOfTheConnection(t *testing.T) {
	w := &closedWriter{httptest.NewRecorder()}
	events := func(yield func(pawl.Event, error) bool) { yield(pawl.Event{}, errors.New("the run is lost")) }
	err := uistream.Write(w, events, uistream.Options{})
	if !errors.Is(err, errClosed) || !strings.Contains(err.Error(), "the run is lost") {
		t.Errorf("Write returns %v", err)
	}
}

var errClosed = errors.New("the connection is closed")

// closedWriter is the response to a client that has disconnected.
type closedWriter struct{ *httptest.ResponseRecorder }

func (*closedWriter) Write([]byte) (int, error) { return 0, errClosed }
