package pawltest_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/pawltest"
)

const (
	claudeTools = `"tools":[{"name":"look","input_schema":{"type":"object"}}]`
	useAB       = `{"role":"assistant","content":[{"type":"text","text":"I look."},` + useA + `,` + useB + `]}`
	useA        = `{"type":"tool_use","id":"a","name":"look","input":{}}`
	useB        = `{"type":"tool_use","id":"b","name":"look","input":{}}`
	onlyUseA    = `{"role":"assistant","content":[` + useA + `]}`
	gotA        = `{"type":"tool_result","tool_use_id":"a","content":"1"}`
	gotB        = `{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]}`
	gotBoth     = `{"role":"user","content":[` + gotB + `,` + gotA + `]}`
	onlyGotA    = `{"role":"user","content":[` + gotA + `]}`
	claudeSays  = `{"role":"assistant","content":"so"}`
	runsCode    = `{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"x"}}`
	byCode      = `"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}`
	codeUses    = `{"type":"tool_use","id":"a","name":"look","input":{},` + byCode + `}`
	words       = `{"type":"text","text":"and?"}`
	mused       = `{"type":"thinking","thinking":"hm","signature":"x"}`
)

func TestCheckAnthropic(t *testing.T) {
	content := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	again := strings.Replace
	for name, test := range map[string]struct {
		messages []string
		want     string // part of the first violation; "" means accepted
	}{
		"a question":              {[]string{user}, ""},
		"calls and results":       {[]string{user, useAB, gotBoth, claudeSays, user}, ""},
		"words after the results": {[]string{user, onlyUseA, content("user", gotA, words)}, ""},
		"thinking before calls":   {[]string{user, content("assistant", mused, useA), onlyGotA}, ""},
		"a server's tool": {[]string{user, content("assistant", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`,
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`, words), user}, ""},
		"a failed result":    {[]string{user, onlyUseA, content("user", again(gotA, `"1"`, `"1","is_error":true`, 1))}, ""},
		"an image":           {[]string{content("user", `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`)}, ""},
		"an image in result": {[]string{user, onlyUseA, content("user", again(gotA, `"1"`, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}]`, 1))}, ""},
		"code that waits":    {[]string{user, content("assistant", runsCode, codeUses), onlyGotA}, ""},
		"a reply begun":      {[]string{user, `{"role":"assistant","content":"It is"}`}, ""},

		"code that waits, no container": {[]string{user, content("assistant", runsCode, codeUses), onlyGotA}, `/container: code waits for results`},
		"code that waits, and words":    {[]string{user, content("assistant", runsCode, codeUses), content("user", gotA, words)}, `/messages/2/content/1: code waits for results, so the message may hold nothing else`},
		"code that is not there":        {[]string{user, content("assistant", codeUses), onlyGotA}, `/messages/1/content/0/caller/tool_id: no code with the id "srvtoolu_1"`},

		"dangling call at the end":     {[]string{user, onlyUseA}, `/messages/1/content/0: the call "a" has no result before the end`},
		"one of two calls dangles":     {[]string{user, useAB, onlyGotA}, `/messages/1/content/2: the call "b" has no result before the end of the user message`},
		"results one message each":     {[]string{user, useAB, onlyGotA, content("user", gotB)}, `/messages/1/content/2: the call "b" has no result`},
		"words before the results":     {[]string{user, onlyUseA, content("user", words, gotA)}, `/messages/2/content/1: results must come first`},
		"result without a call":        {[]string{user, claudeSays, onlyGotA}, `/messages/2/content/0: a result for "a", but the message before has no call`},
		"result of an older reply":     {[]string{user, onlyUseA, onlyGotA, claudeSays, onlyGotA}, `/messages/4/content/0: a result for "a"`},
		"result twice":                 {[]string{user, onlyUseA, content("user", gotA, gotA)}, `/messages/2/content/1: the call "a" is answered a second time`},
		"result after another message": {[]string{user, onlyUseA, user}, `/messages/1/content/0: the call "a" has no result`},
		"ids again in a new reply":     {[]string{user, onlyUseA, onlyGotA, onlyUseA, onlyGotA}, `/messages/3/content/0: the id "a" is the id of /messages/1/content/0, too`},
		"an id of another provider":    {[]string{user, again(onlyUseA, `"a"`, `"call:1"`, 1), again(onlyGotA, `"a"`, `"call:1"`, 1)}, `/messages/1/content/0/id`},
		"input as a string":            {[]string{user, again(onlyUseA, `{}`, `"{}"`, 1), onlyGotA}, `/messages/1/content/0/input: want an object, got a string`},
		"input left out":               {[]string{user, again(onlyUseA, `,"input":{}`, ``, 1), onlyGotA}, `/messages/1/content/0/input: want an object, got null`},
		"two users in a row":           {[]string{user, user}, `/messages/1: two user messages in a row`},
		"two replies in a row":         {[]string{user, claudeSays, claudeSays, user}, `/messages/2: two assistant messages in a row`},
		"a reply first":                {[]string{claudeSays, user}, `/messages/0: the first message must be the user's`},
		"role tool":                    {[]string{user, onlyUseA, resultA}, `/messages/2/role: want user or assistant, got "tool"`},
		"empty text":                   {[]string{content("user", `{"type":"text","text":" "}`)}, `/messages/0/content/0/text`},
		"empty content":                {[]string{user, content("assistant"), user}, `/messages/1/content: the content is empty`},
		"thinking unsigned":            {[]string{user, content("assistant", `{"type":"thinking","thinking":"hm"}`, useA), onlyGotA}, `/messages/1/content/0/signature`},
		"thinking of the user":         {[]string{content("user", mused)}, `/messages/0/content/0: a user message cannot hold thinking`},
		"thinking at the end":          {[]string{user, content("assistant", words, mused), user}, `/messages/1/content/1: the final block of a reply cannot be thinking`},
		"redacted without data":        {[]string{user, content("assistant", `{"type":"redacted_thinking"}`, words), user}, `/messages/1/content/0/data`},
		"a failed result with image":   {[]string{user, onlyUseA, content("user", again(gotA, `"1"`, `[{"type":"image","source":{"type":"url","url":"https://example.com"}}],"is_error":true`, 1))}, `may hold text only`},
		"an image of OpenAI":           {[]string{content("user", `{"type":"image_url","image_url":{"url":"https://example.com"}}`)}, `this API has no blocks of type "image_url"`},
		"a data URL":                   {[]string{content("user", `{"type":"image","source":{"type":"url","url":"data:image/png;base64,AQID"}}`)}, `/messages/0/content/0/source/url`},
		"white space at the end":       {[]string{user, `{"role":"assistant","content":"It is "}`}, `must not end in white space`},
		"nothing":                      {nil, `/messages: want a list of at least one`},
	} {
		container := ""
		if strings.Contains(strings.Join(test.messages, ""), byCode) && !strings.Contains(name, "no container") {
			container = `"container":"c",`
		}
		body := `{"model":"m","max_tokens":100,` + container + claudeTools + `,"messages":[` + strings.Join(test.messages, ",") + `]}`
		checkFirst(t, name, pawltest.Anthropic, body, test.want)
	}
}

func TestCheckAnthropicRequests(t *testing.T) {
	const asked = `"max_tokens":100,"messages":[` + user + `]`
	const thinks = `"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},` + claudeTools
	block := `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	for name, test := range map[string]struct{ rest, want string }{
		"auto":                    {asked + `,` + claudeTools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, ""},
		"none":                    {asked + `,` + claudeTools + `,"tool_choice":{"type":"none"}`, ""},
		"named":                   {asked + `,` + claudeTools + `,"tool_choice":{"type":"tool","name":"look"}`, ""},
		"hosted":                  {asked + `,"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`, ""},
		"system":                  {asked + `,"system":[` + block + `]`, ""},
		"thinking, its turn":      {thinks + `,"messages":[` + user + `,{"role":"assistant","content":[` + mused + `,` + useA + `]},` + onlyGotA + `]`, ""},
		"thinking, second step":   {thinks + `,"messages":[` + user + `,{"role":"assistant","content":[` + mused + `,` + useA + `]},` + onlyGotA + `,{"role":"assistant","content":[` + useB + `]},{"role":"user","content":[` + gotB + `]}]`, ""},
		"not offered":             {asked + `,` + claudeTools + `,"tool_choice":{"type":"tool","name":"find"}`, `/tool_choice: the tool "find" is not among`},
		"choice without tools":    {asked + `,"tool_choice":{"type":"any"}`, `/tool_choice: a tool choice without tools`},
		"choice as a word":        {asked + `,` + claudeTools + `,"tool_choice":"auto"`, `/tool_choice: want an object`},
		"choice of OpenAI":        {asked + `,` + claudeTools + `,"tool_choice":{"type":"required"}`, `/tool_choice/type: unknown choice "required"`},
		"tools of OpenAI":         {asked + `,` + chatTools, `/tools/0/type: this API wants the definition flat`},
		"name with a dot":         {asked + `,"tools":[{"name":"a.b","input_schema":{"type":"object"}}]`, `/tools/0/name`},
		"name twice":              {asked + `,"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]`, `/tools/1: another tool is named "a"`},
		"no schema":               {asked + `,"tools":[{"name":"a"}]`, `/tools/0/input_schema: want a JSON Schema object`},
		"schema of no object":     {asked + `,"tools":[{"name":"a","input_schema":{"type":"string"}}]`, `/tools/0/input_schema/type: want object`},
		"no max_tokens":           {`"messages":[` + user + `]`, `/max_tokens`},
		"input":                   {`"max_tokens":1,"input":"hi"`, `/input: this API takes messages`},
		"five breakpoints":        {asked + `,"system":[` + strings.Repeat(block+",", 4) + block + `]`, `5 blocks have cache_control`},
		"thinking and any":        {thinks + `,"tool_choice":{"type":"any"},"messages":[` + user + `]`, `/tool_choice: thinking may not be enabled when the tool choice forces a call`},
		"thinking and a name":     {thinks + `,"tool_choice":{"type":"tool","name":"look"},"messages":[` + user + `]`, `/tool_choice: thinking`},
		"thinking, cool":          {thinks + `,"temperature":0.5,"messages":[` + user + `]`, `/temperature`},
		"thinking, too little":    {`"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":100},"messages":[` + user + `]`, `/thinking/budget_tokens`},
		"thinking over the limit": {`"max_tokens":1024,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + user + `]`, `/max_tokens: must be greater`},
		"thinking, dropped":       {thinks + `,"messages":[` + user + `,{"role":"assistant","content":[` + useA + `]},` + onlyGotA + `]`, `/messages/1/content/0: thinking is enabled, so the last reply must begin with a thinking block`},
	} {
		checkFirst(t, name, pawltest.Anthropic, `{"model":"m",`+test.rest+`}`, test.want)
	}
}
