package gemini_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// quirks are behaviours of the API beyond or against its documentation, numbered from 72. The
// names of the test cases use the numbers.
var quirks = []struct{ api, pawl string }{
	{"gives calls no id; newer models give one", "an id of our own, which is not sent; results are matched by name and order. An id of the API's goes back"},
	{"says STOP beside calls", "calls decide: finish is tool_calls"},
	{"signs the first of several calls, texts, or an empty text at the end", "the signature stays on its part, byte for byte; signed texts are not joined with others"},
	{"spreads parallel calls over several events", "calls in their order"},
	{"sends arguments value by value, each with its path, and an end mark that can be missing", "fragments of JSON text as they come; sealed at the end mark, else by the next call or the end of the reply, never inside a value"},
	{"ends lines with CRLF", "both line ends"},
	{"streams one JSON array where it was not asked for events", "the same reply"},
	{"writes enums as numbers where it was asked to", "the names that they stand for"},
	{"reports calls of tools that were not declared, or that it cannot read, in the finish reason", "finish error, so none of the calls is run, and a notice that says why"},
	{"invents arguments for a tool without parameters", "the bytes as they are: the pipeline checks them"},
	{"sends content without parts when it withholds a reply", "no parts, finish content_filter, and a notice"},
	{"answers a blocked prompt without candidates", "no parts, finish content_filter, and a notice that says why; without a reason an error that can be retried"},
	{"sends finishMessage with STOP, and leaves out index, ids and more", "skipped, and not missed"},
	{"mixes code that it ran, tools that it called, pictures and parts that nobody knows with its answer", "pictures become Media, the rest is kept in its place and sent back, never run"},
	{"marks thoughts among the texts", "Reasoning, which goes back as it came"},
	{"sends {}, null or nothing for empty arguments", "{}"},
}

// Every quirk has a test case that names it, and docs/gemini-quirks.md lists them.
func TestQuirks(t *testing.T) {
	named := regexp.MustCompile(`^quirk (\d+): (.+)$`)
	found := map[int][]string{}
	for _, c := range replies {
		if m := named.FindStringSubmatch(c.name); m != nil {
			n, _ := strconv.Atoi(m[1])
			found[n] = append(found[n], m[2])
		}
	}
	var b strings.Builder
	b.WriteString(`# What Gemini does

The Gemini API and Vertex AI do things that the documents do not say. This is what was seen in recorded traffic, what pawl makes of it, and
the cases of TestReplies in package ` + "`provider/gemini`" + ` that show it. TestQuirks writes this page
(` + "`go test ./provider/gemini -run TestQuirks -update`" + `) and fails where a line has no case. The numbers go on from those of
[openai-quirks.md](openai-quirks.md).

| | the API | pawl | shown by |
|---|---|---|---|
`)
	for i, q := range quirks {
		n := i + 72
		if len(found[n]) == 0 {
			t.Errorf("quirk %d has no test case: %s", n, q.api)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", n, q.api, q.pawl, strings.Join(found[n], "; "))
		delete(found, n)
	}
	for n := range found {
		t.Errorf("there are cases of quirk %d, but no such quirk", n)
	}
	wiretest.Page(t, "gemini-quirks.md", b.String())
}
