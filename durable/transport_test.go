package durable_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/store"
)

// answering is a provider with prepared answers, one for each request.
type answering struct {
	answers []string
	bodies  [][]byte
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.bodies = append(a.bodies, body)
	if len(a.answers) == 0 {
		return nil, errors.New("nobody answers")
	}
	text := a.answers[0]
	a.answers = a.answers[1:]
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
}

const (
	callsPay = `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"pay","arguments":"{\"amount\":5}"}}]}}]}`
	saysPaid = `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"Paid."}}]}`
)

// wired is the agent paying over a provider.
func wired(a *answering, instructions string) *pawl.Agent {
	agent := paying(new([]string), 0)
	agent.Model = openai.NewChat("m", &openai.Options{BaseURL: "http://provider.test/v1", Key: "sk-secret-key", Retries: -1, HTTP: durable.Transport(a)})
	agent.Instructions = instructions
	return agent
}

// The sent bytes are stored without the key, also over a pause of a week. A replay builds them
// again without sending them, and reports differences.
func TestReplayComparesBytes(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	live := &answering{answers: []string{callsPay, saysPaid}}
	w := pending(t, eng, wired(live, "Be exact."))
	res, err := eng.Runner("r", wired(live, "Be exact.")).Run(t.Context(), llm.DecisionMessage(w.Approve("alice")))
	if err != nil || res.Text() != "Paid." || len(live.bodies) != 2 {
		t.Fatalf("%v, %v, %d requests", res, err, len(live.bodies))
	}
	again := new(answering)
	p, err := eng.Replay(t.Context(), "r", wired(again, "Be exact."))
	if err != nil || p.Requests != 2 || p.Bytes != 2 || len(again.bodies) != 0 || p.Result.Text() != "Paid." {
		t.Errorf("%+v, %v, %d requests sent", p, err, len(again.bodies))
	}
	_, err = eng.Replay(t.Context(), "r", wired(again, "Be brief."))
	var m *durable.Mismatch
	if !errors.As(err, &m) || !errors.Is(err, durable.ErrChanged) || m.Key != "run/0/model" || !bytes.Equal(m.Was, live.bodies[0]) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "from byte 56 on it was ") || !strings.Contains(text, "exact.") || !strings.Contains(text, "brief.") {
		t.Errorf("got %s", text)
	}
	records, err := eng.Journal.JournalRecords(t.Context(), store.Scope{}, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if bytes.Contains(r.Body, []byte("sk-secret-key")) {
			t.Errorf("the key is in the journal: %s", r.Body)
		}
	}
}

// A fork has its own Meta and other results, and its copied requests are not compared.
func TestForkWithOtherResults(t *testing.T) {
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	live := &answering{answers: []string{callsPay, saysPaid, saysPaid}}
	w := pending(t, eng, wired(live, ""))
	first := eng.Runner("r", wired(live, ""))
	if _, err := first.Run(t.Context(), llm.DecisionMessage(w.Approve("alice"))); err != nil {
		t.Fatal(err)
	}
	fork := durable.Fork{
		Run:   "r",
		ID:    "f",
		Steps: 1,
		Meta:  []byte(`{"of":"r"}`),
		Results: func(key llm.Key, x pawl.Execution) (llm.ToolResult, bool) {
			return llm.TextResult("refused"), key == "run/1/0" && x.Call.Name == "pay"
		},
	}
	if err := eng.Fork(t.Context(), fork); err != nil {
		t.Fatal(err)
	}
	if meta, err := eng.Meta(t.Context(), "f"); err != nil || string(meta) != `{"of":"r"}` {
		t.Errorf("%s, %v", meta, err)
	}
	if _, err := eng.Runner("f", wired(live, "Other instructions.")).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body := string(live.bodies[2]); !strings.Contains(body, "refused") || strings.Contains(body, "paid") {
		t.Errorf("the fork was told %s", body)
	}
	p, err := eng.Replay(t.Context(), "f", wired(new(answering), "Other instructions."))
	if err != nil || p.Requests != 1 || p.Bytes != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := eng.Fork(t.Context(), durable.Fork{Run: "r", ID: "g", Steps: 1}); err != nil {
		t.Fatal(err)
	}
	x, err := eng.Export(t.Context(), "g")
	if err != nil || len(x.Calls) != 1 || x.Calls[0].Execution.Result.Text() != "paid" {
		t.Errorf("%+v, %v", x, err)
	}
}

// A request is stored as its difference from the previous one, and restored completely.
func TestSentBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prev := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 20).Draw(t, "prev")
		body := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 20).Draw(t, "body")
		got, err := durable.Told(prev, body)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %q, %v, want %q", got, err, body)
		}
	})
	if _, err := durable.Told([]byte("one request"), []byte("one other request"), []byte("another")); err == nil {
		t.Error("a request is found behind another one than it was sent after")
	}
}
