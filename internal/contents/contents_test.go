package contents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/contents"
	"github.com/pawl-go/pawl/llm"
)

// reply returns a reply with calls, and its results, which have keys if keyed is set.
func reply(number int, keyed bool, said string, calls ...string) []llm.Message {
	m := llm.Assistant()
	if said != "" {
		m.Parts = append(m.Parts, llm.Text{Text: said})
	}
	var results []llm.ToolResult
	for i, form := range calls {
		name, args, _ := strings.Cut(form, " ")
		m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprint("c", i), Name: name, Args: []byte(args)})
		r := llm.ToolResult{CallID: fmt.Sprint("c", i), Parts: []llm.Part{llm.Text{Text: "of " + form}}}
		r.IsError = strings.Contains(form, "bad")
		if keyed {
			r.Key = llm.Key(fmt.Sprintf("run/%d/%d", number, i))
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return []llm.Message{m}
	}
	return []llm.Message{m, llm.Results(results...)}
}

// Every text of a transcript has an id of its own. Replies are numbered by the keys of their
// results, so that a transcript without its beginning has the same ids.
func TestTexts(t *testing.T) {
	var msgs []llm.Message
	msgs = append(msgs, llm.User("begin"))
	msgs = append(msgs, reply(1, true, "", `read {"a":1}`, `read {"a":2}`)...)
	msgs = append(msgs, llm.User("also"), llm.User("and this"))
	msgs = append(msgs, reply(2, true, "I think", `result_read {"id":"run/1/0"}`)...)
	rest := len(msgs)
	msgs = append(msgs, reply(3, true, "next", `read {"a":3}`)...)
	msgs = append(msgs, reply(4, false, "done")...)
	msgs = append(msgs, llm.User("more"))

	var got []string
	for _, text := range contents.Texts(msgs) {
		got = append(got, fmt.Sprintf("%s %q %q", text.ID, text.Text, text.Own))
	}
	want := []string{
		`user/0 "begin" "begin"`,
		`reply/1 "[call] read {\"a\":1}\n[call] read {\"a\":2}" "[call] read {\"a\":1}\n[call] read {\"a\":2}"`,
		`run/1/0 "of read {\"a\":1}" "of read {\"a\":1}"`,
		`run/1/1 "of read {\"a\":2}" "of read {\"a\":2}"`,
		`user/1 "also\n\nand this" "also\n\nand this"`,
		`reply/2 "I think\n[call] result_read {\"id\":\"run/1/0\"}" "I think"`,
		`run/2/0 "of result_read {\"id\":\"run/1/0\"}" ""`,
		`reply/3 "next\n[call] read {\"a\":3}" "next\n[call] read {\"a\":3}"`,
		`run/3/0 "of read {\"a\":3}" "of read {\"a\":3}"`,
		`reply/4 "done" "done"`,
		`user/4 "more" "more"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}

	got = nil
	for _, text := range contents.Texts(msgs[rest:]) {
		got = append(got, text.ID)
	}
	if diff := cmp.Diff([]string{"reply/3", "run/3/0", "reply/4", "user/4"}, got); diff != "" {
		t.Errorf("ids without the beginning (-want +got):\n%s", diff)
	}
}

// The list has each distinct call once, and names every id. Calls that differ in one word share a
// line, numbers in turn are a range, and the latest have precedence.
func TestCalls(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		name  string
		calls []string // of a reply each
		most  int
		want  string
		left  int
	}{
		{"one", []string{`read {"a":"x"}`}, 1_000, "- read {\"a\":\"x\"}: run/1/0\n", 0},
		{"numbers in turn", []string{`page {"n":7}`, `page {"n":8}`, `page {"n":9}`}, 1_000,
			"- page {\"n\":*} with * = 7 to 9 (run/1/0 to run/3/0)\n", 0},
		{"a number that failed, and one again", []string{`page {"n":7}`, `page {"n":8,"bad":1}`, `page {"n":9}`, `page {"n":9}`,
			`page {"n":10}`}, 1_000,
			"- page {\"n\":*} with * = 7 (run/1/0), 9 (run/3/0, 2 times, last run/4/0), 10 (run/5/0)\n" +
				"- page {\"n\":8,\"bad\":1}: run/2/0, failed\n", 0},
		{"words", []string{`ask {"q":"Q-01 of copper"}`, `ask {"q":"Q-02 of copper"}`, `ask {"q":"Q-03 of copper"}`}, 1_000,
			"- ask {\"q\":\"* of copper\"} with * = Q-01 (run/1/0), Q-02 (run/2/0), Q-03 (run/3/0)\n", 0},
		{"little room", []string{`ask {"q":"Q-01 of copper"}`, `ask {"q":"Q-02 of copper"}`, `ask {"q":"Q-03 of copper"}`}, 80,
			"- ask {\"q\":\"* of copper\"} with * = Q-02 (run/2/0), Q-03 (run/3/0)\n", 1},
		{"two words", []string{`ask {"n":1,"q":"Q-1 of"}`, `ask {"n":2,"q":"Q-2 of"}`, `ask {"n":3,"q":"other of"}`, `ask {"x":1}`}, 1_000,
			"- ask {\"x\":1}: run/4/0\n- ask {\"n\":*,\"q\":\"* of\"} with * = 1 Q-1 (run/1/0), 2 Q-2 (run/2/0), 3 other (run/3/0)\n", 0},
		{"long", []string{`ask {"q":"` + long + `"}`}, 1_000,
			"- ask {\"q\":\"" + long[:argsShown-6] + "…: run/1/0\n", 0},
		{"no room", []string{`page {"n":7}`}, 3, "", 1},
	} {
		table := new(contents.Table)
		var msgs []llm.Message
		for i, c := range test.calls {
			msgs = append(msgs, reply(i+1, true, "", c)...)
		}
		steps := contents.Steps(msgs)
		for i := range steps {
			table.Add(&steps[i])
		}
		got, left := contents.Lines(table.Latest(func(*contents.Entry) bool { return true }), test.most)
		if diff := cmp.Diff(test.want, got); diff != "" || left != test.left {
			t.Errorf("%s: %d left, want %d (-want +got):\n%s", test.name, left, test.left, diff)
		}
	}
}

const argsShown = 80

// Texts that differ in a number share a line too.
func TestLinesOfTexts(t *testing.T) {
	table := new(contents.Table)
	var msgs []llm.Message
	for i := range 5 {
		msgs = append(msgs, reply(i+1, true, fmt.Sprintf("I read on at page %d.", i), `read {}`)...)
	}
	steps := contents.Steps(msgs)
	for i := range steps {
		table.Add(&steps[i])
	}
	got, left := contents.Lines(table.Latest(func(e *contents.Entry) bool { return e.Call == "" }), 1_000)
	want := "- I read on at page *. with * = 0 to 4 (reply/1 to reply/5)\n"
	if got != want || left != 0 {
		t.Errorf("got %q, %d left; want %q", got, left, want)
	}
}

// The index names the id of each text and result, and says where the rest of a line is.
func TestIndex(t *testing.T) {
	long := strings.Repeat("y", 200)
	var msgs []llm.Message
	msgs = append(msgs, llm.User("begin\nhere"))
	msgs = append(msgs, reply(1, true, long, `read {"a":"`+long+`"}`)...)
	msgs = append(msgs, reply(2, true, "", `read {"a":2}`)...)
	msgs = append(msgs, reply(3, true, "", `read {"a":2}`, `write {"bad":1}`)...)
	want := `user/0 "begin here"
reply/1 "` + long[:120] + `…", 200 bytes
run/1/0 read {"a":"` + long[:74] + `…: 216 bytes, whole arguments in reply/1
run/2/0 read {"a":2}: 15 bytes, again as run/3/0
run/3/1 write {"bad":1}: failed
`
	if diff := cmp.Diff(want, contents.IndexOf(msgs)); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
}
