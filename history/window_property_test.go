package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

// asked is a request before Window and what was sent of it.
type asked struct {
	whole llm.Request
	sent  []llm.Request // more than one after a refusal
	forms []string      // of the messages of sent, as JSON
	edits int           // notices up to the reply
}

// wanted is a call of the random model.
type wanted struct {
	Size          int
	Fails, Media  bool
	Pinned, Steer bool
	Long          int // bytes of the arguments
	Page          int // of a read whose calls and results are equal; 0 means another call
}

// world is a random conversation with a model that counts, and refuses what is too long.
type world struct {
	turns [][][]wanted // for each turn, for each reply, its calls
	real  int          // window of the provider, in tokens
	blind bool
	cjk   bool
	asked []*asked
	steer *pawl.Steering
	reply int
	turn  int
}

func (w *world) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		now := w.asked[len(w.asked)-1]
		now.sent = append(now.sent, *req)
		messages := form(req.Messages)
		now.forms = append(now.forms, messages)
		tokens := len(messages) / 3
		if w.real > 0 && tokens > w.real {
			yield(llm.Delta{}, &llm.ProviderError{Code: llm.CodeContextLength, Message: "too long"})
			return
		}
		usage := &llm.Usage{Input: tokens, Output: 5}
		if w.blind {
			usage = nil
		}
		var calls []wanted
		if w.reply < len(w.turns[w.turn]) {
			calls = w.turns[w.turn][w.reply]
		}
		w.reply++
		if len(calls) == 0 {
			w.reply = len(w.turns[w.turn])
		}
		n := 0
		part := func(p llm.Part) bool {
			n++
			return yield(llm.Delta{Index: n - 1, Part: p, Done: true}, nil)
		}
		if w.reply%2 == 0 && !part(llm.Reasoning{Text: "hm", Opaque: &llm.Opaque{Provider: "other", Data: []byte(`{"type":"thinking"}`)}}) {
			return
		}
		for i, c := range calls {
			args, _ := json.Marshal(map[string]any{"size": c.Size, "fails": c.Fails, "media": c.Media, "steer": c.Steer, "n": len(w.asked),
				"filler": strings.Repeat("x", c.Long)})
			name := "work"
			switch {
			case c.Page > 0:
				name = "look"
				args, _ = json.Marshal(map[string]any{"page": c.Page, "size": 900 * c.Page})
			case c.Pinned:
				name = "skill"
			}
			if !part(llm.ToolCall{ID: fmt.Sprint("c", i), Name: name, Args: args}) {
				return
			}
		}
		if len(calls) == 0 && !part(llm.Text{Text: fmt.Sprint("answer ", w.turn)}) {
			return
		}
		yield(llm.Delta{Usage: usage, Finish: llm.FinishReasonStop}, nil)
	}
}

func form(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (w *world) tools() []pawl.Toolset {
	run := func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var in wanted
		if err := json.Unmarshal(call.Args, &in); err != nil {
			return llm.ToolResult{}, err
		}
		text := strings.Repeat("word ", in.Size/5)
		if w.cjk {
			text = strings.Repeat("漢字", in.Size/6)
		}
		if in.Steer {
			_ = w.steer.Steer(ctx, llm.User("also "+text[:min(len(text), 30)])) // the run is active
		}
		if in.Fails {
			return llm.ErrorResult("failed: " + text), nil
		}
		r := llm.TextResult(text)
		if in.Media {
			r.Parts = append(r.Parts, llm.Media{MIME: "image/png", Data: []byte{1, 2, 3}})
		}
		return r, nil
	}
	input := json.RawMessage(`{"type":"object"}`)
	return []pawl.Toolset{&pawl.Tool{Name: "work", Description: "Works.", Input: input, Run: run},
		&pawl.Tool{Name: "look", Description: "Looks.", Input: input, Run: run, Effect: pawl.EffectRead},
		&pawl.Tool{Name: "skill", Description: "Shows a skill.", Input: input, Run: run, Pin: true,
			Effect: pawl.EffectRead}, artifact.Reader{}}
}

// outside records each whole request, and counts edits.
func (w *world) outside() pawl.Middleware {
	return pawl.Middleware{Model: func(m llm.Model) llm.Model {
		return modelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				now := &asked{whole: *req}
				now.whole.Messages = slices.Clone(req.Messages)
				w.asked = append(w.asked, now)
				for d, err := range m.Stream(ctx, req) {
					if d.Notice != nil && d.Notice.Code == history.NoticeWindowEdited {
						now.edits++
					}
					if !yield(d, err) {
						return
					}
				}
			}
		})
	}}
}

func drawOptions(t *rapid.T) *history.WindowOptions {
	o := &history.WindowOptions{Tokens: rapid.SampledFrom([]int{0, 2_000, 6_000, 40_000}).Draw(t, "window"),
		Keep: rapid.IntRange(0, 5).Draw(t, "keep"), Stub: rapid.SampledFrom([]int{0, 50, 2_000}).Draw(t, "stub")}
	switch rapid.IntRange(0, 3).Draw(t, "levels") {
	case 1:
		o.High, o.Low = 0.6, 0.3
	case 2:
		o.High, o.Low, o.Round = 0.95, 0.9, 0.1
	case 3:
		o.HighTokens = 1_000
	}
	return o
}

// In random conversations, with any options, what is sent is valid for every API and has what is
// pinned; it begins like the request before unless a notice reports an edit; it never has a mark; a
// line in place of a repeated result names a result that is there as a whole; and the request
// depends on the transcript alone: the same requests, read from JSON and given to another process,
// are sent in the same way.
func TestWindowProperties(t *testing.T) {
	soak.Sequential(t)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		call := rapid.Custom(func(t *rapid.T) wanted {
			return wanted{Size: rapid.SampledFrom([]int{0, 100, 1_500, 6_000}).Draw(t, "size"),
				Fails: rapid.IntRange(0, 5).Draw(t, "fails") == 0,
				Media: rapid.IntRange(0, 9).Draw(t, "media") == 0, Pinned: rapid.IntRange(0, 9).Draw(t, "pinned") == 0,
				Steer: rapid.IntRange(0, 9).Draw(t, "steer") == 0, Long: rapid.SampledFrom([]int{0, 0, 0, 3_000}).Draw(t, "long"),
				Page: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "page")}
		})
		w := &world{turns: rapid.SliceOfN(rapid.SliceOfN(rapid.SliceOfN(call, 1, 3), 0, 10), 1, 3).Draw(t, "turns"),
			blind: rapid.IntRange(0, 4).Draw(t, "blind") == 0, cjk: rapid.Bool().Draw(t, "cjk"),
			real: rapid.SampledFrom([]int{0, 0, 5_000, 30_000}).Draw(t, "real")}
		const task = "The task, word for word."
		agent := &pawl.Agent{Model: w, Instructions: "Rules.", Tools: w.tools(),
			Limits:     pawl.Limits{Rounds: 100, LoopThreshold: -1},
			Middleware: []pawl.Middleware{w.outside(), history.Window(o)}}
		var msgs []llm.Message
		for i := range w.turns {
			w.turn, w.reply = i, 0
			w.steer = new(pawl.Steering)
			ctx := pawl.WithRunOptions(context.Background(), pawl.RunOptions{Messages: w.steer})
			res, err := agent.Run(ctx, append(msgs, llm.User(fmt.Sprint(task, i)))...)
			var stop *pawl.StopError
			var pe *llm.ProviderError
			if errors.As(err, &stop) && stop.Result.Limit == "window" ||
				errors.As(err, &pe) && pe.Code == llm.CodeContextLength {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			msgs = res.Messages
		}
		check(t, w, o, task)
	})
}

// check compares all requests of w with what must hold.
func check(t *rapid.T, w *world, o *history.WindowOptions, task string) {
	var before []llm.Message
	beforeForm := "[]"
	for n, a := range w.asked {
		for k, sent := range a.sent {
			for _, api := range provider.APIs() {
				if faults := api.Rules.Check(sent.Messages); faults != nil {
					t.Fatalf("request %d: %s: %v", n, api.Name, faults)
				}
			}
			if faults := (llm.HistoryRules{Settled: true}).Check(sent.Messages); faults != nil {
				t.Fatalf("request %d: %v", n, faults)
			}
			text := a.forms[k]
			if strings.Contains(text, `"provider":"pawl"`) {
				t.Fatalf("request %d has a mark", n)
			}
			if sent.Messages[0].Text() != "Rules." || !strings.Contains(text, task) {
				t.Fatalf("request %d lost what is pinned: %s", n, text)
			}
			if m := sent.Messages[sent.Turn]; sent.Turn > 0 && m.Role != llm.RoleUser {
				t.Fatalf("request %d: the turn begins at %d, a message of %s", n, sent.Turn, m.Role)
			}
			if id := repeatsPutAway(sent.Messages); id != "" {
				t.Fatalf("request %d has a line in place of a repeat of %s, which it has not as a whole: %s", n, id, text)
			}
			unedited := k == 0 && a.edits == 0 && len(a.sent) == 1
			if unedited && !strings.HasPrefix(text, strings.TrimSuffix(beforeForm, "]")) {
				if i := differs(sent.Messages, before); i >= 0 {
					t.Fatalf("request %d differs in message %d from the one before, and no notice says so:\n%.2000s\n%.2000s", n, i,
						form(before[i]), form(sent.Messages[min(i, len(sent.Messages)-1)]))
				}
			}
			before = sent.Messages
			beforeForm = text
		}
		if len(a.sent) == 0 {
			continue // it was not sent
		}
		var whole llm.Request
		again := &world{turns: [][][]wanted{{}}, asked: []*asked{{}}, real: w.real}
		whole = a.whole
		var read []llm.Message
		if err := json.Unmarshal([]byte(form(a.whole.Messages)), &read); err != nil {
			t.Fatal(err)
		}
		whole.Messages = read
		_, _ = llm.Complete(context.Background(), history.Window(o).Model(again), &whole)
		got := again.asked[0].sent
		gotForms := again.asked[0].forms
		if len(got) != len(a.sent) {
			t.Fatalf("request %d was sent %d times in another process, and %d times before", n, len(got), len(a.sent))
		}
		for k := range got {
			x, y := gotForms[k], a.forms[k]
			if x != y || got[k].Turn != a.sent[k].Turn || got[k].Edited != a.sent[k].Edited {
				t.Fatalf("request %d differs in another process:\n%s\n%s", n, x, y)
			}
		}
	}
}

var repeatLine = regexp.MustCompile(`^\[The same (\d+) bytes as the result (\S+) of the same call`)

// repeatsPutAway returns the id of a result that a line stands for and that msgs have not as a
// whole. Empty means none.
func repeatsPutAway(msgs []llm.Message) string {
	whole := map[string]int{} // the bytes of the results, by id
	for _, m := range msgs {
		for _, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if !ok {
				continue
			}
			whole[string(r.Key)] = len(r.Text())
			line := repeatLine.FindStringSubmatch(r.Text())
			if line == nil {
				continue
			}
			if size, _ := strconv.Atoi(line[1]); whole[line[2]] < size {
				return line[2]
			}
		}
	}
	return ""
}

// differs returns the index of the first message of before with which msgs do not begin, or -1.
func differs(msgs, before []llm.Message) int {
	for i := range before {
		if i >= len(msgs) || form(msgs[i]) != form(before[i]) {
			return i
		}
	}
	return -1
}
