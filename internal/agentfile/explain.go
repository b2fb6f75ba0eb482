package agentfile

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// Explanation shows what an agent is when all is said.
type Explanation struct {
	Agent  []byte // as YAML of the native form: every key that is set, in their order
	Method string // of the first request; "" for a model that no request goes to
	URL    string

	// Body is the body that the provider would receive. A model without a provider has the request
	// itself, as JSON.
	Body []byte

	// Tokens: the context window, what a request may have of it, and about what instructions and
	// tools take. A Window of 0 means that it is unknown.
	Window, Room, Taken int
}

// Explain returns the agent and the first request of a run with task. Nothing is sent, and no tool
// runs. Secret values of variables stand as ${NAME}. Getenv, Connect and Notice of o are used; o
// may be nil. Errors are *Finding or Findings.
func (a *Agent) Explain(ctx context.Context, o *Options, task string) (*Explanation, error) {
	w := new(wiretap)
	dry := o.dry()
	dry.HTTP = w
	built, err := a.Build(ctx, dry)
	if err != nil {
		return nil, err
	}
	defer built.Close()
	var first []*llm.Request
	for range built.Agent.Stream(ctx, llm.User(task)) {
		if built.script != nil {
			first = built.script.Requests()
		}
		if w.body != nil || first != nil {
			break
		}
	}
	out := &Explanation{Agent: a.hide(a.YAML()), Method: w.method, URL: string(a.hide([]byte(w.url))),
		Body: a.hide(w.body), Window: built.Window}
	out.Room, out.Taken = built.Room()
	if w.body == nil && first != nil {
		b, err := json.Marshal(first[0])
		if err != nil {
			return nil, err
		}
		out.Body = a.hide(b)
	}
	return out, nil
}

// wiretap records the first request and answers with an error that is not retried.
type wiretap struct {
	method, url string
	body        []byte
}

// RoundTrip records the request.
func (w *wiretap) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.body == nil {
		w.method, w.url, w.body = req.Method, req.URL.String(), []byte{}
		if req.Body != nil {
			b, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			w.body = b
		}
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"nothing is sent here"}}`)), Request: req}, nil
}
