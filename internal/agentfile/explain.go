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
	// Agent is the agent as YAML of the native form: every key that is set, in their order.
	Agent []byte

	// Method is the method of the first request. Empty means a model that no request goes to.
	Method string

	// URL is the address of the first request. Empty means a model that no request goes to.
	URL string

	// Body is the body that the provider would receive. A model without a provider has the request
	// itself, as JSON.
	Body []byte

	Window int // context window in tokens; 0 means unknown
	Room   int // tokens that a request may have of the window
	Taken  int // tokens, approximately, of the instructions and tools
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

	scripted := w.listen(ctx, built, task)
	body := w.body

	// A scripted model sends no request.
	if body == nil && scripted != nil {
		body, err = json.Marshal(scripted)
		if err != nil {
			return nil, err
		}
	}

	out := &Explanation{
		Agent:  a.hide(a.YAML()),
		Method: w.method,
		URL:    string(a.hide([]byte(w.url))),
		Body:   a.hide(body),
		Window: built.Window,
	}
	out.Room, out.Taken = built.Room()
	return out, nil
}

// wiretap records the first request and answers with an error that is not retried.
type wiretap struct {
	method, url string
	body        []byte // nil means that no request was sent
}

// listen runs an agent until its model has a request. It returns the request if a script answers
// the agent's model; otherwise w has what was sent.
func (w *wiretap) listen(ctx context.Context, built *Built, task string) *llm.Request {
	for range built.Agent.Stream(ctx, llm.User(task)) {
		if built.script != nil {
			if asked := built.script.Requests(); asked != nil {
				return asked[0]
			}
		}
		if w.body != nil {
			break
		}
	}
	return nil
}

// RoundTrip records the request.
func (w *wiretap) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.body == nil {
		w.method = req.Method
		w.url = req.URL.String()
		w.body = []byte{}
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

	// A status after which no adapter sends the request again.
	return &http.Response{
		StatusCode: http.StatusBadRequest,
		Status:     "400 Bad Request",
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(`{"error":{"message":"nothing is sent here"}}`)),
		Request:    req,
	}, nil
}
