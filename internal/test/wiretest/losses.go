package wiretest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// Frames are the events of streams in which one is lost or doubled.
type Frames struct {
	// Kind names the kind of an event in the table, from its data.
	Kind func(data []byte) string
	// Silent are the kinds whose loss or repetition the wire cannot show: it states their content
	// once. Empty means that each change of a call is an error.
	Silent []string
	// Stream makes a stream of a whole reply, for a wire with few recorded streams. nil means that
	// whole replies are not played.
	Stream func(body []byte) []byte
}

// The effects that the loss or the repetition of an event can have on the calls of a reply.
const (
	lossSame    = iota // the calls of the whole stream
	lossError          // a typed error: no call runs
	lossInvalid        // a call whose arguments are not JSON
	lossOther          // a call with other arguments that are JSON
	lossFewer          // not all calls
	lossMore           // more calls
	lossEffects
)

// LossRow counts the effects for one kind of event, and for one change.
type LossRow struct {
	Kind    string
	Change  string // "lost" or "doubled"
	Effects [lossEffects]int
}

// Plays returns the number of streams that were played.
func (r *LossRow) Plays() (n int) {
	for _, e := range r.Effects {
		n += e
	}
	return n
}

// Wrong returns the number of streams with calls that the whole stream has not, or without some
// that it has.
func (r *LossRow) Wrong() int {
	return r.Effects[lossOther] + r.Effects[lossFewer] + r.Effects[lossMore]
}

// Lost proves that no call runs that the whole stream does not have, and that no call is missing,
// when one event is lost or doubled, except for the kinds in f.Silent. It writes the part of a page
// with the effects of each kind.
func Lost(t *testing.T, w *Wire, f *Frames, page, part string) {
	t.Helper()
	rows := Losses(t, w, f, w.Open)
	for i := range rows {
		r := &rows[i]
		if bad := r.Wrong() + r.Effects[lossInvalid]; bad > 0 && !slices.Contains(f.Silent, r.Kind) {
			t.Errorf("%s %s: %d of %d streams have other calls: %v", r.Kind, r.Change, bad, r.Plays(), r.Effects)
		}
	}
	table, plays, wrong := LossTable(rows)
	runs, bad := Executions(t, w, f, w.Open)
	for _, b := range bad {
		t.Error(b)
	}
	t.Logf("%d streams, %d with other calls; %d runs, %d with wrong executions", plays, wrong, runs, len(bad))
	if plays < 200 || runs < 200 {
		t.Errorf("only %d streams were played, and %d runs", plays, runs)
	}
	Part(t, page, part, table)
}

// Losses plays each recorded stream that has a call, once for each event that is dropped and once
// for each that is doubled. It returns the effects by kind of event.
func Losses(t *testing.T, w *Wire, f *Frames, open func(http.RoundTripper) llm.Model) []LossRow {
	t.Helper()
	var rows []LossRow
	w.changes(t, f, func(name string, changed []byte, kind, change string, want []string) {
		var effect int
		res, early, err := receive(&Wire{Open: open}, bytes.NewReader(changed))
		if err != nil {
			effect = lossError
			if !typed(err) {
				t.Errorf("%s, %s %s: %v is no whole ProviderError", name, change, kind, err)
			}
		}
		if err == nil {
			early = nil
			if !res.Finish.Cut() {
				early = res.Message.Calls()
			}
			effect = effectOf(want, early)
		} else if e := effectOf(want, early); len(early) > 0 && (e == lossOther || e == lossMore) {
			t.Errorf("%s, %s %s: a call was sealed that the whole stream has not: %v", name, change, kind, early)
		}
		i := slices.IndexFunc(rows, func(r LossRow) bool { return r.Kind == kind && r.Change == change })
		if i < 0 {
			i, rows = len(rows), append(rows, LossRow{Kind: kind, Change: change})
		}
		rows[i].Effects[effect]++
	})
	slices.SortFunc(rows, func(a, b LossRow) int {
		return cmp.Or(strings.Compare(b.Change, a.Change), strings.Compare(a.Kind, b.Kind))
	})
	return rows
}

// effectOf compares the calls of a changed stream with the calls of the whole stream.
func effectOf(want []string, calls []llm.ToolCall) int {
	left := slices.Clone(want)
	effect := lossSame
	for _, c := range calls {
		i := slices.Index(left, callText(c))
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case len(c.Args) > 0 && !json.Valid(c.Args):
			return lossInvalid
		default:
			effect = lossOther
		}
	}
	switch {
	case len(calls) > len(want):
		return lossMore
	case len(calls) < len(want) && effect == lossSame:
		return lossFewer
	}
	return effect
}

// callText is a call without an id, because ids of pawl's own depend on the position.
func callText(c llm.ToolCall) string { return c.Name + " " + Canonical(c.Args) }

// changes calls play with each stream with calls, changed at each of its events. want has
// the calls of the whole stream.
func (w *Wire) changes(t *testing.T, f *Frames,
	play func(name string, changed []byte, kind, change string, want []string)) {
	t.Helper()
	all, _ := w.exchanges(t)
	for _, e := range all {
		body, err := e.Body()
		if err != nil || e.Response.Status != 200 {
			continue
		}
		if !e.Streaming {
			if f.Stream == nil {
				continue
			}
			body = f.Stream(body)
		}
		res, _, err := receive(w, bytes.NewReader(body))
		if err != nil || res.Finish.Cut() || !res.Message.HasCalls() {
			continue
		}
		var want []string
		for _, c := range res.Message.Calls() {
			want = append(want, callText(c))
		}
		slices.Sort(want)
		frames := bytes.SplitAfter(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
		for i, frame := range frames {
			_, data, ok := bytes.Cut(frame, []byte("data:"))
			if !ok {
				continue
			}
			kind := f.Kind(bytes.TrimSpace(data))
			before, after := bytes.Join(frames[:i], nil), bytes.Join(frames[i+1:], nil)
			play(e.Name(), slices.Concat(before, after), kind, "lost", want)
			play(e.Name(), slices.Concat(before, frame, frame, after), kind, "doubled", want)
		}
	}
}

// Executions runs an agent over each changed stream, except for the kinds in f.Silent, with tools
// that change something and record their arguments. It returns the number of runs, and the wrong
// ones: not all calls of the whole stream were executed, or other calls. A run without calls is
// right.
func Executions(t *testing.T, w *Wire, f *Frames, open func(http.RoundTripper) llm.Model) (runs int, wrong []string) {
	t.Helper()
	w.changes(t, f, func(name string, changed []byte, kind, change string, want []string) {
		if slices.Contains(f.Silent, kind) {
			return
		}
		runs++
		if got := executed(open, changed, toolsOf(want)); len(got) > 0 && !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s, %s %s: executed %.300s, want %.300s", name, change, kind, got, want))
		}
	})
	return runs, wrong
}

// toolsOf returns the names of the tools in calls of callText.
func toolsOf(calls []string) (names []string) {
	for _, c := range calls {
		name, _, _ := strings.Cut(c, " ")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// executed runs an agent whose first request gets body, and returns the executed calls.
func executed(open func(http.RoundTripper) llm.Model, body []byte, tools []string) []string {
	var mu sync.Mutex
	var calls []string
	asked := false
	a := &pawl.Agent{Name: "a", Model: open(Transport(func(*http.Request) (*http.Response, error) {
		if asked {
			return nil, errors.New("the conversation is over")
		}
		asked = true
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1}, nil
	}))}
	for _, name := range tools {
		a.Tools = append(a.Tools, &pawl.Tool{Name: name, Input: json.RawMessage(`{"type":"object"}`), Effect: pawl.EffectWrite,
			Run: func(_ context.Context, c llm.ToolCall) (llm.ToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, callText(c))
				return llm.TextResult("done"), nil
			}})
	}
	a.Run(context.Background(), llm.User("go"))
	slices.Sort(calls)
	return calls
}

// LossTable returns rows for a page, and the sums of the streams and of the wrong ones.
func LossTable(rows []LossRow) (table string, plays, wrong int) {
	var b strings.Builder
	b.WriteString("| event | change | streams | same calls | error | arguments no JSON | other arguments | fewer calls | more calls |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| `%s` | %s | %d", r.Kind, r.Change, r.Plays())
		for _, n := range r.Effects {
			fmt.Fprintf(&b, " | %d", n)
		}
		b.WriteString(" |\n")
		plays += r.Plays()
		wrong += r.Wrong()
	}
	return b.String(), plays, wrong
}

// EventType names an event by its type.
func EventType(data []byte) string {
	var e struct{ Type string }
	json.Unmarshal(data, &e)
	return e.Type
}
