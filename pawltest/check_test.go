package pawltest_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/pawltest"
)

// The parts of histories, so that a case shows only its own change.
const (
	chatTools = `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`
	user      = `{"role":"user","content":"hi"}`
	callAB    = `{"role":"assistant","content":null,"tool_calls":[` + callA + `,` + callB + `]}`
	callA     = `{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}`
	callB     = `{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}`
	onlyA     = `{"role":"assistant","content":"","tool_calls":[` + callA + `]}`
	resultA   = `{"role":"tool","tool_call_id":"a","content":"1"}`
	resultB   = `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"2"}]}`

	flatTools = `"tools":[{"type":"function","name":"look","parameters":{"type":"object"}},{"type":"web_search"}]`
	itemA     = `{"type":"function_call","call_id":"a","name":"look","arguments":"{}"}`
	itemB     = `{"type":"function_call","call_id":"b","name":"look","arguments":"{}"}`
	outputA   = `{"type":"function_call_output","call_id":"a","output":"1"}`
	outputB   = `{"type":"function_call_output","call_id":"b","output":"2"}`
	thought   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`
	answer    = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}`
)

func TestCheckChat(t *testing.T) {
	for name, test := range map[string]struct {
		messages []string
		want     string // part of the first violation; "" means accepted
	}{
		"a question":              {[]string{user}, ""},
		"calls and results":       {[]string{user, callAB, resultA, resultB, user}, ""},
		"results in other order":  {[]string{user, callAB, resultB, resultA}, ""},
		"ids again in a new turn": {[]string{user, onlyA, resultA, onlyA, resultA}, ""},
		"two answers":             {[]string{user, `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"b"}`, user}, ""},

		"dangling call at the end":     {[]string{user, onlyA}, `/messages/1/tool_calls/0: the call "a" has no result before the end`},
		"one of two calls dangles":     {[]string{user, callAB, resultA, user}, `/messages/1/tool_calls/1: the call "b" has no result before the next user message`},
		"dangling before a reply":      {[]string{user, callAB, resultA, onlyA, resultA}, `/messages/1/tool_calls/1: the call "b" has no result before the next reply`},
		"result without a call":        {[]string{user, resultA}, `/messages/1: a result that follows no reply`},
		"result of another call":       {[]string{user, onlyA, resultA, resultB}, `/messages/3: a result for "b"`},
		"result twice":                 {[]string{user, onlyA, resultA, resultA}, `/messages/3: the call "a" is answered a second time`},
		"results after a user message": {[]string{user, onlyA, user, resultA}, `/messages/1/tool_calls/0: the call "a" has no result before the next user message`},
		"late result of an old turn":   {[]string{user, onlyA, resultA, user, resultA}, `/messages/4: a result that follows no reply`},
		"two calls of one id":          {[]string{user, `{"role":"assistant","tool_calls":[` + callA + `,` + callA + `]}`, resultA}, `another call of this reply has the id "a"`},
		"call without an id":           {[]string{user, strings.Replace(onlyA, `"a"`, `""`, 1)}, `/messages/1/tool_calls/0/id: a call needs an id`},
		"result without an id":         {[]string{user, onlyA, strings.Replace(resultA, `"a"`, `""`, 1)}, `/messages/2/tool_call_id`},
		"flat call":                    {[]string{user, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","name":"look","arguments":"{}"}]}`, resultA}, `wants the definition under "function"`},
		"call without a type":          {[]string{user, strings.Replace(onlyA, `"type":"function",`, ``, 1), resultA}, `/messages/1/tool_calls/0/type`},
		"arguments as an object":       {[]string{user, strings.Replace(onlyA, `"{}"`, `{}`, 1), resultA}, `/messages/1/tool_calls/0/function/arguments: want a string, got an object`},
		"result without content":       {[]string{user, onlyA, `{"role":"tool","tool_call_id":"a"}`}, `/messages/2/content`},
		"empty list of calls":          {[]string{user, `{"role":"assistant","content":"x","tool_calls":[]}`}, `/messages/1/tool_calls: want a list of at least one call`},
		"items of the other API":       {[]string{user, itemA}, `/messages/1/role: unknown role ""`},
		"nothing":                      {nil, `/messages: want a list of at least one`},
	} {
		body := `{"model":"m",` + chatTools + `,"messages":[` + strings.Join(test.messages, ",") + `]}`
		checkFirst(t, name, pawltest.Chat, body, test.want)
	}
}

func TestCheckResponses(t *testing.T) {
	for name, test := range map[string]struct {
		items []string
		want  string
	}{
		"a question":               {[]string{user}, ""},
		"calls and results":        {[]string{user, thought, itemA, itemB, outputA, outputB, answer, user}, ""},
		"text and calls":           {[]string{user, thought, answer, itemA, outputA}, ""},
		"ids again in a new turn":  {[]string{user, itemA, outputA, itemA, outputA}, ""},
		"reasoning before an item": {[]string{user, thought, thought, answer}, ""},
		"xAI's own searches":       {[]string{user, `{"type":"custom_tool_call","call_id":"xs_call_1","name":"x_search","input":"{}"}`, answer, user}, ""},
		"hosted items":             {[]string{user, thought, `{"type":"web_search_call","id":"ws_1","status":"completed"}`, answer, user}, ""},

		"dangling call at the end":       {[]string{user, itemA}, `/input/1: the call "a" has no result before the end`},
		"one of two calls dangles":       {[]string{user, itemA, itemB, outputA, user}, `/input/2: the call "b" has no result before the next user message`},
		"dangling before a reply":        {[]string{user, itemA, itemB, outputA, answer}, `/input/2: the call "b" has no result before the next reply`},
		"result without a call":          {[]string{user, outputA}, `/input/1: a result for "a"`},
		"result before its call":         {[]string{user, outputA, itemA}, `/input/1: a result for "a"`},
		"result twice":                   {[]string{user, itemA, outputA, outputA}, `/input/3: the call "a" is answered a second time`},
		"results after a user message":   {[]string{user, itemA, user, outputA}, `/input/1: the call "a" has no result before the next user message`},
		"two calls of one id":            {[]string{user, itemA, itemA, outputA}, `/input/2: another call of this reply has the id "a"`},
		"reasoning at the end":           {[]string{user, thought}, `/input/1: reasoning was given without the item`},
		"reasoning before a user":        {[]string{user, thought, user}, `/input/1: reasoning was given without the item`},
		"reasoning before a result":      {[]string{user, itemA, thought, outputA}, `/input/2: reasoning was given without the item`},
		"nested call":                    {[]string{user, `{"type":"function_call","call_id":"a","function":{"name":"look","arguments":"{}"}}`, outputA}, `/input/1/function: this API wants the call flat`},
		"call without call_id":           {[]string{user, strings.Replace(itemA, `"call_id":"a",`, `"id":"fc_1",`, 1)}, `/input/1/call_id`},
		"arguments as an object":         {[]string{user, strings.Replace(itemA, `"{}"`, `{}`, 1), outputA}, `/input/1/arguments: want a string, got an object`},
		"result without output":          {[]string{user, itemA, `{"type":"function_call_output","call_id":"a"}`}, `/input/2/output`},
		"calls of the other API":         {[]string{user, onlyA}, `/input/1/tool_calls`},
		"results of the other API":       {[]string{user, itemA, resultA}, `/input/2/role: this API takes results as function_call_output`},
		"neither a type nor a role":      {[]string{user, `{}`}, `/input/1: an item needs a type or a role`},
		"a number in place of an object": {[]string{`1`}, `/input/0: want an object, got a number`},
	} {
		body := `{"model":"m",` + flatTools + `,"input":[` + strings.Join(test.items, ",") + `]}`
		checkFirst(t, name, pawltest.Responses, body, test.want)
	}
	body := `{"model":"m","previous_response_id":"resp_1","input":[` + outputA + `]}`
	checkFirst(t, "the call is at the provider", pawltest.Responses, body, "")
}

func TestCheckTools(t *testing.T) {
	const chat, flat = `"messages":[` + user + `]`, `"input":"hi"`
	for name, test := range map[string]struct{ api, rest, want string }{
		"chat: named":            {pawltest.Chat, chat + `,` + chatTools + `,"tool_choice":{"type":"function","function":{"name":"look"}}`, ""},
		"chat: subset":           {pawltest.Chat, chat + `,` + chatTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"look"}}]}}`, ""},
		"chat: not offered":      {pawltest.Chat, chat + `,` + chatTools + `,"tool_choice":{"type":"function","function":{"name":"find"}}`, `/tool_choice: the tool "find" is not among the tools`},
		"chat: choice is flat":   {pawltest.Chat, chat + `,` + chatTools + `,"tool_choice":{"type":"function","name":"look"}`, `/tool_choice: this API wants the definition under "function"`},
		"chat: tools are flat":   {pawltest.Chat, chat + `,` + flatTools, `/tools/0: this API wants the definition under "function"`},
		"chat: choice, no tools": {pawltest.Chat, chat + `,"tool_choice":"auto"`, `/tool_choice: a tool choice without tools`},
		"chat: unknown choice":   {pawltest.Chat, chat + `,` + chatTools + `,"tool_choice":"any"`, `/tool_choice: unknown choice "any"`},
		"chat: name twice":       {pawltest.Chat, chat + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`, `/tools/1: another tool is named "a"`},
		"chat: no type":          {pawltest.Chat, chat + `,"tools":[{"function":{"name":"a"}}]`, `/tools/0/type`},
		"chat: schema is text":   {pawltest.Chat, chat + `,"tools":[{"type":"function","function":{"name":"a","parameters":"{}"}}]`, `/tools/0/parameters: want a JSON Schema object, got a string`},
		"chat: empty tools":      {pawltest.Chat, chat + `,"tools":[]`, `/tools: the list is empty`},
		"chat: input":            {pawltest.Chat, `"input":"hi"`, `/input: this API takes messages`},

		"responses: named":          {pawltest.Responses, flat + `,` + flatTools + `,"tool_choice":{"type":"function","name":"look"}`, ""},
		"responses: hosted":         {pawltest.Responses, flat + `,` + flatTools + `,"tool_choice":{"type":"web_search"}`, ""},
		"responses: subset":         {pawltest.Responses, flat + `,` + flatTools + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"find"}]}`, `/tool_choice/tools/0: the tool "find" is not among the tools`},
		"responses: tools nested":   {pawltest.Responses, flat + `,` + chatTools, `/tools/0/function: this API wants the definition flat`},
		"responses: choice nested":  {pawltest.Responses, flat + `,` + flatTools + `,"tool_choice":{"type":"function","function":{"name":"look"}}`, `/tool_choice/function: this API wants the definition flat`},
		"responses: messages":       {pawltest.Responses, chat, `/messages: this API takes input`},
		"responses: choice a list":  {pawltest.Responses, flat + `,` + flatTools + `,"tool_choice":[]`, `/tool_choice: want a string or an object, got a list`},
		"responses: neither":        {pawltest.Responses, `"model":"x"`, `/input: want a string or a list`},
		"another API":               {"cohere", `"a":1`, `unknown API "cohere"`},
		"choice without tools, too": {pawltest.Responses, flat + `,"tool_choice":"none"`, `/tool_choice: a tool choice without tools`},
	} {
		checkFirst(t, name, test.api, `{`+test.rest+`}`, test.want)
	}
	checkFirst(t, "no JSON", pawltest.Chat, `{"messages":[`, "no JSON object")
	checkFirst(t, "a list", pawltest.Chat, `[]`, "no JSON object")
	checkFirst(t, "two objects", pawltest.Chat, `{"messages":[`+user+`]} {}`, "something follows")
}

func checkFirst(t *testing.T, name, api, body, want string) {
	t.Helper()
	got := pawltest.Check(api, []byte(body))
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("%s: refused: %v\n%s", name, got, body)
	case want != "" && len(got) == 0:
		t.Errorf("%s: accepted, want %q\n%s", name, want, body)
	case want != "" && !strings.Contains(got[0].String(), want):
		t.Errorf("%s: got %v, want %q first", name, got, want)
	}
}

// recordings caches the recordings of each API, which many tests read.
var recordings sync.Map

// corpus loads the recordings of api.
func corpus(t *testing.T, api string) []pawltest.Cassette {
	t.Helper()
	dir := filepath.Dir(corpora.Path(t, "provider-traffic/dev/"+api+".jsonl.gz"))
	load, _ := recordings.LoadOrStore(api, sync.OnceValues(func() ([]pawltest.Cassette, error) {
		return pawltest.LoadCassettes(dir, api)
	}))
	all, err := load.(func() ([]pawltest.Cassette, error))()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Requests of real clients are accepted, except dialects that the API's owner would refuse.
func TestRecordedRequestsAreAccepted(t *testing.T) {
	soak.Sequential(t)
	dialects := map[string]string{
		"/type: a tool needs a type":               "Mistral takes tools without a type",
		"/tools: the list is empty":                "Hugging Face takes an empty list of tools",
		"/tool_calls: want a list of at least one": "Mistral takes an empty list of calls",
		"/tool_choice/type: a tool choice needs a": "Hugging Face takes a choice without a type",
		`/tool_choice: unknown choice "any"`:       "Mistral says any for required",
		"two user messages in a row":               "Anthropic puts messages of one role together",
		"results right after them":                 "Gemini puts contents of one role together",
		"calls must come right after a user turn":  "Gemini puts contents of one role together",
		"results must come right after":            "Gemini puts contents of one role together",
	}
	for _, api := range pawltest.APIs() {
		n, seen := 0, map[string]int{}
		for _, c := range corpus(t, api) {
			for _, e := range c.Exchanges {
				if e.Request == nil || e.Method != "POST" || e.API != api || !answersOn(e.Path) {
					continue
				}
				n++
				if _, err := pawltest.ReadRequest(api, e.Request.Body); err != nil {
					t.Errorf("%s cannot be read: %v", e.Name(), err)
				}
			violations:
				for _, v := range pawltest.CheckModel(api, e.Info.Model, e.Request.Body) {
					for text, why := range dialects {
						if strings.Contains(v.String(), text) {
							seen[why]++
							continue violations
						}
					}
					t.Errorf("%s is refused: %v", e.Name(), v)
				}
			}
		}
		t.Logf("%s: %d requests were looked through; dialects: %v", api, n, seen)
		if n < 350 {
			t.Errorf("%s: only %d requests were found", api, n)
		}
	}
}

// answersOn reports whether a model answers on a path.
func answersOn(path string) bool {
	for _, end := range []string{"/completions", "/responses", "/messages", "awPredict", "/invoke", "enerateContent"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

func TestLoops(t *testing.T) {
	at := func(i int) *int { return &i }
	c := pawltest.Cassette{Name: "c", Exchanges: []pawltest.Exchange{
		{Seq: 0}, {Seq: 1, Continues: at(0)}, {Seq: 2, Continues: at(0)}, {Seq: 3}, {Seq: 4, Continues: at(2)},
		{Seq: 5}, {Seq: 6, Continues: at(5)},
	}}
	var got [][]int
	for _, loop := range c.Loops() {
		var seqs []int
		for _, e := range loop {
			seqs = append(seqs, e.Seq)
		}
		got = append(got, seqs)
	}
	if diff := cmp.Diff(got, [][]int{{0, 1}, {0, 2, 4}, {5, 6}}); diff != "" {
		t.Error(diff)
	}
}
