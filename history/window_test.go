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
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

const small = 32_768 // the window of the long runs, in tokens

func options() history.WindowOptions { return history.WindowOptions{Tokens: small, Reserve: 4_096} }

// ends runs the work of s and checks what holds for each run: it ends with an answer, no request is
// refused more often than allowed or breaks a rule of the API, and every fact is found.
func ends(t *testing.T, s *survey, wire string, refusals int, o *history.WindowOptions) *pawl.Result {
	t.Helper()
	start := time.Now()
	res, err := s.run(t, wire, history.Window(o))
	m := &s.meter
	t.Logf("%s: %d requests, %.1f M tokens, largest %d, %.1f %% cached, %d edits, %d refused, price %.2f, %v", wire, m.requests,
		float64(m.sent)/1e6, m.largest, 100*m.share(), m.edits, m.refused, m.price(), time.Since(start))
	switch {
	case err != nil:
		t.Fatal(err)
	case res.Stop != pawl.StopAnswer:
		t.Errorf("stop %s: %s", res.Stop, res.Cause)
	}
	if m.refused > refusals || len(m.violations) > refusals {
		t.Errorf("%d refusals, violations %.1000q", m.refused, m.violations)
	}
	if got := s.known(res); got != s.facts {
		t.Errorf("%d facts of %d", got, s.facts)
	}
	return res
}

// A turn of 500 pages in a window of 32k tokens ends with every fact, over each API.
func TestWindowSurvey(t *testing.T) {
	soak.Sequential(t)
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			pages := soak.N(60, 500)
			s := &survey{pages: pages, facts: pages / 10, least: 2_000, most: 8_000, window: small, think: wire != "chat"}
			o := options()
			ends(t, s, wire, 0, &o)
			m := &s.meter
			if m.largest > (small-4_096)*9/10 {
				t.Errorf("the largest request has %d tokens", m.largest)
			}
			if pages == 500 && (m.sent > 10_500_000 || m.share() < 0.86 || m.edits > 65 || m.price() > 2.4) {
				t.Errorf("sent %d, cached %.3f, %d edits, price %.2f", m.sent, m.share(), m.edits, m.price())
			}
		})
	}
}

// The same with results of 1 to 40 KB, 10 MB in all, of which the longest are stored.
func TestWindowLargeResults(t *testing.T) {
	soak.Sequential(t)
	for _, wire := range soak.N(wires[:1], wires) {
		pages := soak.N(150, 500)
		s := &survey{pages: pages, facts: pages / 10, least: 1_000, most: 40_000, window: small, shelf: true}
		o := options()
		ends(t, s, wire, 0, &o)
		whole := 0 // tokens, if each request had all pages so far
		for i := range pages {
			whole += len(s.page(i)) * (pages - i) * 10 / 34
		}
		if s.meter.sent > whole/4 || s.meter.share() < 0.8 {
			t.Errorf("sent %d tokens of %d, cached %.3f", s.meter.sent, whole, s.meter.share())
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
	base := survey{pages: soak.N(75, 150), facts: 15, least: 2_000, most: 8_000, window: small}
	for name, ws := range map[string][]pawl.Middleware{
		"nothing":        nil,
		"other function": {history.LastTurns(2)},
		"cut alone":      {history.Window(history.Tiers(options(), true, true, false))},
	} {
		s := survey{pages: base.pages, facts: base.facts, least: base.least, most: base.most, window: base.window}
		var pe *llm.ProviderError
		_, err := s.run(t, "chat", ws...)
		if !errors.As(err, &pe) || pe.Code != llm.CodeContextLength || s.meter.requests > 40 {
			t.Errorf("%s: %v after %d requests", name, err, s.meter.requests)
		}
	}
	for name, o := range map[string]*history.WindowOptions{
		"stubs alone": history.Tiers(options(), false, true, true),
		"fold alone":  history.Tiers(options(), true, false, true),
	} {
		t.Run(name, func(t *testing.T) {
			s := survey{pages: base.pages, facts: base.facts, least: base.least, most: base.most, window: base.window}
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
			s := &survey{pages: soak.N(75, 500), facts: 15, least: 2_000, most: 8_000, window: small}
			if soak.On() {
				s.facts = 50
			}
			ends(t, s, "chat", 2, &o)
			if s.meter.refused == 0 {
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
		s := &survey{pages: pages, facts: 10, least: 2_000, most: 8_000, window: small, bytesPerToken: per}
		o := options()
		ends(t, s, "chat", 0, &o)
	}
	s := &survey{pages: pages, facts: 10, least: 2_000, most: 8_000, window: small, bytesPerToken: 2.6, blind: true}
	o := options()
	ends(t, s, "chat", 0, &o)
}

// The results of one round do not exceed the window together.
func TestWindowRound(t *testing.T) {
	s := &survey{pages: 60, least: 8_000, most: 8_100, window: small}
	burst := &burst{survey: s, calls: 24}
	o := options()
	res, err := burst.run(t, history.Window(&o))
	if err != nil || res.Stop != pawl.StopAnswer || s.meter.refused > 0 || s.meter.largest > small {
		t.Errorf("%v, %+v", err, s.meter)
	}
	s.meter = meter{}
	_, err = burst.run(t, history.Window(history.Tiers(o, false, false, true)))
	if err == nil && s.meter.refused == 0 {
		t.Error("without the bound for a round, the run should be refused")
	}
}

// 200 tools of a kilobyte count from the first request on.
func TestWindowTools(t *testing.T) {
	soak.Sequential(t)
	s := &survey{pages: 100, facts: 10, least: 4_000, most: 12_000, window: 131_072}
	a := s.agent(s.provider(t, "chat"), history.Window(&history.WindowOptions{Tokens: 131_072}))
	for i := range 200 {
		a.Tools = append(a.Tools, pawl.Func(fmt.Sprintf("tool_%d", i), strings.Repeat("It does this and that. ", 45),
			func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	res, err := a.Run(context.Background(), llm.User("Survey the mill."))
	if err != nil || res.Stop != pawl.StopAnswer || s.meter.refused > 0 || s.known(res) != 10 {
		t.Errorf("%v, %+v", err, s.meter)
	}
	if s.meter.largest < 70_000 {
		t.Errorf("the largest request has %d tokens: nothing was put away", s.meter.largest)
	}
}

// The record names every call with an effect, with its outcome and its id, after many folds.
func TestWindowWrites(t *testing.T) {
	soak.Sequential(t)
	s := &survey{pages: soak.N(350, 500), least: 2_000, most: 8_000, window: small, writes: 10}
	var last string
	spy := pawl.Middleware{Model: func(m llm.Model) llm.Model { return &spying{m, &last} }}
	o := options()
	if _, err := s.run(t, "chat", history.Window(&o), spy); err != nil {
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
