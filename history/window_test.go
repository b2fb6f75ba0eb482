package history_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

const small = 32_768 // the window of the long runs, in tokens

func options() history.WindowOptions { return history.WindowOptions{Tokens: small, Reserve: 4_096} }

// ends runs the work of s and checks what holds for each run: it ends with an answer, no request is
// refused more often than allowed or breaks a rule of the API, and every fact is found.
func ends(t *testing.T, s *longwork.Survey, wire string, refusals int, o *history.WindowOptions) *pawl.Result {
	t.Helper()
	start := time.Now()
	res, err := s.Run(t, wire, history.Window(o))
	m := &s.Meter
	t.Logf("%s: %d requests, %.1f M tokens, largest %d, %.1f %% cached, %d edits, %d refused, price %.2f, %v", wire, m.Requests,
		float64(m.Sent)/1e6, m.Largest, 100*m.Share(), m.Edits, m.Refused, m.Price(), time.Since(start))
	switch {
	case err != nil:
		t.Fatal(err)
	case res.Stop != pawl.StopAnswer:
		t.Errorf("stop %s: %s", res.Stop, res.Cause)
	}
	if m.Refused > refusals || len(m.Violations) > refusals {
		t.Errorf("%d refusals, violations %.1000q", m.Refused, m.Violations)
	}
	if got := s.Known(res); got != s.Facts {
		t.Errorf("%d facts of %d", got, s.Facts)
	}
	return res
}

// A turn of 500 pages in a window of 32k tokens ends with every fact, over each API.
func TestWindowSurvey(t *testing.T) {
	soak.Sequential(t)
	for _, wire := range longwork.Wires {
		t.Run(wire, func(t *testing.T) {
			pages := soak.N(45, 500)
			s := &longwork.Survey{Pages: pages, Facts: pages / 10, Least: 2_000, Most: 8_000, Window: small,
				Think: wire != "chat"}
			o := options()
			ends(t, s, wire, 0, &o)
			m := &s.Meter
			if m.Largest > (small-4_096)*9/10 {
				t.Errorf("the largest request has %d tokens", m.Largest)
			}
			if pages == 500 && (m.Sent > 10_500_000 || m.Share() < 0.86 || m.Edits > 65 || m.Price() > 2.4) {
				t.Errorf("sent %d, cached %.3f, %d edits, price %.2f", m.Sent, m.Share(), m.Edits, m.Price())
			}
		})
	}
}

// The same with results of 1 to 40 KB, 10 MB in all, of which the longest are stored.
func TestWindowLargeResults(t *testing.T) {
	soak.Sequential(t)
	for _, wire := range soak.N(longwork.Wires[:1], longwork.Wires) {
		pages := soak.N(150, 500)
		s := &longwork.Survey{Pages: pages, Facts: pages / 10, Least: 1_000, Most: 40_000, Window: small, Shelf: true}
		o := options()
		ends(t, s, wire, 0, &o)
		whole := 0 // tokens, if each request had all pages so far
		for i := range pages {
			whole += len(s.Page(i)) * (pages - i) * 10 / 34
		}
		if s.Meter.Sent > whole/4 || s.Meter.Share() < 0.8 {
			t.Errorf("sent %d tokens of %d, cached %.3f", s.Meter.Sent, whole, s.Meter.Share())
		}
	}
}

// A long result among short ones has a quarter of the room. Long results in turn share it, and each
// of them has at least a third of that. The result of a call that is made again has the quarter.
func TestWindowShare(t *testing.T) {
	const quarter = (small - 4_096) * 3 / 4 // bytes
	for _, test := range []struct {
		name        string
		sizes       []int
		least, most int // of the last result, as sent
	}{
		{"one", []int{500, 500, 500, 4 * quarter}, quarter * 8 / 10, quarter * 11 / 10},
		{"in turn", []int{quarter, quarter + 1, quarter + 2, 4 * quarter}, quarter / 4, quarter * 4 / 10},
		{"after one", []int{quarter / 2, 500, 4 * quarter}, quarter * 35 / 100, quarter * 55 / 100},
		{"again", []int{quarter, 4 * quarter, 4 * quarter}, quarter * 8 / 10, quarter * 11 / 10},
	} {
		read := pawl.Func("read", "Reads.", func(_ context.Context, in struct {
			Size int `json:"size"`
		}) (string, error) {
			return strings.Repeat("a line of text. ", in.Size/16), nil
		})
		read.MaxResult = -1
		var turns []script.Turn
		for _, size := range test.sizes {
			turn := script.Call("read", map[string]any{"size": size})
			turn.Usage = &llm.Usage{} // so that a token has 3 bytes
			turns = append(turns, turn)
		}
		m := script.New(append(turns, script.Say("done"))...)
		o := options()
		a := &pawl.Agent{Model: m, Tools: []pawl.Toolset{read, artifact.Reader{}},
			Middleware: []pawl.Middleware{history.Window(&o)}}
		if _, err := a.Run(t.Context(), llm.User("Read.")); err != nil {
			t.Fatal(err)
		}
		msgs := m.Requests()[len(test.sizes)].Messages
		if n := len(form(msgs[len(msgs)-1])); n < test.least || n > test.most {
			t.Errorf("%s: the last result has %d bytes, want %d to %d", test.name, n, test.least, test.most)
		}
	}
}

// Controls: without the middleware, and with the bound for one round alone, the run dies. Each tier
// alone does the work.
func TestWindowTiers(t *testing.T) {
	soak.Sequential(t)
	base := longwork.Survey{Pages: soak.N(75, 150), Facts: 15, Least: 2_000, Most: 8_000, Window: small}
	for name, ws := range map[string][]pawl.Middleware{
		"nothing":        nil,
		"other function": {history.LastTurns(2)},
		"cut alone":      {history.Window(history.Tiers(options(), true, true, false))},
	} {
		s := longwork.Survey{Pages: base.Pages, Facts: base.Facts, Least: base.Least, Most: base.Most,
			Window: base.Window}
		var pe *llm.ProviderError
		_, err := s.Run(t, "chat", ws...)
		if !errors.As(err, &pe) || pe.Code != llm.CodeContextLength || s.Meter.Requests > 40 {
			t.Errorf("%s: %v after %d requests", name, err, s.Meter.Requests)
		}
	}
	for name, o := range map[string]*history.WindowOptions{
		"stubs alone": history.Tiers(options(), false, true, true),
		"fold alone":  history.Tiers(options(), true, false, true),
	} {
		t.Run(name, func(t *testing.T) {
			s := longwork.Survey{Pages: base.Pages, Facts: base.Facts, Least: base.Least, Most: base.Most,
				Window: base.Window}
			ends(t, &s, "chat", 0, o)
		})
	}
}

// A window that is stated twice too large, or not at all, is learned from at most two refusals.
func TestWindowLearns(t *testing.T) {
	soak.Sequential(t)
	for name, o := range map[string]history.WindowOptions{
		"twice too large": {Tokens: 2 * small, Reserve: 4_096},
		"unknown":         {},
	} {
		t.Run(name, func(t *testing.T) {
			s := &longwork.Survey{Pages: soak.N(75, 500), Facts: 15, Least: 2_000, Most: 8_000, Window: small}
			if soak.On() {
				s.Facts = 50
			}
			ends(t, s, "chat", 2, &o)
			if s.Meter.Refused == 0 {
				t.Error("no request was refused: the test shows nothing")
			}
		})
	}
}

// Tokens may be short or long, and the provider may report no usage.
func TestWindowTokens(t *testing.T) {
	soak.Sequential(t)
	pages := soak.N(50, 100)
	for _, per := range []float64{2.2, 4.5} {
		s := &longwork.Survey{Pages: pages, Facts: 10, Least: 2_000, Most: 8_000, Window: small, BytesPerToken: per}
		o := options()
		ends(t, s, "chat", 0, &o)
	}
	s := &longwork.Survey{Pages: pages, Facts: 10, Least: 2_000, Most: 8_000, Window: small,
		BytesPerToken: 2.6, Blind: true}
	o := options()
	ends(t, s, "chat", 0, &o)
}

// The results of one round do not exceed the window together.
func TestWindowRound(t *testing.T) {
	s := &longwork.Survey{Pages: 60, Least: 8_000, Most: 8_100, Window: small}
	burst := &burst{Survey: s, calls: 24}
	o := options()
	res, err := burst.run(t, history.Window(&o))
	if err != nil || res.Stop != pawl.StopAnswer || s.Meter.Refused > 0 || s.Meter.Largest > small {
		t.Errorf("%v, %+v", err, s.Meter)
	}
	s.Meter = longwork.Meter{}
	_, err = burst.run(t, history.Window(history.Tiers(o, false, false, true)))
	if err == nil && s.Meter.Refused == 0 {
		t.Error("without the bound for a round, the run should be refused")
	}
}

// 200 tools of a kilobyte count from the first request on.
func TestWindowTools(t *testing.T) {
	soak.Sequential(t)
	s := &longwork.Survey{Pages: soak.N(60, 100), Facts: 10, Least: 4_000, Most: 12_000, Window: 131_072}
	a := s.Agent(s.Provider(t, "chat"), history.Window(&history.WindowOptions{Tokens: 131_072}))
	for i := range 200 {
		a.Tools = append(a.Tools, pawl.Func(fmt.Sprintf("tool_%d", i), strings.Repeat("It does this and that. ", 45),
			func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	res, err := a.Run(context.Background(), llm.User("Survey the mill."))
	if err != nil || res.Stop != pawl.StopAnswer || s.Meter.Refused > 0 || s.Known(res) != 10 {
		t.Errorf("%v, %+v", err, s.Meter)
	}
	if s.Meter.Largest < 70_000 {
		t.Errorf("the largest request has %d tokens: nothing was put away", s.Meter.Largest)
	}
}

// The record names every call with an effect, with its outcome and its id, after many folds.
func TestWindowWrites(t *testing.T) {
	soak.Sequential(t)
	s := &longwork.Survey{Pages: soak.N(350, 500), Least: 2_000, Most: 8_000, Window: small, Writes: 10}
	var last string
	spy := pawl.Middleware{Model: func(m llm.Model) llm.Model { return &spying{m, &last} }}
	o := options()
	if _, err := s.Run(t, "chat", history.Window(&o), spy); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(last, `note {"page":`); n < 30 || n != strings.Count(last, ": ok\n") {
		t.Errorf("%d calls are named:\n%.4000s", n, last)
	}
	for page := 5; page < 300; page += 10 {
		if !strings.Contains(last, fmt.Sprintf(`note {"page":%d}: ok`, page)) {
			t.Errorf("the note of page %d is not in the record", page)
		}
	}
}
