package durabletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pawl-go/pawl/llm"
)

// Remote is the World of another process, which Serve serves at URL, so that it outlives a killed
// process. It is safe for concurrent use.
type Remote struct{ URL string }

var _ World = Remote{}

// Deliver sends d to the other process.
func (r Remote) Deliver(ctx context.Context, d Delivery) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = r.post(ctx, "/deliver", b)
	return err
}

// Happened asks the other process.
func (r Remote) Happened(ctx context.Context, place llm.Key) (bool, error) {
	b, err := r.post(ctx, "/happened", []byte(place))
	return string(b) == "yes", err
}

func (r Remote) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return b.Bytes(), err
}

// Serve returns the other side of Remote. tick is called for each delivery, before and after it is
// counted, and may kill the sender. If the first call returns true, the delivery is not counted:
// the sender died before it could send.
func Serve(m *Memory, tick func() (died bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var b bytes.Buffer
		if _, err := b.ReadFrom(req.Body); err != nil {
			return
		}
		if req.URL.Path == "/happened" {
			// Happened has no errors.
			if happened, _ := m.Happened(req.Context(), llm.Key(b.String())); happened {
				fmt.Fprint(w, "yes")
			}
			return
		}
		var d Delivery
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if tick() {
			return
		}
		_ = m.Deliver(req.Context(), d) // Deliver has no errors
		tick()
	})
}
