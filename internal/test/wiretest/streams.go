package wiretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// sampled is the number of bytes of cut streams that a wire's test reads if PAWL_FULL is not set.
// With the race detector this takes some seconds.
const sampled = 64 << 20

// Streams proves two properties. A stream has the same reply however it arrives: with CRLF or LF,
// in pieces of any size, and with spaces that give each event another beginning. A stream that is
// cut at any byte has the same reply or ends with a *llm.ProviderError, and has no call that the
// whole stream lacks, neither in its reply nor sealed before its end, when an executor might start
// it. own are cut at every byte. The recorded streams are cut at places drawn from a fixed seed,
// or, with PAWL_FULL=1, at every byte.
func Streams(t *testing.T, w *Wire, own ...string) {
	t.Run("own", func(t *testing.T) {
		for i, body := range own {
			for _, f := range faults(w, []byte(body), every) {
				t.Errorf("stream %d: %s\n%s", i, f, body)
			}
		}
		if len(own) == 0 {
			t.Error("there are no streams")
		}
	})
	t.Run("recorded", func(t *testing.T) {
		var bodies [][]byte
		var names []string
		size := 0
		all, _ := w.exchanges(t)
		for _, e := range all {
			if !e.Streaming || e.Response.Status != 200 {
				continue
			}
			body, err := e.Body()
			if err != nil {
				t.Fatal(err)
			}
			bodies, names, size = append(bodies, body), append(names, e.Name()), size+len(body)
		}
		// On average a cut stream has half its length, so the number of cuts keeps the sum within
		// the bound.
		n := max(4, 2*sampled/max(1, size))
		if os.Getenv("PAWL_FULL") != "" {
			n = every
		}
		for i, body := range bodies {
			for _, f := range faults(w, body, n) {
				t.Errorf("%s: %s", names[i], f)
			}
		}
		t.Logf("%d streams of %d bytes in all, each cut at %d places (%d: at every byte)", len(bodies), size, n, every)
		if len(bodies) < 20 {
			t.Errorf("only %d streams were found", len(bodies))
		}
	})
}

const every = 1 << 30

// StreamsControl is the negative control of Streams. It finds a model that returns the content of a
// cut stream as a reply, and a model that loses a byte between pieces. body is a stream with a
// call.
func StreamsControl(t *testing.T, w *Wire, body string) {
	t.Helper()
	if f := faults(w, []byte(body), every); len(f) > 0 {
		t.Fatalf("the adapter itself fails: %v", f)
	}
	spoilt := *w
	spoilt.Open = func(h http.RoundTripper) llm.Model { return credulous{w.Open(h)} }
	if len(faults(&spoilt, []byte(body), every)) == 0 {
		t.Error("calls of cut streams are not found")
	}
	spoilt.Open = func(h http.RoundTripper) llm.Model {
		return w.Open(Transport(func(r *http.Request) (*http.Response, error) {
			res, err := h.RoundTrip(r)
			if p, ok := res.Body.(*pieces); ok {
				p.left = bytes.Replace(p.left, []byte(`\"`), []byte(`\" `), 1)
			}
			return res, err
		}))
	}
	if len(faults(&spoilt, []byte(body), 1)) == 0 {
		t.Error("a byte too many between pieces is not found")
	}
}

// credulous seals open parts and ends normally where the reply was cut.
type credulous struct{ llm.Model }

// Unwrap returns the wrapped model.
func (m credulous) Unwrap() llm.Model { return m.Model }

func (m credulous) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		last := -1
		for d, err := range m.Model.Stream(ctx, req) {
			if err != nil {
				if last >= 0 {
					yield(llm.Delta{Index: last, Done: true}, nil)
				}
				yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
				return
			}
			switch _, call := d.Part.(llm.ToolCall); {
			case d.Done:
				last = -1
			case call:
				last = d.Index
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// faults returns the faults of w's reading of a stream that is cut at n places.
func faults(w *Wire, body []byte, n int) (bad []string) {
	fault := func(format string, args ...any) {
		if len(bad) < 5 {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(body))))
	want, _, err := receive(w, bytes.NewReader(body))
	whole := Outcome(want, err)
	if said := Outcome(w.Decode(200, true, body)); said != whole && !typed(err) {
		fault("over HTTP it is %s\nbut decoded %s", whole, said)
	}
	if err != nil && !typed(err) {
		fault("%v is no whole ProviderError", err)
	}
	lf := bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	for name, form := range map[string][]byte{"LF": lf, "CRLF": bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n")), "spaces": spaced(lf)} {
		for what, r := range map[string]io.Reader{"at once": bytes.NewReader(form), "in pieces": &pieces{form, random}} {
			got, _, err := receive(w, r)
			// Arguments that are pretty-printed across lines have the line ends of the stream.
			if o := Outcome(got, err); strings.ReplaceAll(o, "\r\n", "\n") != strings.ReplaceAll(whole, "\r\n", "\n") {
				fault("with %s, %s, it is %s\nwant %s", name, what, o, whole)
			}
		}
	}
	step := max(1, len(body)/n)
	for at := 0; at < len(body); at += step {
		cut := at
		if step > 1 {
			cut = min(len(body)-1, at+random.IntN(step))
		}
		got, begun, cutErr := receive(w, bytes.NewReader(body[:cut]))
		if cutErr != nil && !typed(cutErr) {
			fault("cut at %d: %v is no whole ProviderError", cut, cutErr)
		}
		if err != nil {
			continue
		}
		if cutErr == nil {
			begun = append(begun, got.Message.Calls()...)
		}
		for _, c := range begun {
			if !slices.ContainsFunc(want.Message.Calls(), func(o llm.ToolCall) bool {
				return o.ID == c.ID && o.Name == c.Name && bytes.Equal(o.Args, c.Args)
			}) {
				fault("cut at %d it has the call %s %s %s, which the whole has not", cut, c.ID, c.Name, c.Args)
			}
		}
	}
	return bad
}

// typed reports whether err is a *llm.ProviderError with the required content.
func typed(err error) bool {
	var e *llm.ProviderError
	return errors.As(err, &e) && e.Code != "" && e.Provider != "" && !strings.HasPrefix(e.Message, "part ")
}

// receive lets the adapter read a stream. It returns the reply and the calls that were sealed
// before the end, which an executor may start.
func receive(w *Wire, body io.Reader) (*llm.Response, []llm.ToolCall, error) {
	m := w.Open(Transport(func(*http.Request) (*http.Response, error) {
		r, ok := body.(io.ReadCloser)
		if !ok {
			r = io.NopCloser(body)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r, ContentLength: -1}, nil
	}))
	res, sealed := new(llm.Response), []llm.ToolCall(nil)
	for d, err := range m.Stream(context.Background(), &llm.Request{Messages: []llm.Message{llm.User("go")}}) {
		if err == nil {
			err = res.Add(d)
		}
		if err != nil {
			return nil, sealed, err
		}
		if d.Done && d.Index < len(res.Message.Parts) {
			if c, ok := res.Message.Parts[d.Index].(llm.ToolCall); ok {
				sealed = append(sealed, c)
			}
		}
	}
	if res.Finish == "" {
		return nil, sealed, errors.New("a reply without a finish reason")
	}
	return res, sealed, nil
}

// pieces reads a body in pieces of any size.
type pieces struct {
	left   []byte
	random *rand.Rand
}

func (p *pieces) Close() error { return nil }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:1+p.random.IntN(min(len(p.left), 100))])
	p.left = p.left[n:]
	return n, nil
}

// spaced returns a stream whose events have spaces after their first bracket. Each event has a
// different number of spaces than the previous one.
func spaced(body []byte) []byte {
	n := 0
	var out []byte
	for line := range bytes.Lines(body) {
		if head := []byte("data: {"); bytes.HasPrefix(line, head) {
			n++
			out = append(append(out, head...), bytes.Repeat([]byte{' '}, n%3)...)
			line = line[len(head):]
		}
		out = append(out, line...)
	}
	return out
}
