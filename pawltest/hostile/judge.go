package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Seen has the known facts about a play. The zero value of a field means unknown; such a field is
// not judged.
type Seen struct {
	API   string
	Log   []*pawltest.Received // the requests, in order
	Again []*pawltest.Received // the requests of the second play, if a Behaviour is played twice
	Bench *Bench               // the executed calls
	// The transcript of the runtime at the end. nil means the transcript of the last request.
	Messages []llm.Message
	Stop     string // how the run stopped, in pawl's words
	Error    string // the runtime's description of the stop
	Progress int    // observed events from within calls
	Hung     bool   // it did not return
	Died     string // a panic reached the caller
}

// pair is a call and its result.
type pair struct {
	call   llm.ToolCall
	result *llm.ToolResult // nil means none
}

// answered pairs the calls of a transcript with their results, in call order.
func answered(msgs []llm.Message) []pair {
	var all []pair
	for i, m := range msgs {
		if m.Role != llm.RoleAssistant {
			continue
		}
		begin := len(all)
		for _, p := range m.Parts {
			if c, ok := p.(llm.ToolCall); ok {
				all = append(all, pair{call: c})
			}
		}
		if begin == len(all) {
			continue
		}
		for _, next := range msgs[i+1:] {
			if next.Role == llm.RoleAssistant {
				break
			}
			for _, p := range next.Parts {
				r, ok := p.(llm.ToolResult)
				if !ok {
					continue
				}
				for j := begin; j < len(all); j++ {
					if all[j].call.ID == r.CallID && all[j].result == nil {
						all[j].result = &r
						break
					}
				}
			}
		}
	}
	return all
}

func lastMessages(log []*pawltest.Received) []llm.Message {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Request != nil {
			return log[i].Request.Messages
		}
	}
	return nil
}

// Judge returns the differences from the Behaviour's Want. nil means that all known facts are
// right.
func (b *Behaviour) Judge(s *Seen) []string {
	j := &judge{b: b, s: s}
	switch {
	case s.Died != "":
		j.wrong("the process dies: %s", clip(s.Died, 100))
	case s.Hung:
		j.wrong("it hangs")
	}
	j.stop()
	j.ran()
	j.requests()
	j.results()
	j.words()
	return j.found
}

type judge struct {
	b     *Behaviour
	s     *Seen
	found []string
}

func (j *judge) wrong(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

// shown returns the expectations, one for each call.
func (b *Behaviour) shown() []Shown {
	var all []Shown
	for _, w := range b.Want.Results {
		for range max(1, w.Times) {
			all = append(all, w)
		}
	}
	return all
}

// ran judges the executed calls: all expected calls, and no other.
func (j *judge) ran() {
	if j.s.Bench == nil {
		return
	}
	ran := j.s.Bench.Ran()
	if p := j.b.Want.Peak; p > 0 && j.s.Bench.peak > p {
		j.wrong("%d tools ran at once, %d at most may", j.s.Bench.peak, p)
	}
	if j.b.Want.Ran > 0 {
		if len(ran) != j.b.Want.Ran {
			j.wrong("%d calls ran, %d must", len(ran), j.b.Want.Ran)
		}
		return
	}
	left := slices.Clone(ran)
	take := func(call string) bool {
		i := slices.IndexFunc(left, func(r string) bool { return is(call, r) })
		if call == "" || i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
		return true
	}
	for _, w := range j.b.shown() {
		if w.Ran == "" || take(w.Ran) || take(w.Alter) || w.Or != nil || j.b.Want.Loose || j.reads(w.Ran) {
			continue
		}
		j.wrong("%s did not run", clip(w.Ran, 80))
	}
	slices.Sort(left)
	for _, r := range left {
		often := slices.ContainsFunc(j.b.Want.Results, func(w Shown) bool { return w.Times < 0 && is(w.Ran, r) })
		if !often && !j.reads(r) {
			j.wrong("%s ran, and must not, or not again", clip(r, 80))
			return
		}
	}
}

// is reports whether an executed call is call, which may end in * for any arguments.
func is(call, ran string) bool {
	if head, any := strings.CutSuffix(call, " *"); any {
		return strings.HasPrefix(ran, head+" ")
	}
	return expand(call) == ran
}

// reads reports whether a call is of a tool without effects, so that it may run once more or in
// vain.
func (j *judge) reads(call string) bool {
	name, _, _ := strings.Cut(call, " ")
	return name == "look"
}

// expand returns the arguments as a receipt has them: long arguments are replaced by their size.
func expand(call string) string {
	name, args, _ := strings.Cut(call, " ")
	return strings.TrimPrefix(receiptOf(name, args), "ran ")
}

// requests judges the requests.
func (j *judge) requests() {
	low := j.b.Want.Requests[0]
	high := j.b.Want.Requests[1]
	if n := len(j.s.Log); n < low || n > high {
		want := strconv.Itoa(low)
		if high != low {
			want += " to " + strconv.Itoa(high)
		}
		j.wrong("%d requests came, want %s", n, want)
	}
	var tools []byte
	for i, r := range j.s.Log {
		switch {
		case len(r.Violations) > 0:
			j.wrong("request %d is not valid: %s", i+1, clip(r.Violations[0].String(), 160))
			return
		case r.Request == nil:
			j.wrong("request %d cannot be read", i+1)
			return
		case strings.Contains(r.Query, "key="):
			j.wrong("the key stands in the address")
		}
		offered := toolBytes(r.Body)
		if i > 0 && tools != nil && !bytes.Equal(offered, tools) && !slices.Contains(j.b.Tools, "helper") {
			j.wrong("request %d offers other tools than the one before, or in other bytes", i+1)
		}
		tools = offered
		if !slices.ContainsFunc(r.Request.Messages,
			func(m llm.Message) bool { return m.Role == llm.RoleUser && strings.Contains(m.Text(), j.b.task()) }) &&
			!slices.Contains(j.b.Tools, "helper") {
			j.wrong("request %d does not hold the task", i+1)
		}
	}
	if j.s.Again != nil &&
		!slices.EqualFunc(j.s.Log, j.s.Again,
			func(a, b *pawltest.Received) bool { return bytes.Equal(a.Body, b.Body) }) {
		j.wrong("played again, the requests are not the same bytes")
	}
	if last := len(j.s.Log) - 1; last >= 0 && j.b.Want.Last != "" && j.s.Log[last].Request != nil {
		req := j.s.Log[last].Request
		got := "auto"
		switch {
		case len(req.Tools) == 0:
			got = "none, without the tools"
		case req.Choice.Mode == llm.ToolNone:
			got = "none"
		case req.Choice.Mode != llm.ToolAuto:
			got = "forced"
		}
		if got != j.b.Want.Last {
			j.wrong("the last request has the tool choice %s, want %s", got, j.b.Want.Last)
		}
	}
}

// toolBytes returns the bytes of the tools in a body.
func toolBytes(body []byte) []byte {
	var o struct {
		Tools json.RawMessage `json:"tools"`
	}
	json.Unmarshal(body, &o)
	return o.Tools
}

func (j *judge) stop() {
	if s := j.s.Stop; s != "" && !slices.Contains(strings.Split(j.b.Want.Stop, "|"), s) {
		text := ""
		if j.s.Error != "" {
			text = ": " + clip(j.s.Error, 160)
		}
		j.wrong("it stops with %s, want %s%s", s, strings.ReplaceAll(j.b.Want.Stop, "|", " or "), text)
	}
	if j.b.Want.Events && j.s.Bench != nil && j.s.Progress == 0 {
		j.wrong("no event came from within the call")
	}
}

// results judges the results that the model received.
func (j *judge) results() {
	msgs := j.s.Messages
	whole := msgs != nil
	if !whole {
		msgs = lastMessages(j.s.Log)
	} else if faults := llm.Check(msgs); len(faults) > 0 {
		j.wrong("the transcript is not valid: %v", faults[0])
	}
	got := answered(msgs)
	for _, p := range got {
		if p.result == nil {
			continue
		}
		text := p.result.Text()
		for _, leak := range []string{"goroutine ", ".go:", "runtime error", "index out of range"} {
			if strings.Contains(text, leak) {
				j.wrong("the model is shown the inside of the program: %s", clip(text, 100))
			}
		}
	}
	if j.b.Want.Loose {
		return
	}
	want := j.b.shown()
	if !whole && len(got) < len(want) && !strings.Contains(j.b.Want.Stop, string(pawl.StopAnswer)) {
		want = want[:len(got)] // the last results were never sent
	}
	if len(got) != len(want) {
		j.wrong("the transcript has %d calls, want %d", len(got), len(want))
		return
	}
	for i, p := range got {
		if why := want[i].judge(p, whole || j.s.API == pawltest.Anthropic); why != "" {
			j.wrong("call %d: %s", i+1, why)
			return
		}
	}
}

// judge returns the fault in the outcome of a call. flags means that the API marks errors.
func (w Shown) judge(p pair, flags bool) string {
	if p.result == nil {
		if w.Open {
			return ""
		}
		return "it has no result"
	}
	if w.Open {
		return "it has a result, and must wait"
	}
	text := p.result.Text()
	ran := strings.HasPrefix(text, "ran ")
	// after a word such as "error: "
	if i := strings.Index(text, "ran "); !ran && i >= 0 && i < 40 {
		ran, text = true, text[i:]
	}
	head := clip(text, 120)
	has := func(words []string) string {
		for _, word := range words {
			if !slices.ContainsFunc(strings.Split(word, "|"),
				func(a string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(a)) }) {
				return fmt.Sprintf("the result does not say %q: %s", word, head)
			}
		}
		return ""
	}
	most := w.Most
	if most == 0 {
		most = 8 << 10
		if ran {
			most = 64 << 10
		}
	}
	if len(text) > most {
		return fmt.Sprintf("the result is %d bytes long, %d at most", len(text), most)
	}
	for _, word := range w.Hides {
		if strings.Contains(text, word) {
			return fmt.Sprintf("the result repeats %q: %s", word, head)
		}
	}
	receipt := func(call string) bool { return call != "" && strings.HasPrefix(text, "ran "+expand(call)) }
	switch {
	case w.Ran != "" && w.Mute && !ran:
		if flags && !p.result.IsError {
			return "the result is not marked as an error: " + head
		}
		return has(w.Says)
	case receipt(w.Ran), receipt(w.Alter):
		if flags && p.result.IsError != w.Fails {
			return fmt.Sprintf("the result is marked as an error: %v, want %v: %s", p.result.IsError, w.Fails, head)
		}
		return has(w.Says)
	case ran:
		return "it ran with other arguments, or must not run: " + head
	case w.Ran != "" && w.Or == nil:
		return "it did not run: " + head
	case flags && !p.result.IsError:
		return "the result is not marked as an error: " + head
	case w.Ran != "":
		return has(w.Or)
	}
	return has(w.Says)
}

// words judges the required and the forbidden words in the transcript outside of results.
func (j *judge) words() {
	msgs := j.s.Messages
	if msgs == nil {
		msgs = lastMessages(j.s.Log)
	}
	var all strings.Builder
	for _, m := range msgs {
		if m.Role == llm.RoleAssistant {
			all.WriteString(said(m) + "\n")
		}
	}
	word := j.b.Setup.Word
	if word != "" &&
		!slices.ContainsFunc(msgs,
			func(m llm.Message) bool { return m.Role == llm.RoleUser && strings.Contains(m.Text(), word) }) {
		j.wrong("what the user said later is lost")
	}
	for _, w := range j.b.Want.Keeps {
		if !strings.Contains(all.String(), w) {
			j.wrong("the transcript has lost %q", w)
		}
	}
	for _, w := range j.b.Want.Lacks {
		if strings.Contains(all.String(), w) {
			j.wrong("the transcript holds %q", w)
		}
	}
}

// clip cuts a text for a message.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
