package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

// wireCmd translates requests and replies without a network and without a key.
type wireCmd struct {
	Encode wireEncodeCmd `cmd:"" help:"@wire_encode"`
	Decode wireDecodeCmd `cmd:"" help:"@wire_decode"`
	Check  wireCheckCmd  `cmd:"" help:"@wire_check"`
}

// read returns the reply or the error of an HTTP answer. The adapter itself reads an error status,
// so that the headers count.
func read(api provider.API, status int, h http.Header, sse bool, body []byte) (*llm.Response, error) {
	if status >= 200 && status <= 299 {
		return api.Decode(status, sse, body)
	}
	m := api.Open(answers(func() *http.Response {
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(body)),
			ContentLength: int64(len(body))}
	}))
	return llm.Complete(context.Background(), m, &llm.Request{Messages: []llm.Message{llm.User("?")}})
}

// answers is a transport with one answer.
type answers func() *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return f(), nil
}

// headers reads "name: value" lines.
func headers(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("%q is no header; want NAME: VALUE", l)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

// wireOf returns the API with a name or an alias.
func wireOf(api string) (provider.API, error) {
	a, ok := provider.FindAPI(api)
	if !ok {
		var known []string
		for _, a := range provider.APIs() {
			known = append(known, a.Name)
		}
		return a, fmt.Errorf("unknown api %q; known: %s", api, strings.Join(known, ", "))
	}
	return a, nil
}

type wireEncodeCmd struct {
	API    string `required:"" name:"api" enum:"${apis}" placeholder:"API" help:"@wire_encode_api"`
	Stream bool   `help:"As for a streamed reply."`
}

// Run reads a request and prints the body. It repairs a history that the API rejects, with a notice
// for each repair, as the adapter does.
func (c *wireEncodeCmd) Run(sys *cli.System) error {
	api, err := wireOf(c.API)
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}
	in, err := io.ReadAll(sys.In)
	if err != nil {
		return cli.Usage("", "the request could not be read from standard input: %v", err)
	}
	req := new(llm.Request)
	if err := cli.Decode(in, req); err != nil {
		return cli.Usage(`{"model":"…","messages":[{"role":"user","parts":[{"type":"text","text":"…"}]}]}`, "the request on standard input: %s", cli.JSONFault(in, err))
	}
	req.Whole = !c.Stream
	req, repairs := api.Repair(req)
	body, err := api.Encode(req)
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}
	for _, m := range repairs {
		fmt.Fprintf(sys.Err, "pawl: notice: %s\n", m.Notice().Text)
	}
	_, err = sys.Out.Write(append(body, '\n'))
	return err
}

type wireDecodeCmd struct {
	API    string    `name:"api" placeholder:"API" help:"@wire_decode_api"`
	SSE    bool      `name:"sse" help:"The body is a stream of events."`
	Status cli.Whole `default:"200" placeholder:"N" help:"@wire_decode_status"`
	Header []string  `sep:"none" placeholder:"NAME: VALUE" help:"@wire_decode_header"`
	Lines  bool      `help:"@wire_decode_lines"`
}

// wireError is an error as decode prints it.
type wireError struct {
	Code       string  `json:"code"`
	Status     int     `json:"status"`
	Retryable  bool    `json:"retryable"`
	RetryAfter float64 `json:"retry_after"` // seconds; 0 means unknown
	Message    string  `json:"message"`
}

func toWireError(err error, status int) *wireError {
	var p *llm.ProviderError
	if !errors.As(err, &p) {
		return &wireError{Code: string(llm.CodeStream), Status: status, Message: err.Error()}
	}
	e := &wireError{Code: string(p.Code), Status: cmp.Or(p.Status, status), Retryable: p.Retryable,
		RetryAfter: p.RetryAfter.Seconds(), Message: p.Message}
	if e.Message == "" && p.Err != nil {
		e.Message = p.Err.Error()
	}
	return e
}

// Run reads one body, or a line for each of many.
func (c *wireDecodeCmd) Run(sys *cli.System) error {
	if c.API != "" || !c.Lines {
		if _, err := wireOf(c.API); err != nil {
			return cli.Usage("--api openai-responses, --api openai-chat, --api anthropic-messages, or --api gemini",
				"--api: %v", err)
		}
	}
	if c.Status < 100 || c.Status > 599 {
		return cli.Usage("such as 200, 429 or 500", "--status %d is no HTTP status", c.Status)
	}
	h, err := headers(c.Header)
	if err != nil {
		return cli.Usage("such as 'retry-after: 3'", "--header: %v", err)
	}
	out := bufio.NewWriter(sys.Out)
	decode := c.one
	if c.Lines {
		decode = c.lines
	}
	return cmp.Or(decode(sys.In, h, cli.JSONLines(out)), out.Flush())
}

// one decodes a single body.
func (c *wireDecodeCmd) one(in io.Reader, h http.Header, out *json.Encoder) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return cli.Usage("", "the reply could not be read from standard input: %v", err)
	}
	api, _ := wireOf(c.API) // Run has checked it
	resp, err := read(api, int(c.Status), h, c.SSE, body)
	if err != nil {
		return out.Encode(map[string]any{"error": toWireError(err, int(c.Status))})
	}
	return out.Encode(resp)
}

// wireLine is a line of a log.
type wireLine struct {
	ID          json.RawMessage   `json:"id"`
	API         string            `json:"api"`
	Streaming   bool              `json:"streaming"`
	Status      int               `json:"status"`
	Headers     map[string]string `json:"headers"`
	ContentType string            `json:"content_type"`
	Body        *string           `json:"body"`
	BodyB64     *string           `json:"body_b64"`
}

type wireAnswer struct {
	ID       json.RawMessage `json:"id"`
	Response *llm.Response   `json:"response,omitempty"`
	Error    *wireError      `json:"error,omitempty"`
}

// lines prints an answer for each line of in, also for a malformed one.
func (c *wireDecodeCmd) lines(in io.Reader, _ http.Header, out *json.Encoder) error {
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		text, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			if err := out.Encode(c.line(text)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return cli.Usage("", "standard input: %v", err)
		}
	}
}

// line decodes one line.
func (c *wireDecodeCmd) line(text []byte) (a wireAnswer) {
	a.ID = json.RawMessage("null")
	bad := func(status int, format string, args ...any) wireAnswer {
		a.Error = &wireError{Code: string(llm.CodeInvalidRequest), Status: status, Message: "line: " +
			fmt.Sprintf(format, args...)}
		return a
	}
	var l wireLine
	if err := cli.Lenient(text, &l); err != nil {
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(text, &id) == nil && id.ID != nil {
			a.ID = id.ID
		}
		return bad(0, "%s", strings.TrimPrefix(cli.JSONFault(text, err), "line 1: "))
	}
	if l.ID != nil {
		a.ID = l.ID
	}
	api, err := wireOf(cmp.Or(l.API, c.API))
	if err != nil {
		return bad(l.Status, "%v", err)
	}
	var body []byte
	switch {
	case l.Body != nil && l.BodyB64 != nil:
		return bad(l.Status, "both body and body_b64")
	case l.Body != nil:
		body = []byte(*l.Body)
	case l.BodyB64 != nil:
		if body, err = base64.StdEncoding.DecodeString(*l.BodyB64); err != nil {
			return bad(l.Status, "body_b64: %v", err)
		}
	default:
		return bad(l.Status, "neither body nor body_b64")
	}
	status := cmp.Or(l.Status, 200)
	sse := l.Streaming
	if l.ContentType != "" {
		sse = strings.HasPrefix(strings.ToLower(strings.TrimSpace(l.ContentType)), "text/event-stream")
	}
	h := http.Header{}
	for name, value := range l.Headers {
		h.Set(name, value)
	}
	resp, err := read(api, status, h, sse, body)
	if err != nil {
		a.Error = toWireError(err, status)
	} else {
		a.Response = resp
	}
	return a
}

type wireCheckCmd struct {
	API string `required:"" name:"api" enum:"${apis}" placeholder:"API" help:"@wire_check_api"`
}

// Run prints the faults of a history, and the repaired history.
func (c *wireCheckCmd) Run(sys *cli.System) error {
	in, err := io.ReadAll(sys.In)
	if err != nil {
		return cli.Usage("", "the messages could not be read from standard input: %v", err)
	}
	var from pawl.Result
	if err := cli.Decode(in, &from.Messages); err != nil {
		if cli.Decode(in, &from) != nil || from.Messages == nil {
			return cli.Usage(`a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}], or a file of --save`, "the messages on standard input: %s", cli.JSONFault(in, err))
		}
	}
	api, _ := provider.FindAPI(c.API) // the enum of the flag has only known names
	faults := api.Rules.Check(from.Messages)
	repaired, repairs := api.Rules.Repair(from.Messages)
	return cli.JSONLines(sys.Out).Encode(struct {
		Faults   []llm.HistoryFault `json:"faults"`
		Mends    []llm.Repaired     `json:"mends"`
		Messages []llm.Message      `json:"messages"`
	}{append([]llm.HistoryFault{}, faults...), append([]llm.Repaired{}, repairs...),
		append([]llm.Message{}, repaired...)})
}
