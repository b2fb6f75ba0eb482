package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/longwork"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// wide is a window in which Claude summarizes: High of it is above 50,000 tokens.
var wide = soak.N(70_000, 100_000)

func native() *history.WindowOptions {
	return &history.WindowOptions{Tokens: wide, Reserve: 4_096, Native: true,
		Pinned: func([]llm.Message) string { return listed }}
}

const listed = "The list: the wheel is open."

// book returns a survey of n pages with 2 to 8 KB each. In make test it has a quarter of the pages,
// each four times as large, and fewer as the window is smaller: it fills the window as often, with
// less than a quarter of the requests.
func book(n int) *longwork.Survey {
	times := soak.N(4, 1)
	pages := n / times * (wide / 10_000) / 10
	return &longwork.Survey{Pages: pages, Least: 2_000 * times, Most: 8_000 * times, Window: wide}
}

// summaries returns the summaries by a provider in messages.
func summaries(messages []llm.Message) (data []string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Reasoning); ok && r.Opaque != nil && strings.Contains(string(r.Opaque.Data), `"compaction"`) {
				data = append(data, string(r.Opaque.Data))
			}
		}
	}
	return data
}

// A provider that can summarize does so: each summary comes back byte for byte, with nothing before
// it, no request is refused, and every fact is found. Without Native, nothing is ordered.
func TestWindowNative(t *testing.T) {
	soak.Sequential(t)
	t.Run("summaries", nativeSummaries)
	t.Run("clears", nativeClears)
	t.Run("moves", nativeMoves)
	t.Run("control", nativeControl)
}

func nativeSummaries(t *testing.T) {
	high := soak.N("52723", "76723") // 80 % of the window without the reserve
	for _, test := range []struct {
		wire, model, order string
		summarizes         bool
	}{
		{"anthropic", "claude-sonnet-5-5", "", true}, // on demand: a request of its own
		{"responses", "gpt-5-mini", `[{"type":"compaction","compact_threshold":` + high + `}]`, true},
		{"anthropic", "claude-opus-4-1", "", false},
		{"responses", "gpt-4o", "", false},
		{"chat", "gpt-5-mini", "", false},
	} {
		for _, on := range []bool{true, false} {
			if !on && test.wire != "responses" {
				continue // one control is enough
			}
			s := book(60)
			if test.summarizes {
				s = book(soak.N(150, 500))
			}
			s.Facts = s.Pages / soak.N(5, 10)
			s.Think = test.summarizes
			s.Model = test.model
			s.Skill = "Oil the wheel first."
			o := native()
			o.Native = on
			res := ends(t, s, test.wire, 0, o)
			made := summaries(res.Messages)
			if want := on && test.summarizes; (len(made) >= 2) != want || (len(made) > 0) != want {
				t.Errorf("%s, %s, %v: %d summaries", test.wire, test.model, on, len(made))
			}
			ordered := strings.Contains(s.Body, "context_management")
			if ordered != (on && test.order != "") || on && !strings.Contains(s.Body, test.order) {
				t.Errorf("%s, %s, %v: ordered %v: %.300s", test.wire, test.model, on, ordered, s.Body)
			}
			if len(made) == 0 {
				continue
			}
			n := strings.Count(s.Body, `"compaction"`) - strings.Count(test.order, `"compaction"`)
			if n != 1 || !strings.Contains(s.Body, made[len(made)-1]) || strings.Contains(s.Body, "A record of earlier steps") {
				t.Errorf("%s: the last request has %d summaries, want the last of %q alone", test.wire, n, made)
			}
			// What is pinned follows the summary, since the provider drops what stands before it.
			_, after, _ := strings.Cut(s.Body, made[len(made)-1])
			if strings.Count(after, listed) != 1 || strings.Count(after, "> user/0: Survey the mill.") != 1 ||
				strings.Count(after, "> Oil the wheel first.") != 1 {
				t.Errorf("%s: what is pinned does not follow the summary once: %.2000s", test.wire, after)
			}
			if want := map[string]int{"anthropic": len(made)}[test.wire]; s.Meter.Summaries != want {
				t.Errorf("%s: %d requests for a summary, want %d", test.wire, s.Meter.Summaries, want)
			}
			if s.Meter.Edits < len(made)-1 || s.Meter.Edits > len(made)+2 {
				t.Errorf("%s: %d edits are reported, for %d summaries", test.wire, s.Meter.Edits, len(made))
			}
		}
	}
}

// Claude 4.5 clears old results. A notice says how many.
func nativeClears(t *testing.T) {
	s := book(80)
	s.Window = 0
	s.Facts = soak.N(4, 8)
	s.Model = "claude-haiku-4-5"
	a := s.Agent(s.Provider(t, "anthropic"), history.Window(native()))
	cleared := 0
	for e, err := range a.Stream(t.Context(), llm.User("Survey the mill.")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == pawl.EventNotice && e.Code == "context_cleared" {
			var edits []struct {
				Type string `json:"type"`
				Uses int    `json:"cleared_tool_uses"`
			}
			if err := json.Unmarshal(e.Data, &edits); err != nil || len(edits) != 1 || edits[0].Uses <= 0 {
				t.Fatalf("%v: %s", err, e.Data)
			}
			cleared++
		}
		if e.Kind == pawl.EventRunEnded && s.Known(e.Result) != s.Facts {
			t.Errorf("%d facts", s.Known(e.Result))
		}
	}
	if cleared == 0 || !strings.Contains(s.Body, `"clear_tool_uses_20250919"`) {
		t.Errorf("%d notices; the last request is %.300s", cleared, s.Body)
	}
}

// A run with summaries is killed and replayed like another.
func TestWindowNativeDurable(t *testing.T) {
	soak.Sequential(t)
	for _, wire := range soak.N([]string{"anthropic"}, []string{"anthropic", "responses"}) {
		make := func() *longwork.Survey {
			model := map[string]string{"anthropic": "claude-sonnet-5-5", "responses": "gpt-5-mini"}[wire]
			s := book(120)
			s.Facts = 5
			s.Model = model
			s.Wire = wire
			return s
		}
		whole, journal := make(), new(store.MemoryJournal)
		res := live(t, whole, journal, nil, history.Window(native()))
		if n := len(summaries(res.Messages)); n < 1 {
			t.Fatalf("%d summaries", n)
		}
		agent := whole.Agent(whole.Provider(t, wire, durable.Transport(nil)), history.Window(native()))
		e := &durable.Engine{Journal: journal}
		played, err := e.Replay(t.Context(), "survey", agent)
		// A summary on demand is a request before the reply: of the two requests, one is stored.
		if want := whole.Meter.Requests - whole.Meter.Summaries; err != nil || played.Bytes != want {
			t.Errorf("replay: %v, %d requests compared of %d", err, played.Bytes, want)
		}
		alike(t, make(), whole, res, soak.N([]int{10, 35, 18, 4}, []int{60, 200, 100, 20}), native())
	}
}

// Another provider gets the record and the text of the summary, and the first its summary again.
func nativeMoves(t *testing.T) {
	s := book(100)
	s.Model = "claude-sonnet-5-5"
	res, err := s.Run(t, "anthropic", history.Window(native()))
	if err != nil || len(summaries(res.Messages)) == 0 {
		t.Fatal(err, len(summaries(res.Messages)))
	}
	for _, move := range []struct{ wire, model, has, lacks string }{
		{"responses", "gpt-5-mini", "A record of earlier steps", `"signature"`},
		{"chat", "", "A record of earlier steps", `"signature"`},
		{"anthropic", "claude-opus-4-8", `"messages":[{"role":"assistant","content":[{"content":"summary of`, "A record of earlier steps"},
	} {
		other := &longwork.Survey{Window: wide, Model: move.model}
		a := other.Agent(other.Provider(t, move.wire), history.Window(native()))
		a.Limits.Rounds = 1_000
		if _, err := a.Resume(t.Context(), res, llm.User("And now?")); err != nil {
			t.Fatalf("%s: %v", move.wire, err)
		}
		made := summaries(res.Messages)
		if !strings.Contains(other.Body, move.has) || strings.Contains(other.Body, move.lacks) ||
			!strings.Contains(other.Body, "summary of") ||
			strings.Contains(other.Body, made[len(made)-1]) != (move.wire == "anthropic") {
			t.Errorf("%s: want %q and not %q: %.2000s", move.wire, move.has, move.lacks, other.Body)
		}
	}
}

// Control: the provider refuses a summary that was changed.
func nativeControl(t *testing.T) {
	s := book(100)
	s.Model = "claude-sonnet-5-5"
	res, err := s.Run(t, "anthropic", history.Window(native()))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range res.Messages {
		for i, p := range m.Parts {
			if r, ok := p.(llm.Reasoning); ok && len(summaries([]llm.Message{{Parts: []llm.Part{p}}})) > 0 {
				data := strings.Replace(string(r.Opaque.Data), "summary of", "account of", 1)
				r.Opaque = &llm.Opaque{Provider: r.Opaque.Provider, Data: []byte(data)}
				m.Parts[i] = r
			}
		}
	}
	a := s.Agent(s.Provider(t, "anthropic"), history.Window(native()))
	if _, err := a.Resume(t.Context(), res, llm.User("And now?")); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed summary: %v", err)
	}
}
