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

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
)

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
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no header; want NAME: VALUE", l)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

// apiOf returns the API with a name or an alias.
func apiOf(name string) (provider.API, error) {
	a, ok := provider.FindAPI(name)
	if !ok {
		return a, fmt.Errorf("unknown api %q; known: %s", name, strings.Join(names(false), ", "))
	}
	return a, nil
}

// printer returns an encoder that writes values to w, one a line.
func printer(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

type encodeCommand struct {
	api    provider.API
	stream bool
}

// run reads a request and prints the body. It repairs a history that the API rejects, with a notice
// for each repair, as the adapter does.
func (c *encodeCommand) run(r io.Reader, out, stderr io.Writer) error {
	in, err := io.ReadAll(r)
	if err != nil {
		return wrong("", "the request could not be read from standard input: %w", err)
	}
	req := new(llm.Request)
	if err := jsonv2.Unmarshal(in, req, jsonform.Strict); err != nil {
		return wrong(`{"model":"…","messages":[{"role":"user","parts":[{"type":"text","text":"…"}]}]}`,
			"the request on standard input: %s", fault(in, err))
	}
	req.Whole = !c.stream
	req, repairs := c.api.Repair(req)
	body, err := c.api.Encode(req)
	if err != nil {
		return usageError{error: err}
	}
	for _, m := range repairs {
		fmt.Fprintf(stderr, "wire: notice: %s\n", m.Notice().Text)
	}
	_, err = out.Write(append(body, '\n'))
	return err
}

type decodeCommand struct {
	api        string
	sse, lines bool
	status     int
	header     []string
}

// replyError is an error as decode prints it.
type replyError struct {
	Code       string  `json:"code"`
	Status     int     `json:"status"`
	Retryable  bool    `json:"retryable"`
	RetryAfter float64 `json:"retry_after"` // seconds; 0 means unknown
	Message    string  `json:"message"`
}

func toReplyError(err error, status int) *replyError {
	var p *llm.ProviderError
	if !errors.As(err, &p) {
		return &replyError{Code: string(llm.CodeStream), Status: status, Message: err.Error()}
	}
	e := &replyError{Code: string(p.Code), Status: cmp.Or(p.Status, status), Retryable: p.Retryable,
		RetryAfter: p.RetryAfter.Seconds(), Message: p.Message}
	if e.Message == "" && p.Err != nil {
		e.Message = p.Err.Error()
	}
	return e
}

// run reads one body, or a line for each of many.
func (c *decodeCommand) run(in io.Reader, w io.Writer) error {
	if c.api != "" || !c.lines {
		if _, err := apiOf(c.api); err != nil {
			return wrong("--api openai-responses, --api openai-chat, --api anthropic-messages, or --api gemini",
				"--api: %w", err)
		}
	}
	if c.status < 100 || c.status > 599 {
		return wrong("such as 200, 429 or 500", "--status %d is no HTTP status", c.status)
	}
	h, err := headers(c.header)
	if err != nil {
		return wrong("such as 'retry-after: 3'", "--header: %w", err)
	}
	out := bufio.NewWriter(w)
	decode := c.one
	if c.lines {
		decode = c.log
	}
	return cmp.Or(decode(in, h, printer(out)), out.Flush())
}

// one decodes a single body.
func (c *decodeCommand) one(in io.Reader, h http.Header, out *json.Encoder) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return wrong("", "the reply could not be read from standard input: %w", err)
	}
	api, _ := apiOf(c.api) // run has checked it
	resp, err := read(api, c.status, h, c.sse, body)
	if err != nil {
		return out.Encode(map[string]any{"error": toReplyError(err, c.status)})
	}
	return out.Encode(resp)
}

// logLine is a line of a log.
type logLine struct {
	ID          json.RawMessage   `json:"id"`
	API         string            `json:"api"`
	Streaming   bool              `json:"streaming"`
	Status      int               `json:"status"`
	Headers     map[string]string `json:"headers"`
	ContentType string            `json:"content_type"`
	Body        *string           `json:"body"`
	BodyB64     *string           `json:"body_b64"`
}

type logAnswer struct {
	ID       json.RawMessage `json:"id"`
	Response *llm.Response   `json:"response,omitempty"`
	Error    *replyError     `json:"error,omitempty"`
}

// log prints an answer for each line of in, also for a malformed one.
func (c *decodeCommand) log(in io.Reader, _ http.Header, out *json.Encoder) error {
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
			return wrong("", "standard input: %w", err)
		}
	}
}

// line decodes one line.
func (c *decodeCommand) line(text []byte) (a logAnswer) {
	a.ID = json.RawMessage("null")
	bad := func(status int, format string, args ...any) logAnswer {
		a.Error = &replyError{Code: string(llm.CodeInvalidRequest), Status: status, Message: "line: " +
			fmt.Sprintf(format, args...)}
		return a
	}
	var l logLine
	if err := jsonv2.Unmarshal(text, &l, jsonform.Lenient); err != nil {
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(text, &id) == nil && id.ID != nil {
			a.ID = id.ID
		}
		return bad(0, "%s", strings.TrimPrefix(fault(text, err), "line 1: "))
	}
	if l.ID != nil {
		a.ID = l.ID
	}
	api, err := apiOf(cmp.Or(l.API, c.api))
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
		body, err = base64.StdEncoding.DecodeString(*l.BodyB64)
		if err != nil {
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
		a.Error = toReplyError(err, status)
	} else {
		a.Response = resp
	}
	return a
}

// check prints the faults of a history, and the repaired history.
func check(api provider.API, r io.Reader, out io.Writer) error {
	in, err := io.ReadAll(r)
	if err != nil {
		return wrong("", "the messages could not be read from standard input: %w", err)
	}
	var from pawl.Result
	if err := jsonv2.Unmarshal(in, &from.Messages, jsonform.Strict); err != nil {
		if jsonv2.Unmarshal(in, &from, jsonform.Strict) != nil || from.Messages == nil {
			return wrong(`a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}], or a file of --save`,
				"the messages on standard input: %s", fault(in, err))
		}
	}
	faults := api.Rules.Check(from.Messages)
	repaired, repairs := api.Rules.Repair(from.Messages)
	return printer(out).Encode(struct {
		Faults   []llm.HistoryFault `json:"faults"`
		Mends    []llm.Repaired     `json:"mends"`
		Messages []llm.Message      `json:"messages"`
	}{append([]llm.HistoryFault{}, faults...), append([]llm.Repaired{}, repairs...),
		append([]llm.Message{}, repaired...)})
}
