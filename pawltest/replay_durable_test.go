package pawltest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/store/sqlite"
)

// tapped records the body of each request of an adapter before any other layer.
type tapped struct {
	next http.RoundTripper

	mu     sync.Mutex
	bodies [][]byte
}

func (c *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.bodies = append(c.bodies, append([]byte(r.URL.Path+"\n"), body...))
	c.mu.Unlock()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.next.RoundTrip(r)
}

// kept counts the recorded and the played-back runs.
type kept struct {
	loops, runs, requests, bytes, refused int
	size                                  int // bytes of requests
	instructions, outcomes                int // negative controls that detected the change
}

// Every recorded tool loop runs with a journal. A replay from the journal, offline, makes the same
// requests, byte for byte. It detects a changed instruction, and a changed byte of a result.
func TestRecordedLoopsReplayFromTheJournal(t *testing.T) {
	soak.Sequential(t)
	corpora.Path(t, "provider-traffic")
	var s kept
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, api := range []struct {
		name string
		open opener
	}{{pawltest.Chat, openChat}, {pawltest.Responses, openResponses}, {pawltest.Anthropic, openAnthropic},
		{pawltest.Gemini, openGemini}} {
		t.Run(api.name, func(t *testing.T) {
			for _, c := range corpus(t, api.name) {
				if !c.Exchanges[0].Loop {
					continue
				}
				for i, loop := range loopsOf(t, c) {
					s.loops++
					var journal store.Journal = new(store.MemoryJournal)
					if s.loops%16 == 0 {
						journal = db
					}
					if err := keptLoop(t, fmt.Sprintf("%s-%s-%d", api.name, c.Name, i), loop, api.open, journal, &s); err != nil {
						t.Errorf("%s, loop %d: %v", c.Name, i, err)
					}
				}
			}
		})
	}
	t.Logf("%d loops, %d runs over a journal, %d ended by the provider's error as recorded: %d requests, %d bytes, made again byte for byte; %d changed instructions and %d changed results were found",
		s.loops, s.runs, s.refused, s.bytes, s.size, s.instructions, s.outcomes)
	if s.bytes != s.requests || s.instructions != s.runs || s.outcomes == 0 {
		t.Errorf("%d of %d requests were compared, %d of %d changed instructions found, and %d changed results", s.bytes, s.requests, s.instructions, s.runs, s.outcomes)
	}
}

func keptLoop(t *testing.T, id string, loop []pawltest.Exchange, open opener, journal store.Journal, s *kept) error {
	r, err := rehearse(loop)
	if err != nil {
		return err
	}
	server, err := pawltest.NewReplay(loop)
	if err != nil {
		return err
	}
	defer server.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	first := r.requests[0]
	var used atomic.Int64
	agent := func(carry *tapped, rounds int) *pawl.Agent {
		a := &pawl.Agent{
			Model:  open(cmp.Or(first.Model, loop[0].Info.Model, "named-by-the-url"), server.URL, carry),
			Tools:  r.tools(&used),
			Choice: first.Choice,
			Output: first.Output,
			Limits: pawl.Limits{AtLimit: pawl.AtLimitReturn, Rounds: cmp.Or(rounds, pawl.NoRounds)},
		}
		if len(a.Tools) == 0 || first.Choice.Check(first.Tools) != nil {
			a.Choice = llm.ToolChoice{}
		}
		return a
	}
	msgs := first.Messages
	if msgs[len(msgs)-1].Role == llm.RoleAssistant {
		msgs = append(msgs, llm.User("Go on."))
	}
	eng := &durable.Engine{Journal: journal}
	var res *pawl.Result
	for n := 0; server.Left() > 0; n++ {
		done := len(loop) - server.Left()
		if done > 0 {
			msgs = append(res.Messages, followUp(r.requests[done])...)
		}
		run := strings.Map(plainID, fmt.Sprintf("%s-%d", id, n))
		rounds := server.Left() - 1
		live := &tapped{next: durable.Transport(tr)}
		runner := eng.Runner(run, agent(live, rounds))
		res, err = runDurable(t.Context(), runner, msgs, loop[done].Streaming)
		var refused *llm.ProviderError
		last := loop[len(loop)-1].Response.Status
		failed := errors.As(err, &refused) && last >= 400 && refused.Status == last && server.Left() == 0 && res != nil
		if failed {
			s.refused++
		} else if err != nil {
			return fmt.Errorf("after %d of %d replies: %w", len(loop)-server.Left(), len(loop), err)
		}
		if len(loop)-server.Left() == done {
			return fmt.Errorf("a run asked nothing: %s %s", res.Stop, res.Cause)
		}
		if err := playedBack(t.Context(), eng, run, live, failed,
			func(c *tapped) *pawl.Agent { return agent(c, rounds) }, s); err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
	}
	return nil
}

// playedBack replays a run from the journal without a provider, and compares the requests of its
// adapter with the original requests. A last request that the provider refused has no reply and is
// not replayed.
func playedBack(ctx context.Context, eng *durable.Engine, run string, live *tapped, failed bool,
	agent func(*tapped) *pawl.Agent, s *kept) error {
	again := &tapped{next: durable.Transport(nobody{})}
	p, err := eng.Replay(ctx, run, agent(again))
	if err != nil {
		return err
	}
	want := live.bodies
	if failed {
		want = want[:len(want)-1]
	}
	s.requests += len(want)
	if p.Bytes != len(want) || p.Requests != len(want) || len(again.bodies) != len(want) {
		return fmt.Errorf("%d requests were sent, %d made again, %d compared, %d as bytes", len(want), len(again.bodies), p.Requests, p.Bytes)
	}
	for i := range want {
		if !bytes.Equal(want[i], again.bodies[i]) {
			return fmt.Errorf("request %d: sent\n%s\nmade again\n%s", i, want[i], again.bodies[i])
		}
		s.bytes++
		s.size += len(want[i])
	}
	if s.runs++; len(want) == 0 {
		s.instructions++ // there is nothing to compare
		return nil
	}
	other := agent(&tapped{next: durable.Transport(nobody{})})
	other.Instructions = "Be brief."
	var m *durable.Mismatch
	if _, err := eng.Replay(ctx, run, other); errors.As(err, &m) && errors.Is(err, durable.ErrChanged) && m.Key != "" {
		s.instructions++
	}
	forged := &durable.Engine{Journal: &oneByte{Journal: eng.Journal}}
	_, err = forged.Replay(ctx, run, agent(&tapped{next: durable.Transport(nobody{})}))
	switch {
	case forged.Journal.(*oneByte).changed && errors.As(err, &m):
		s.outcomes++
	case forged.Journal.(*oneByte).changed:
		return fmt.Errorf("another result was not found: %v", err)
	}
	return nil
}

// nobody answers no request.
type nobody struct{}

func (nobody) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s %s was sent", r.Method, r.URL)
}

// oneByte is a journal in which one letter of a result that a later request contains is changed,
// with all hashes correct.
type oneByte struct {
	store.Journal
	changed bool
}

func (j *oneByte) JournalRecords(ctx context.Context, s store.Scope, id string, after int64) ([]store.Record, error) {
	records, err := j.Journal.JournalRecords(ctx, s, id, after)
	prev, replies := "", 0
	for _, r := range records {
		if r.Kind == "reply" {
			replies++
		}
	}
	for i := range records {
		r := &records[i]
		at := bytes.Index(r.Body, []byte(`"outcome":"ok","result":{`))
		if at >= 0 && r.Kind == "outcome" && !j.changed && step(r.Key) < replies {
			if text := bytes.Index(r.Body[at:], []byte(`"text":"`)); text >= 0 {
				text += at + len(`"text":"`)
				if c := r.Body[text]; c >= 'a' && c < 'z' || c >= 'A' && c < 'Z' || c >= '0' && c < '9' {
					r.Body = bytes.Clone(r.Body)
					r.Body[text]++
					j.changed = true
				}
			}
		}
		r.Hash = r.Chain(id, prev)
		prev = r.Hash
	}
	return records, err
}

// step returns the number in the key of a call: the number of replies before its result.
func step(key string) int {
	n, _ := strconv.Atoi(strings.Split(key, "/")[1])
	return n
}

func plainID(r rune) rune {
	if r < 0x80 && (r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
		return r
	}
	return '_'
}

func runDurable(ctx context.Context, r *durable.Runner, msgs []llm.Message, streaming bool) (*pawl.Result, error) {
	if !streaming {
		return runtest.Ended(r.Run(ctx, msgs...))
	}
	return drain(r.Stream(ctx, msgs...))
}
