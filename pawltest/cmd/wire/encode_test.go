package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider"
)

// checkedAs has the checker of each wire format.
var checkedAs = map[string]string{"openai-responses": pawltest.Responses, "openai-chat": pawltest.Chat,
	"anthropic-messages": pawltest.Anthropic, "gemini": pawltest.Gemini}

// No checker refuses a body of wire encode: every recorded request, and variants whose histories
// are broken, for each API. The control encodes without a repair, and is found.
func TestEncodedRequestsAreValid(t *testing.T) {
	soak.Sequential(t)
	var bodies, refused, repaired, control, n int
	for _, from := range pawltest.APIs() {
		for _, c := range wiretest.Cassettes(t, from) {
			for _, e := range c.Exchanges {
				if e.Request == nil || e.API != from {
					continue
				}
				req, err := pawltest.ReadRequest(from, e.Request.Body)
				if err != nil || len(req.Messages) == 0 {
					continue // of another endpoint
				}
				req.Model = cmp.Or(req.Model, e.Info.Model, "m")
				if n++; n%soak.N(4, 1) != 0 {
					continue
				}
				for what, messages := range broken(req.Messages) {
					for _, api := range provider.APIs() {
						r := *req
						r.Messages = messages
						body, notices, err := encodedBy(t, api, &r)
						if err != nil {
							refused++
							continue
						}
						bodies++
						if notices > 0 {
							repaired++
						}
						if v := pawltest.CheckModel(checkedAs[api.Name], req.Model, body); len(v) > 0 {
							t.Errorf("%s, %s, for %s: %v\n%.2000s", e.Name(), what, api.Name, v, body)
						}
						raw, err := api.Encode(&r)
						if err == nil && len(pawltest.CheckModel(checkedAs[api.Name], req.Model, raw)) > 0 {
							control++
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d bodies, %d of repaired histories, %d refused; without repair %d would be invalid", n, bodies, repaired, refused, control)
	if bodies < soak.N(3000, 14000) || control < soak.N(300, 1500) {
		t.Errorf("%d bodies, control %d: too few", bodies, control)
	}
}

// encodedBy returns the body that wire encode prints for req, and the number of notices.
func encodedBy(t *testing.T, api provider.API, req *llm.Request) (body []byte, notices int, err error) {
	t.Helper()
	in, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = (&encodeCommand{api: api}).run(bytes.NewReader(in), &out, &errs)
	return out.Bytes(), strings.Count(errs.String(), "\n"), err
}

// broken returns msgs, and variants that no API accepts as they are.
func broken(msgs []llm.Message) map[string][]llm.Message {
	all := map[string][]llm.Message{"as recorded": msgs}
	reply := slices.IndexFunc(msgs, func(m llm.Message) bool { return m.Role == llm.RoleAssistant })
	if reply < 0 {
		return all
	}
	all["from the first reply"] = msgs[reply:]
	at := slices.IndexFunc(msgs, func(m llm.Message) bool { return len(m.Calls()) > 0 })
	if at < 0 || at+1 >= len(msgs) || msgs[at+1].Role != llm.RoleTool {
		return all
	}
	all["without results"] = append(slices.Clone(msgs[:at+1]), msgs[at+2:]...)
	late := append(slices.Clone(msgs[:at+1]), llm.User("And now?"))
	all["late results"] = append(append(late, msgs[at+1]), msgs[at+2:]...)
	second := llm.ToolCall{ID: "call_second", Name: "f", Args: json.RawMessage("{}")}
	r := llm.TextResult("seen")
	r.CallID = second.ID
	interleaved := append(slices.Clone(msgs[:at+1]), llm.Assistant(second), msgs[at+1], llm.Results(r))
	all["interleaved"] = append(interleaved, msgs[at+2:]...)
	return all
}
