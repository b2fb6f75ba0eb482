package pawltest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// A Model of an API of its own passes the suite, and the suite finds every planted fault through
// its wire.
func TestScoreOverAWire(t *testing.T) {
	soak.Sequential(t)
	open := func(t *testing.T, behind llm.Model) llm.Model {
		s := httptest.NewServer(linesHandler(behind))
		t.Cleanup(s.Close)
		return &lines{url: s.URL, client: s.Client()}
	}
	pawltest.TestModel(t, open)
	score := pawltest.ScoreModel(t, open)
	if len(score.Survived)+len(score.LeftOut) > 0 {
		t.Errorf("%s", score)
	}
}

// lines is an llm.Model whose API is a stream of JSON lines.
type lines struct {
	url    string
	client *http.Client
}

// line is one line of a reply.
type line struct {
	Index    int              `json:"index"`
	Part     json.RawMessage  `json:"part,omitzero"` // a message with one part
	Done     bool             `json:"done,omitzero"`
	Usage    *llm.Usage       `json:"usage,omitzero"`
	Finish   llm.FinishReason `json:"finish,omitzero"`
	Model    string           `json:"model,omitzero"`
	ID       string           `json:"id,omitzero"`
	Requests int              `json:"requests,omitzero"`
	Error    *lineError       `json:"error,omitzero"`
}

type lineError struct {
	Status  int      `json:"status"`
	Code    llm.Code `json:"code"`
	Message string   `json:"message"`
}

// Stream sends req as JSON and reads the lines of the reply.
func (m *lines) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		err := m.read(ctx, req, func(d llm.Delta) bool { return yield(d, nil) })
		if cause := context.Cause(ctx); cause != nil && err != nil {
			err = cause
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(llm.Delta{}, err)
		}
	}
}

// errLeft says that the caller has broken out of the range.
var errLeft = errors.New("the caller has left")

func (m *lines) read(ctx context.Context, req *llm.Request, yield func(llm.Delta) bool) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := m.client.Do(post)
	if err != nil {
		return &llm.ProviderError{Provider: "lines", Code: llm.CodeNetwork, Message: err.Error(), Retryable: true,
			Err: err}
	}
	defer res.Body.Close()

	in := bufio.NewReader(res.Body)
	for {
		b, err := in.ReadBytes('\n')
		if err != nil {
			return &llm.ProviderError{Provider: "lines", Code: llm.CodeStream, Message: "the reply ended early", Err: err}
		}
		var l line
		if err := json.Unmarshal(b, &l); err != nil {
			return &llm.ProviderError{Provider: "lines", Code: llm.CodeStream, Message: err.Error(), Err: err}
		}
		if l.Error != nil {
			seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
			return &llm.ProviderError{
				Provider:   "lines",
				Status:     l.Error.Status,
				Code:       l.Error.Code,
				Message:    l.Error.Message,
				Retryable:  l.Error.Status == 429 || l.Error.Status >= 500,
				RetryAfter: time.Duration(seconds) * time.Second,
			}
		}
		d, err := l.delta()
		if err != nil {
			return err
		}
		if !yield(d) {
			return errLeft
		}
		if d.Finish != "" {
			return nil
		}
	}
}

func (l line) delta() (llm.Delta, error) {
	d := llm.Delta{Index: l.Index, Done: l.Done, Usage: l.Usage, Finish: l.Finish, Model: l.Model, ID: l.ID,
		Requests: l.Requests}
	if len(l.Part) == 0 {
		return d, nil
	}
	var part linePart
	if err := json.Unmarshal(l.Part, &part); err != nil {
		return d, err
	}
	switch part.Kind {
	case "text":
		d.Part = llm.Text{Text: part.Text, Opaque: part.Opaque}
	case "reasoning":
		d.Part = llm.Reasoning{Text: part.Text, Opaque: part.Opaque}
	case "media":
		d.Part = llm.Media{MIME: part.Name, URL: part.Text, Data: part.Data}
	case "call":
		d.Part = llm.ToolCall{ID: part.ID, Name: part.Name, Args: json.RawMessage(part.Text), Opaque: part.Opaque}
	default:
		return d, fmt.Errorf("unknown kind %q", part.Kind)
	}
	return d, nil
}

// linePart is a fragment of a part.
type linePart struct {
	Kind   string      `json:"kind"`
	ID     string      `json:"id,omitzero"`
	Name   string      `json:"name,omitzero"`
	Text   string      `json:"text,omitzero"`
	Data   []byte      `json:"data,omitzero"`
	Opaque *llm.Opaque `json:"opaque,omitzero"`
}

// linesHandler is the server of the API: it answers with the replies of behind.
func linesHandler(behind llm.Model) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req llm.Request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := json.NewEncoder(w)
		for d, err := range behind.Stream(r.Context(), &req) {
			l := toLine(d)
			if err != nil {
				failed := &llm.ProviderError{Status: 500, Code: llm.CodeServer, Message: err.Error()}
				errors.As(err, &failed)
				if s := failed.RetryAfter.Seconds(); s > 0 {
					w.Header().Set("Retry-After", strconv.Itoa(int(s)))
				}
				l = line{Error: &lineError{failed.Status, failed.Code, failed.Message}}
			}
			if l.Error == nil && d.Part == nil && !d.Done && d.Finish == "" && d.Usage == nil {
				continue // nothing that the API has a word for; an error may still set the header
			}
			if out.Encode(l) != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		}
	})
}

func toLine(d llm.Delta) line {
	l := line{Index: d.Index, Done: d.Done, Usage: d.Usage, Finish: d.Finish, Model: d.Model, ID: d.ID,
		Requests: d.Requests}
	var part linePart
	switch p := d.Part.(type) {
	case nil:
		return l
	case llm.Text:
		part = linePart{Kind: "text", Text: p.Text, Opaque: p.Opaque}
	case llm.Reasoning:
		part = linePart{Kind: "reasoning", Text: p.Text, Opaque: p.Opaque}
	case llm.Media:
		part = linePart{Kind: "media", Name: p.MIME, Text: p.URL, Data: p.Data}
	case llm.ToolCall:
		part = linePart{Kind: "call", ID: p.ID, Name: p.Name, Text: string(p.Args), Opaque: p.Opaque}
	}
	b, err := json.Marshal(part)
	if err != nil {
		panic(err) // strings and bytes
	}
	l.Part = b
	return l
}
