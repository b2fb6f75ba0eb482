package react_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/react"
	"github.com/pawl-go/pawl/script"
)

var update = flag.Bool("update", false, "write the generated parts of docs/drivers.md instead of comparing them")

var shownRequest = regexp.MustCompile("(?s)(<!-- request: ([a-z]+) -->\n````text\n)(.*?)(````\n)")

// TestPage checks that the requests in docs/drivers.md are the requests to a model.
func TestPage(t *testing.T) {
	const name = "../docs/drivers.md"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	formats := 0
	want := shownRequest.ReplaceAllStringFunc(string(b), func(block string) string {
		formats++
		m := shownRequest.FindStringSubmatch(block)
		return m[1] + lastRequest(t, react.Format(m[2])) + m[4]
	})
	if formats != len(react.Formats()) {
		t.Errorf("the page shows %d formats of %d", formats, len(react.Formats()))
	}
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("docs/drivers.md is not what is sent; make docs writes it again (-in the file +sent):\n%s", cmp.Diff(string(b), want))
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lastRequest is what a model is sent after one call in format f.
func lastRequest(t *testing.T, f react.Format) string {
	t.Helper()
	call := llm.Assistant(llm.Reasoning{Text: "I look."}, llm.ToolCall{Name: "weather", Args: []byte(`{"city":"Oslo"}`)})
	inner := script.New(script.Say(say(f, call)), script.Say(say(f, llm.Assistant(llm.Text{Text: "Yes."}))))
	a := &pawl.Agent{Instructions: "Be brief.", Model: react.New(inner, &react.Options{Format: f}),
		Tools: []pawl.Toolset{weather()}}
	if _, err := a.Run(t.Context(), llm.User("Do I need an umbrella in Oslo?")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, m := range inner.Requests()[1].Messages {
		out.WriteString("[" + string(m.Role) + "]\n" + strings.TrimSpace(m.Text()) + "\n\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
