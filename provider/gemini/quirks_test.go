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
	{"gives calls no id; newer models give one", "an id of our own, which is not sent; results are matched by name and order. The API's ids are sent back"},
	{"sends STOP with calls", "calls decide: finish is tool_calls"},
	{"signs the first of several calls, texts, or an empty text at the end", "the signature stays on its part, byte for byte; signed texts are not joined with others"},
	{"spreads parallel calls over several events", "the calls in order"},
	{"sends arguments value by value, each with its path, and an end mark that can be missing", "fragments of JSON text as they arrive; the end mark, the next call or the end of the reply ends the call, never within a value"},
	{"ends lines with CRLF", "both line endings"},
	{"streams one JSON array if events were not requested", "the same reply"},
	{"writes enums as numbers if requested", "the names of the numbers"},
	{"reports malformed calls, and calls of undeclared tools, in the finish reason", "finish error, so no call is executed, the message as text if there is no call, and a notice with the reason; a run sends it back once"},
	{"invents arguments for a tool without parameters", "the bytes unchanged: the pipeline validates them"},
	{"sends content without parts when it withholds a reply", "no parts, finish content_filter, and a notice"},
	{"answers a blocked prompt without candidates", "no parts, finish content_filter, and a notice with the reason; without a reason a retryable error"},
	{"sends finishMessage with STOP, and leaves out index, ids and more", "ignored"},
	{"mixes executed code, tools that it called, images and undocumented parts with its answer", "images become Media; other parts are stored in their place and sent back, never executed"},
	{"marks thoughts among the texts", "Reasoning, which is sent back unchanged"},
	{"sends {}, null or nothing for empty arguments", "{}"},
	{"wrote STOP into each event of a stream, from the first on, with older models ([reported](https://github.com/BerriAI/litellm/issues/2195); not in recorded traffic)", "the events are one reply, up to another reason; what comes after STOP in other streams is skipped, with a notice"},
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

This page lists the behaviour of the Gemini API and Vertex AI beyond the documentation, as seen in recorded traffic. Each row has the
adapter's answer to it, and the cases of TestReplies in package ` + "`provider/gemini`" + ` that show it. TestQuirks writes this page
(` + "`go test ./provider/gemini -run TestQuirks -update`" + `) and fails if a row has no case. The numbers continue
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
