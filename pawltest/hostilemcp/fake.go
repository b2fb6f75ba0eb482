package hostilemcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// fault is the fault of a server. The texts are templates: $ID is the ID of the request, $N the
// number of times that the tool has run, and $OK the result of the tool.
type fault struct {
	before string // written first by a process

	// Results of requests, as JSON. Empty means the correct one.
	initialize string
	list       string
	result     string

	// reply returns everything that is written for the nth call, from 1, which has run. Nil means
	// a reply with the result.
	reply func(n int) string
	// each changes every reply. Nil means that they stay as they are.
	each func(reply string) string
	// idle returns whether a call does not run. Its reply is as of the others.
	idle func(n int) bool

	// A process ends after it has run the nth call: before its reply, or after it. 0 means never.
	dies      int
	diesAfter int

	// web answers a request in place of the fake server, and reports whether it did. Nil means
	// never.
	web func(w *exchange) bool
}

const (
	ok    = `{"content":[{"type":"text","text":"done $N"}]}`
	tool  = `{"name":"note","description":"Writes a note.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`
	hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`
)

// fake is the server of one play.
type fake struct {
	b   *Behaviour
	log string // the file that has a line for each call that ran

	mu    sync.Mutex
	calls int // received, whether they ran or not
	lists int
	web   webState
}

// message is a message of the client.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Cursor    string
		Arguments json.RawMessage
	}
}

// ran returns how often the tool has run.
func (f *fake) ran() int {
	b, err := os.ReadFile(f.log)
	if err != nil {
		return 0
	}
	return strings.Count(string(b), "\n")
}

// run runs the tool, and returns how often it has run.
func (f *fake) run(args json.RawMessage) int {
	file, err := os.OpenFile(f.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err) // the kit's own folder
	}
	defer file.Close()
	fmt.Fprintf(file, "%s\n", args)
	return f.ran()
}

// answer returns what is written for a message. Empty means nothing.
func (f *fake) answer(m message) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.b.fault
	result := ""
	switch m.Method {
	case "initialize":
		result = or(s.initialize, hello)
	case "ping":
		result = "{}"
	case "tools/list":
		f.lists++
		result = or(s.list, `{"tools":[`+tool+`]}`)
	case "tools/call":
		return f.call(m)
	default:
		if m.ID == nil || m.Method == "" {
			return ""
		}
		return f.whole(m, `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no such method"}}`)
	}
	return f.whole(m, `{"jsonrpc":"2.0","id":$ID,"result":`+result+`}`)
}

// call returns what is written for a call.
func (f *fake) call(m message) string {
	s := f.b.fault
	f.calls++
	if s.idle == nil || !s.idle(f.calls) {
		f.run(m.Params.Arguments)
	}
	text := `{"jsonrpc":"2.0","id":$ID,"result":` + or(s.result, "$OK") + `}`
	if s.reply != nil {
		text = s.reply(f.calls)
	}
	return f.whole(m, text)
}

// whole fills in a template.
func (f *fake) whole(m message, text string) string {
	if f.b.fault.each != nil {
		text = f.b.fault.each(text)
	}
	text = strings.ReplaceAll(text, "$OK", ok)
	text = strings.ReplaceAll(text, "$N", strconv.Itoa(f.ran()))
	return strings.ReplaceAll(text, "$ID", string(m.ID))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// The variables with which a program serves a behaviour as a process.
const (
	variableID  = "PAWL_HOSTILE_MCP"
	variableLog = "PAWL_HOSTILE_MCP_LOG"
)

// ServeProcess serves a behaviour on standard input and output if this program was started as its
// server, and then exits. Otherwise it returns at once.
func ServeProcess() {
	id := os.Getenv(variableID)
	if id == "" {
		return
	}
	b := Find(Behaviours(), id)
	if b == nil {
		fmt.Fprintln(os.Stderr, "no behaviour is named", id)
		os.Exit(2)
	}
	f := &fake{b: b, log: os.Getenv(variableLog)}
	f.serve(os.Stdin, os.Stdout)
	os.Exit(0)
}

// serve reads messages, one per line, and writes what the behaviour does.
func (f *fake) serve(in io.Reader, out io.Writer) {
	fmt.Fprint(out, f.b.fault.before)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		text := f.answer(m)
		dies := m.Method == "tools/call" && f.b.fault.dies == f.ran()
		if dies {
			os.Exit(1)
		}
		if text != "" {
			fmt.Fprint(out, text+"\n")
		}
		if m.Method == "tools/call" && f.b.fault.diesAfter == f.ran() {
			os.Exit(1)
		}
	}
}
