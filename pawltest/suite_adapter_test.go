package pawltest_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
)

// The negative control of TestAdapter: an adapter that loses something of its requests does not pass, and the suite says what.
func TestFaultyAdaptersFailTheSuite(t *testing.T) {
	for name, test := range map[string]struct{ lost, want string }{
		"the system message": {`\{"role":"system","content":"[^"]*"\},`, "Be brief."},
		"a forced choice":    {`,"tool_choice":"required"`, `"choice":"required"`},
		"the temperature":    {`,"temperature":0.5`, `"temperature":0.5`},
		"a result":           {`,\{"role":"tool","tool_call_id":"b","content":"two"\}`, "has no result"},
		"the schema":         {`,"response_format":\{.*?\}\}\}`, `"output"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			pawltest.TestAdapter(r, func(_ recorder, url string) pawl.Model {
				tr := &http.Transport{}
				t.Cleanup(tr.CloseIdleConnections)
				return openai.NewChat("m", &openai.Options{BaseURL: url, Key: "test-key", Retries: -1, HTTP: spoiled{tr, regexp.MustCompile(test.lost)}})
			})
			if all := strings.Join(*r.log, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("the suite says nothing of %s:\n%.2000s", test.want, all)
			}
		})
	}
}
