package core_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/script"
)

func TestPartial(t *testing.T) {
	type item struct {
		Name string `json:"name"`
		N    int    `json:"n"`
	}
	type list struct {
		Title string `json:"title"`
		Items []item `json:"items"`
	}
	const answer = "```json\n" + `{"title":"Über \"alles\" \u00e9","items":[{"name":"a","n":12},{"name":"b","n":3}]}` + "\n```"
	for _, tools := range []bool{false, true} {
		turn := script.Say(answer)
		a := &pawl.Agent{Output: pawl.SchemaFor[list]()}
		if tools {
			a.Tools = []pawl.Toolset{says("look", "wet")}
			turn = script.Together(script.Think("{}"), script.Call("final_answer", strings.Trim(answer, "`json\n")))
		}
		a.Model = script.New(script.Say(`{"title":"no","items":7}`), turn)
		p := observe.Partial[list]{}
		var seen []string
		for e, err := range a.Stream(t.Context(), llm.User("?")) {
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := p.Add(e); ok {
				if s := fmt.Sprint(v); len(seen) == 0 || seen[len(seen)-1] != s {
					seen = append(seen, s)
				}
			}
		}
		want := []string{"{ []}", "{no []}", "{ []}", `{Über "alles" é []}`, `{Über "alles" é [{ 0}]}`, `{Über "alles" é [{a 0}]}`, `{Über "alles" é [{a 12} { 0}]}`,
			`{Über "alles" é [{a 12} {b 0}]}`, `{Über "alles" é [{a 12} {b 3}]}`}
		if got := strings.Join(seen, "\n"); !strings.HasSuffix(got, want[len(want)-1]) ||
			!strings.Contains(got, want[1]) || !strings.Contains(got, want[3]) || !strings.Contains(got, want[7]) {
			t.Errorf("tools %t: got\n%s", tools, got)
		}
	}
}

// answered returns the events of a streamed answer, cut at the given sizes.
func answered(text string, sizes []int) []pawl.Event {
	events := []pawl.Event{{Kind: pawl.EventRunStarted, Run: "run"}, {Kind: pawl.EventStepStarted, Run: "run"}}
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), sizes[i%len(sizes)])
		events = append(events, pawl.Event{Kind: pawl.EventText, Run: "run", Text: text[:n]},
			pawl.Event{Kind: pawl.EventText, Run: "run/1/0/clerk", Text: "{]"})
		text = text[n:]
	}
	return events
}

// However an answer is cut, its values only grow, and what is known of them is right.
func TestPartialGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := anyJSON(3).Draw(t, "value")
		if _, ok := whole.(map[string]any); !ok {
			whole = map[string]any{"v": whole}
		}
		b, _ := json.MarshalIndent(whole, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		whole, err := jsonform.Value(b) // numbers keep their digits
		if err != nil {
			t.Fatal(err)
		}
		before := rapid.SampledFrom([]string{"", "```json\n", "Here: "}).Draw(t, "before")
		p := observe.Partial[any]{Strings: rapid.Bool().Draw(t, "strings")}
		var last any
		for _, e := range answered(before+string(b)+"\n```", rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")) {
			v, ok := p.Add(e)
			if !ok {
				continue
			}
			if last != nil && !grown(last, v, p.Strings) || !grown(v, whole, p.Strings) {
				t.Fatalf("%v became %v, on the way to %v", last, v, whole)
			}
			last = v
		}
		v, ok := p.Add(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: &pawl.Result{Output: b}})
		if !ok || !reflect.DeepEqual(v, whole) {
			t.Fatalf("at the end: %v, want %v", v, whole)
		}
	})
}

// grown reports whether b is a with more to it.
func grown(a, b any, strs bool) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for k, v := range a {
			if ok = ok && grown(v, b[k], strs); !ok {
				return false
			}
		}
		return ok
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) > len(b) {
			return false
		}
		for i := range a {
			if !grown(a[i], b[i], strs) {
				return false
			}
		}
		return true
	case string:
		b, ok := b.(string)
		return ok && (a == b || strs && strings.HasPrefix(b, a))
	}
	return reflect.DeepEqual(a, b)
}

func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.StringOfN(rapid.RuneFrom([]rune("ab\"\\\n é€😀{}[],:")), 0, 12, -1).Draw(t, "text")
		case 1:
			return float64(rapid.IntRange(-1000, 1000).Draw(t, "number")) / 4
		case 2:
			return rapid.Bool().Draw(t, "bool")
		case 3:
			return nil
		case 4:
			list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
			for i := range list {
				list[i] = anyJSON(depth-1).Draw(t, "item")
			}
			return list
		}
		m := map[string]any{}
		for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
			m[fmt.Sprintf("k\"%d", i)] = anyJSON(depth-1).Draw(t, "field")
		}
		return m
	})
}

// counted counts how many bytes it was decoded from.
type counted struct{}

var countedBytes int

func (*counted) UnmarshalJSON(b []byte) error {
	countedBytes += len(b)
	return nil
}

func TestPartialIsLinear(t *testing.T) {
	soak.Sequential(t)
	text := `{"rows":[` + strings.Repeat(`{"id":1,"name":"x"},`, 20000) + `{}]}`
	countedBytes = 0
	p := observe.Partial[counted]{}
	values := 0
	for _, e := range answered(text, []int{7}) {
		if _, ok := p.Add(e); ok {
			values++
		}
	}
	if values < 20 || countedBytes > 12*len(text) {
		t.Errorf("%d values were made of %d bytes, for an answer of %d", values, countedBytes, len(text))
	}
}

// What is no JSON gives no value, and no panic.
func FuzzPartial(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":[1,{"b":"\u00e9"}]}`, `{]`, `[}`, `{"a"}`, `[1 2]`, `{"a":1,}`, `[nul`, "{{", `["\u12`, "[\"\xff\xc3"} {
		f.Add(s, 3, true)
	}
	f.Fuzz(func(t *testing.T, s string, size int, strs bool) {
		p := observe.Partial[any]{Strings: strs}
		var last any
		for _, e := range answered(s, []int{max(1, size)}) {
			if v, ok := p.Add(e); ok {
				last = v
			}
		}
		var whole any
		if last != nil && json.Unmarshal([]byte(s), &whole) == nil && !strings.Contains(s, `"`) && !grown(last,
			whole, strs) {
			t.Errorf("%s: got %v", s, cmp.Diff(last, whole))
		}
	})
}
