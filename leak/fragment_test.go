package leak_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/leak"
	"github.com/pawl-go/pawl/llm"
)

// pieces says a text in fragments of size bytes.
type pieces struct {
	text string
	size int
}

func (p pieces) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for s := p.text; s != ""; {
			n := min(p.size, len(s))
			if !yield(llm.Delta{Part: llm.Text{Text: s[:n]}}, nil) {
				return
			}
			s = s[n:]
		}
		yield(llm.Delta{Finish: llm.FinishReasonStop}, nil)
	}
}

// Every form, alone and after words, in fragments of every size, gives the same calls and shows no
// mark.
func TestFragments(t *testing.T) {
	n := 0
	for _, f := range forms {
		for _, words := range []string{"", "Ten < twelve, I look.\n"} {
			text := words + f.text
			rest, calls := leak.Find(text, offered("other", "weather"))
			if len(calls) == 0 {
				continue // a form that must be the whole reply
			}
			for size := 1; size <= len(text); size++ {
				n++
				resp, err := llm.Complete(t.Context(), leak.Calls().Model(pieces{text, size}),
					&llm.Request{Messages: []llm.Message{llm.User("go")}, Tools: offered("other", "weather")})
				if err != nil {
					t.Fatalf("%s by %d: %v", f.name, size, err)
				}
				if diff := cmp.Diff(formOf(resp.Message.Calls()), formOf(calls)); diff != "" ||
					strings.TrimSpace(resp.Message.Text()) != rest {
					t.Errorf("%s by %d: told %q, want %q; calls: got -, want +\n%s", f.name, size, resp.Message.Text(), rest, diff)
				}
			}
		}
	}
	t.Logf("%d forms in %d ways of coming", len(forms), n)
}
