package hostilemcp

import (
	"strings"
	"time"
)

// reply is the correct reply to a call.
const reply = `{"jsonrpc":"2.0","id":$ID,"result":$OK}`

// before returns a reply with text before it.
func before(text string) func(int) string {
	return func(int) string { return text + "\n" + reply }
}

// instead returns a reply with old replaced.
func instead(old, by string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, by) }
}

// once returns a reply of the first call, and correct replies of the others.
func once(text string) func(int) string {
	return func(n int) string {
		if n == 1 {
			return text
		}
		return reply
	}
}

// lines are processes that write more, or something else, than a message on each line.
func lines() []Behaviour {
	all := []Behaviour{
		{
			ID:    "lines-greeting",
			Title: "writes a greeting first",
			fault: fault{before: "Server is up\nListening …\n"},
		},
		{
			ID:    "lines-log",
			Title: "writes logs during a call",
			fault: fault{reply: before("GET /notes 200")},
		},
		{
			ID:    "lines-json-log-first",
			Title: "writes a log in JSON first",
			fault: fault{before: `{"level":"info","msg":"up","time":"2026-01-01T00:00:00Z"}` + "\n"},
		},
		{
			ID:    "lines-json-log",
			Title: "writes logs in JSON during a call",
			fault: fault{reply: before(`{"level":"info","msg":"wrote"}`)},
		},
		{
			ID:    "lines-json-log-with-id",
			Title: "writes a log in JSON that has the ID of the call",
			fault: fault{reply: before(`{"level":"info","id":$ID,"method":"GET","result":200}`)},
		},
		{
			ID:    "lines-json-values",
			Title: "writes JSON that is no object",
			fault: fault{reply: before("null\n17\n\"text\"\n[]\n[1,2]\n{}")},
		},
		{
			ID:    "lines-cut-log",
			Title: "writes half a log line in JSON",
			fault: fault{reply: before(`{"level":"info","msg":"wro`)},
		},
		{
			ID:    "lines-brackets",
			Title: "writes logs that begin like JSON",
			fault: fault{reply: before("[INFO] wrote\n{ done }\n[1/3] step")},
		},
		{
			ID:    "lines-bytes",
			Title: "writes bytes that are no text",
			fault: fault{reply: before("\xff\xfe\x00\x01")},
		},
		{
			ID:    "lines-empty",
			Title: "writes empty lines",
			fault: fault{reply: before("\n \n\t\r\n")},
		},
		{
			ID:    "lines-long-log",
			Title: "writes a log line of 9 MB",
			fault: fault{reply: before(strings.Repeat("x", 9_000_000))},
		},
		{
			ID:    "lines-bom",
			Title: "begins with a byte order mark",
			fault: fault{before: "\ufeff"},
		},
		{
			ID:    "lines-bom-each",
			Title: "begins each line with a byte order mark",
			fault: fault{each: func(s string) string { return "\ufeff" + s }},
		},
		{
			ID:    "lines-crlf",
			Title: "ends its lines with CR and LF",
			fault: fault{each: func(s string) string { return s + "\r" }},
		},
		{
			ID:    "lines-indented",
			Title: "writes a message on several lines",
			fault: fault{each: instead(",", ",\n  ")},
		},
		{
			ID:    "lines-two-in-one",
			Title: "writes a notification and a reply on one line",
			fault: fault{each: func(s string) string {
				return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + s
			}},
		},
		{
			ID:    "lines-trailing",
			Title: "writes text after each message",
			fault: fault{each: func(s string) string { return s + " # sent" }},
		},
		{
			ID:    "lines-array",
			Title: "writes its replies in an array",
			fault: fault{each: func(s string) string { return "[" + s + "]" }},
		},
		{
			ID:    "lines-array-mixed",
			Title: "writes an array with a log and a reply",
			fault: fault{reply: func(int) string { return `[{"level":"info"},` + reply + `]` }},
		},
		{
			ID:    "lines-id-text",
			Title: "gives the ID back as text",
			fault: fault{each: instead("$ID", `"$ID"`)},
		},
		{
			ID:    "lines-id-fraction",
			Title: "gives the ID back as 3.0",
			fault: fault{each: instead("$ID", `$ID.0`)},
		},
		{
			ID:    "lines-id-object",
			Title: "writes a request whose ID is an object",
			fault: fault{reply: before(`{"jsonrpc":"2.0","id":{},"method":"ping"}`)},
		},
		{
			ID:    "lines-id-unknown",
			Title: "replies to a request that was never sent",
			fault: fault{reply: before(`{"jsonrpc":"2.0","id":4711,"result":{}}`)},
		},
		{
			ID:    "lines-twice",
			Title: "sends each reply twice",
			fault: fault{each: func(s string) string { return s + "\n" + s }},
		},
		{
			ID:    "lines-version-number",
			Title: "writes the version as a number",
			fault: fault{each: instead(`"2.0"`, "2.0")},
		},
		{
			ID:    "lines-method-null",
			Title: "has a null method in its replies",
			fault: fault{each: instead(`"id"`, `"method":null,"id"`)},
		},
		{
			ID:    "lines-error-null",
			Title: "has a null error in its replies",
			fault: fault{each: instead(`"id"`, `"error":null,"id"`)},
		},
		{
			ID:    "lines-error-text",
			Title: "sends an error that is a text",
			Want:  Want{Says: []string{"full", "done 2"}},
			Calls: 2,
			fault: fault{reply: once(`{"jsonrpc":"2.0","id":$ID,"error":"the disk is full"}`)},
		},
		{
			ID:    "lines-error-code-text",
			Title: "sends an error whose code is a text",
			Want:  Want{Says: []string{"full", "done 2"}},
			Calls: 2,
			fault: fault{reply: once(`{"jsonrpc":"2.0","id":$ID,"error":{"code":"EFULL","message":"the disk is full"}}`)},
		},
		{
			ID:    "lines-error-without-id",
			Title: "sends an error without an ID",
			Want:  Want{Says: []string{"full", "done 2"}},
			Calls: 2,
			fault: fault{reply: once(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the disk is full"}}`)},
		},
		{
			ID:    "lines-neither",
			Title: "sends a reply with neither a result nor an error",
			Want:  Want{Says: []string{"neither", "done 2"}},
			Calls: 2,
			fault: fault{reply: once(`{"jsonrpc":"2.0","id":$ID}`)},
		},
		{
			ID:    "lines-huge",
			Title: "sends a result of 9 MB",
			Want:  Want{Says: []string{"8 MiB", "done 2"}, Unknown: 1},
			Calls: 2,
			fault: fault{reply: once(`{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 9_000_000) + `"}]}}`)},
		},
		{
			ID:    "lines-dies",
			Title: "ends during a call",
			Want:  Want{Says: []string{"lost", "done 2"}, Unknown: 1},
			Calls: 2,
			fault: fault{dies: 1},
		},
		{
			ID:    "lines-dies-after",
			Title: "ends after a call",
			Calls: 2,
			Pause: time.Second,
			fault: fault{diesAfter: 1},
		},
	}
	for i := range all {
		all[i].Process = true
	}
	return all
}

// results are servers whose results have another form than the protocol's.
func results() []Behaviour {
	of := func(id, title, content string) Behaviour {
		return Behaviour{ID: "results-" + id, Title: title, fault: fault{result: `{"content":[{"type":"text","text":"done $N"},` + content + `]}`}}
	}
	raw := func(id, title, result string, says ...string) Behaviour {
		return Behaviour{ID: "results-" + id, Title: title, Want: Want{Says: says}, fault: fault{result: result}}
	}
	return []Behaviour{
		raw("empty", "sends an empty result", `{}`, ""),
		raw("no-content", "sends an empty list of content", `{"content":[]}`, ""),
		raw("content-null", "sends null for content", `{"content":null}`, ""),
		raw("failed", "reports a failure", `{"content":[{"type":"text","text":"the disk is full"}],"isError":true}`, "full"),
		raw("failed-silently", "reports a failure without a word", `{"content":[],"isError":true}`, "did not say why"),
		raw("data-only", "sends structured content alone",
			`{"content":[],"structuredContent":{"n":9007199254740993}}`,
			"9007199254740993",
		),
		raw("own-members", "sends members of its own in place of content", `{"status":"done $N","took":3}`, "done 1"),
		raw("text-alone", "sends a text as the whole result", `"done $N"`, "done 1"),
		raw("list-alone", "sends a list of content as the whole result", `[{"type":"text","text":"done $N"}]`, "done 1"),
		raw("number-alone", "sends a number as the whole result", `4711`, "4711"),
		raw("meta-list", "sends [] for _meta", `{"_meta":[],"content":[{"type":"text","text":"done $N"}]}`, "done 1"),
		raw("more-members", "sends members that the protocol does not have",
			`{"status":"ok","content":[{"type":"text","text":"done $N"}],"took":3}`,
			"done 1",
		),
		raw("control", "sends commands to a terminal",
			`{"content":[{"type":"text","text":"done $N\u001b[2J\u0000"}]}`,
			"done 1",
		),
		raw("surrogate", "sends half of a UTF-16 pair", `{"content":[{"type":"text","text":"done $N \ud83d"}]}`, "done 1"),
		raw("large", "sends 1 MB of text",
			`{"content":[{"type":"text","text":"done $N`+strings.Repeat(" x", 500_000)+`"}]}`,
			"done 1",
		),
		of("page-as-picture", "sends a page as a picture", `{"type":"image","mimeType":"image/png","data":"PGh0bWw+"}`),
		of("link", "sends a link without a name", `{"type":"resource_link","uri":"note://1"}`),
		of("bytes", "sends bytes as a resource",
			`{"type":"resource","resource":{"uri":"note://1","mimeType":"application/octet-stream","blob":"AAEC/w=="}}`,
		),
	}
}

// lists are servers whose list of tools has another form than the protocol's.
func lists() []Behaviour {
	with := func(id, title, old, by string) Behaviour {
		return Behaviour{ID: "lists-" + id, Title: title, fault: fault{list: `{"tools":[` + strings.Replace(tool, old, by, 1) + `]}`}}
	}
	beside := func(id, title, other string) Behaviour {
		return Behaviour{ID: "lists-" + id, Title: title, fault: fault{list: `{"tools":[` + other + `,` + tool + `]}`}}
	}
	raw := func(id, title, list string) Behaviour {
		return Behaviour{ID: "lists-" + id, Title: title, fault: fault{list: list}}
	}
	const text = `{"type":"string"}`
	const name = `"name":"note",`
	all := []Behaviour{
		with("hint-text", "writes a hint as text", name, name+`"annotations":{"readOnlyHint":"true"},`),
		with("hints-list", "writes [] for annotations", name, name+`"annotations":[],`),
		with("title-object", "writes an object for a title", name, name+`"title":{"en":"Note"},`),
		with("description-number", "writes a number for a description", `"Writes a note."`, "7"),
		with("icons-text", "writes text for icons", name, name+`"icons":"note.png",`),
		with("output-text", "writes text for the schema of results", name, name+`"outputSchema":"a text",`),
		with("meta-list", "writes [] for the _meta of a tool", name, name+`"_meta":[],`),
		with("no-schema", "lists a tool without a schema",
			`,"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}`,
			"",
		),
		with("schema-null", "lists a tool with a null schema",
			`{"type":"object","properties":{"text":{"type":"string"}}}`,
			"null",
		),
		with("properties-list", "writes [] for properties", `"properties":{"text":{"type":"string"}}`, `"properties":[]`),
		with("examples-text", "writes a text for examples", text, `{"type":"string","examples":"x"}`),
		with("deprecated-text", "writes a text for deprecated", text, `{"type":"string","deprecated":"no"}`),
		with("comment-list", "writes a list for a comment", text, `{"type":"string","$comment":["x"]}`),
		with("type-foreign", "names a type of another language", text, `{"type":"str"}`),
		with("required-inside", "writes required at an argument", text, `{"type":"string","required":false}`),
		with("required-twice", "names a required argument twice", `"properties"`, `"required":["text","text"],"properties"`),
		with("length-negative", "writes a negative length", text, `{"type":"string","minLength":-1}`),
		with("pattern-count", "has a pattern with a count above 1000", text, `{"type":"string","pattern":"^\\S{1,2048}$"}`),
		with("pattern-lookahead", "has a pattern with a lookahead", text, `{"type":"string","pattern":"^(?!-)"}`),
		with("pattern-reference", "has a pattern with a reference to a group",
			text,
			`{"type":"string","pattern":"^(.)(?:.*\\1)?"}`,
		),
		with("pattern-not", "has a lookahead in not", text, `{"type":"string","not":{"pattern":"(?=a)"}}`),
		beside("beside-nameless", "lists a tool without a name", `{"description":"x","inputSchema":{"type":"object"}}`),
		beside("beside-text", "lists a text as a tool", `"note"`),
		beside("beside-null", "lists null as a tool", "null"),
		beside("beside-broken", "lists a tool whose schema cannot be",
			`{"name":"b","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}}`,
		),
		beside("beside-same", "lists two tools with the same name after folding",
			`{"name":"note.","inputSchema":{"type":"object"}}`,
		),
		raw("cursor-null", "writes a null cursor", `{"nextCursor":null,"tools":[`+tool+`]}`),
		raw("cursor-endless", "has a list that does not end", `{"nextCursor":"again","tools":[`+tool+`]}`),
		raw("cursor-number", "writes a number for a cursor, without end", `{"nextCursor":2,"tools":[`+tool+`]}`),
		raw("result-meta-list", "writes [] for the _meta of a list", `{"_meta":[],"tools":[`+tool+`]}`),
		{
			ID:    "lists-capabilities-list",
			Title: "writes [] for the capabilities of tools",
			fault: fault{initialize: strings.Replace(hello, `{"listChanged":true}`, "[]", 1)},
		},
	}
	return all
}
