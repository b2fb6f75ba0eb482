package origin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// indexed returns the index of a conversation with one result of a read.
func indexed(user, result string, data json.RawMessage) *Index {
	r := llm.TextResult(result)
	r.CallID, r.Data = "1", data
	ix := NewIndex(nil, false, "")
	ix.Read([]llm.Message{llm.User(user), llm.Assistant(llm.ToolCall{ID: "1", Name: "get", Args: []byte(`{}`)}), llm.Results(r)},
		reads)
	return ix
}

// reads returns the conduct of a tool that reads.
func reads(name string) *Conduct {
	return NewConduct(&pawl.Tool{Name: name, Effect: pawl.EffectRead}, nil)
}

// TestFlowOnHostileResults shows that the work grows with the size of a result, not with its
// square: sixteen times the text takes about sixteen times the time, not 256 times.
func TestFlowOnHostileResults(t *testing.T) {
	send := NewConduct(&pawl.Tool{Name: "send_mail", Input: json.RawMessage(`{"properties":{"to":{},"body":{}}}`)}, nil)
	var to []string
	for i := range 20 {
		to = append(to, fmt.Sprintf("a%d@x.example", i))
	}
	to = append(to, strings.Repeat("a", 500), "a a a a a a a a a a", strings.Repeat("#", 200), strings.Repeat("a@", 200))
	args, err := json.Marshal(map[string]any{"to": to, "body": strings.Repeat("www.x.example/a ", 1000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, unit string
		data       bool
	}{
		{"one letter", "a", false}, {"words", "a ", false}, {"lines", "a\n", false}, {"addresses", "a@", false}, {"signs", "#", false},
		{"labels", "a: ", false}, {"numbers", "1,1", false}, {"records", `{"id":"a","name":"b"},`, true}, {"keys", `{"a@x.example":{`, false},
		{"strings", `"a@x.example",`, true}, {"links", "www.x.example/a?", false},
	} {
		measure := func(size int) time.Duration {
			best := time.Hour
			for range 3 {
				text := strings.Repeat(test.unit, size/len(test.unit))
				var data json.RawMessage
				if test.data {
					data = json.RawMessage("[" + strings.TrimSuffix(text, ",") + "]")
					text = string(data)
				}
				start := time.Now()
				ix := indexed("Write to a1@x.example.", text, data)
				ix.Judge(send, send.Arguments(args), Program{})
				best = min(best, time.Since(start))
			}
			return best
		}
		small, large := measure(64<<10), measure(1<<20)
		for i := 0; i < 5 && large > 100*small; i++ { // a busy machine adds to one of the two
			small, large = min(small, measure(64<<10)), min(large, measure(1<<20))
		}
		t.Logf("%-12s 64 KiB %8s, 1 MiB %8s", test.name, small.Round(time.Microsecond), large.Round(time.Microsecond))
		if large > 100*small {
			t.Errorf("%s: %v for 64 KiB and %v for 1 MiB", test.name, small, large)
		}
	}
	start := time.Now()
	ix := indexed("x", strings.Repeat("eve@y.example ", (10<<20)/14), nil)
	ix.Judge(send, send.Arguments(args), Program{})
	t.Logf("10 MB of addresses: %v", time.Since(start))
	// Beyond the bound nothing is endorsed but what the user said.
	over := indexed("Write to a1@x.example about Ann.", strings.Repeat("text ", maxText/5+1), nil)
	r := llm.TextResult(`{"name":"Ann","email":"ann@x.example"}`)
	r.CallID = "2"
	msgs := append(slices.Clone(over.msgs), llm.Assistant(llm.ToolCall{ID: "2", Name: "get", Args: []byte(`{"q":"Ann"}`)}), llm.Results(r))
	over.Read(msgs, reads)
	endorsed := func(ix *Index, v string) bool { return stands(ix.groundOf(send, roleParty, v)) }
	if endorsed(over, "ann@x.example") || !endorsed(over, "a1@x.example") {
		t.Error("beyond the bound: got a record endorsed, or the user's words not")
	}
	if ok := indexed("Write to Ann.", `{"name":"Ann","email":"ann@x.example"}`, nil); !endorsed(ok, "ann@x.example") {
		t.Error("the control: a record within the bound is not endorsed")
	}
}

// TestFlowReadsEachMessageOnce shows that an index grows by what is new, and equals an index
// that was made at once.
func TestFlowReadsEachMessageOnce(t *testing.T) {
	read := 0
	tool := func(name string) *Conduct {
		read++
		return NewConduct(&pawl.Tool{Name: name, Effect: pawl.EffectRead}, nil)
	}
	msgs := []llm.Message{llm.User("Go.")}
	ix := NewIndex(nil, false, "")
	for i := range 50 {
		id := fmt.Sprint(i)
		r := llm.TextResult(`[{"id":"` + id + `","text":"a longer text with eve@y.example"}]`)
		r.CallID = id
		msgs = append(msgs, llm.Assistant(llm.ToolCall{ID: id, Name: "get", Args: []byte(`{}`)}), llm.Results(r))
		if i > 0 && !ix.Begins(msgs) {
			t.Fatal("a longer conversation does not begin with a shorter one")
		}
		ix.Read(msgs, tool)
		ix.Read(msgs[:3], tool)
	}
	if read != 50 {
		t.Errorf("read %d results, want 50", read)
	}
	at := NewIndex(nil, false, "")
	at.Read(msgs, tool)
	if len(at.spots) != len(ix.spots) || len(at.texts) != len(ix.texts) || len(at.last) != len(ix.last) {
		t.Errorf("made at once: %d places and %d texts, grown: %d and %d", len(at.spots), len(at.texts), len(ix.spots), len(ix.texts))
	}
	other := slices.Clone(msgs)
	other[4] = llm.Results(llm.ToolResult{CallID: "1", Parts: []llm.Part{llm.Text{Text: "other"}}})
	if ix.Begins(other) || ix.Begins(msgs[:4]) {
		t.Error("the index counts for another conversation")
	}
}

func TestFlowFindsWholeWords(t *testing.T) {
	for _, test := range []struct {
		text, value string
		want        bool
	}{
		{"a bob@x.com b", "bob@x.com", true}, {"bob@x.com.", "bob@x.com", true}, {"<bob@x.com>", "bob@x.com", true}, {"jim.bob@x.com", "bob@x.com", false},
		{"bob@x.com.org", "bob@x.com", false}, {"bob@x.community", "bob@x.com", false}, {"2024-05-13", "13", false}, {"13.5", "13", false},
		{"id 13, or 14", "13", true}, {"x13 y13 13", "13", true}, {"13:00", "13", false}, {"the notes", "note", false}, {"note note", "note", true},
		{"zürich", "rich", false}, {"a b c", "b c", true}, {"", "a", false}, {"a", "", false}, {"file.txt.", "file.txt", true}, {"my-file.txt", "file.txt", false},
		{"https://x.com/a", "x.com/a", true}, {"https://x.com/ab", "x.com/a", false},
	} {
		if got := find(test.text, test.value, 0) >= 0; got != test.want {
			t.Errorf("%q in %q: got %t, want %t", test.value, test.text, got, test.want)
		}
	}
	for _, test := range []struct {
		value, kind string
	}{{"bob@x.com", kindMail}, {"https://x.com", kindLink}, {"www.x.com", kindLink}, {"x.com/a", kindLink}, {"gb29nwbk60161331926819", kindAccount},
		{"deadbeef00", ""}, {"bob", ""}, {"a bob@x.com", ""}, {"", ""}} {
		if got := addressKind(test.value); got != test.kind {
			t.Errorf("%q: got kind %q, want %q", test.value, got, test.kind)
		}
	}
	for text, want := range map[string]float64{"1,100.50": 1100.5, "1.100,50": 1100.5, "1'100.5": 1100.5, "1,100": 1100, "12,5": 12.5, "70.": 70, "1,000,000": 1e6} {
		if got, ok := amount(text); !ok || got != want {
			t.Errorf("%q: got %v, %t, want %v", text, got, ok, want)
		}
	}
}

func FuzzFlowText(f *testing.F) {
	f.Add("Write to bob@x.com of 1,100.50 EUR", `[{"id":13,"to":["bob@x.com"],"m":{"a@b.c":"r"}}]`, "bob@x.com")
	f.Add("x", "Name: Bob\n\nMail: https://x.com/a?b#c", "https://x.com/a?b")
	f.Add("\xff", `{"a":"\u0000\ud800"}`, "\xff")
	f.Fuzz(func(t *testing.T, user, result, value string) {
		ix := indexed(user, result, nil)
		for _, name := range []string{"send_mail", "delete_file", "pay_bill", "get_page"} {
			effect := pawl.EffectWrite
			if name == "get_page" {
				effect = pawl.EffectRead
			}
			c := NewConduct(&pawl.Tool{Name: name, Effect: effect, Input: json.RawMessage(`{"properties":{"to":{},"amount":{},"url":{}}}`)}, nil)
			args, err := json.Marshal(map[string]any{"to": value, "id": value, "url": value, "body": value, "amount": len(value)})
			if err != nil {
				t.Fatal(err)
			}
			j := ix.Judge(c, c.Arguments(args), Program{})
			why := j.Text()
			if !utf8.ValidString(why) || strings.ContainsAny(why, "\n\x1b\x00") {
				t.Errorf("the question %q", why)
			}
		}
		// A value that the user said as a word of its own is the user's.
		if v := plainText(value); v != "" && len(v) < maxValue && !strings.Contains(v, "#") && bareLink(v) == v {
			if !indexed("to "+value+" now", result, nil).said(v) {
				t.Errorf("%q is not said in %q", v, "to "+value+" now")
			}
		}
	})
}
