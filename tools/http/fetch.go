package http

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/sending"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

const (
	pageChars = 8000
	mostChars = 100_000
)

type fetcher struct {
	opts  Options
	guard *netguard.Guard
	page  webpage.Fetcher
}

// input describes the arguments. Arguments that only writing requests need are present only if
// writing methods are allowed.
func (f *fetcher) input() json.RawMessage {
	method := ""
	body := ""
	if len(f.opts.Methods) != 1 || f.opts.Methods[0] != "GET" {
		list, _ := json.Marshal(f.opts.Methods) // strings always marshal
		method = `"method":{"type":"string","enum":` + string(list) + `,"description":"Default ` + f.opts.Methods[0] + `."},`
	}
	if f.writes() {
		body = `"body":{"type":"string","description":"What to send. Set the header Content-Type to say what it is; ` +
			`else application/json is meant if it is JSON."},`
	}
	return json.RawMessage(`{"type":"object","properties":{` +
		`"url":{"type":"string","description":"The whole address, with https:// or http://."},` + method +
		`"headers":{"type":"object","additionalProperties":{"type":"string"},` +
		`"description":"Headers to send, such as Accept. They are not sent on to another host by a redirect."},` + body +
		`"max_chars":{"type":"integer","minimum":1,` +
		`"description":"How many characters of text to return. Default 8000, at most 100000."},` +
		`"offset":{"type":"integer","minimum":0,"description":"The character to start at. Default 0."},` +
		`"raw":{"type":"boolean","description":"Return the source of a page instead of its main content."}` +
		`},"required":["url"],"additionalProperties":false}`)
}

func (f *fetcher) writes() bool {
	return slices.ContainsFunc(f.opts.Methods, func(m string) bool { return m != "GET" && m != "HEAD" })
}

func (f *fetcher) effect() pawl.Effect {
	switch {
	case !f.writes():
		return pawl.EffectRead
	case f.opts.Idempotent:
		return pawl.EffectIdempotent
	}
	return pawl.EffectWrite
}

type fetchArgs struct {
	URL      string            `json:"url"`
	Method   string            `json:"method"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	MaxChars float64           `json:"max_chars"`
	Offset   float64           `json:"offset"`
	Raw      bool              `json:"raw"`
}

// fetchData is the Data of a result: the properties of the response that a program needs.
type fetchData struct {
	URL       string `json:"url"`
	Status    int    `json:"status"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Bytes     int    `json:"bytes"`
	Chars     int    `json:"chars,omitempty"` // characters of the whole text
	Truncated bool   `json:"truncated,omitempty"`
	Next      int    `json:"next_offset,omitempty"`
}

func (f *fetcher) run(ctx context.Context, a fetchArgs) (llm.ToolResult, error) {
	header, err := f.header(ctx, &a)
	if err != nil {
		return llm.ErrorResult(err.Error()), nil
	}
	res, err := f.page.Fetch(ctx, webpage.Request{Method: a.Method, URL: a.URL, Header: header, Body: a.Body})
	var failed *webpage.Error
	switch {
	case errors.As(err, &failed):
		return llm.ToolResult{}, failed.Call()
	case err != nil:
		return llm.ToolResult{}, err
	}
	out := answer(res, a)
	out.Label = f.label(a.URL, res.URL, header)
	return sending.Stated(out, res.Status, len(res.Body) == 0)
}

// label returns the label of a page: a stranger wrote it, and everybody may read it, unless it was
// fetched with credentials or from a host that only the operator's list makes reachable.
func (f *fetcher) label(asked, reached string, sent nethttp.Header) *llm.Label {
	l := &llm.Label{From: []llm.Source{{Kind: "url", Name: reached}}}
	for _, address := range []string{asked, reached} {
		u, err := url.Parse(address)
		if err != nil || f.isInside(u) {
			return l
		}
	}
	if sent.Get("Authorization") != "" || sent.Get("Cookie") != "" {
		return l
	}
	l.Readers = []string{llm.Everybody}
	return l
}

// isInside reports whether the host of u may be no public one, or receives the operator's headers.
func (f *fetcher) isInside(u *url.URL) bool {
	return f.guard.Named(u) && (!f.opts.Only || len(f.opts.Header) > 0)
}

// senderHeaders are those by which a proxy or a server identifies the sender, and the key of a
// write, which is the call's.
var senderHeaders = []string{
	"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
	"Metadata", "Metadata-Flavor", "Idempotency-Key",
}

// forbidden reports whether a call must not set a header.
func forbidden(key string) bool {
	for _, prefix := range []string{"Proxy-", "X-Aws-Ec2-Metadata", "Sec-"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains(webpage.ConnectionHeaders, key) || slices.Contains(senderHeaders, key)
}

// header checks the method and the headers of a call and adds the headers that each request has.
func (f *fetcher) header(ctx context.Context, a *fetchArgs) (nethttp.Header, error) {
	a.Method = cmp.Or(a.Method, f.opts.Methods[0])
	writes := a.Method != "GET" && a.Method != "HEAD"
	if a.Body != "" && !writes {
		return nil, fmt.Errorf("a %s request has no body; leave body out", a.Method)
	}

	h := nethttp.Header{}
	for name, value := range a.Headers {
		key := nethttp.CanonicalHeaderKey(name)
		// Headers that describe the connection, or that another layer sets, could confuse a proxy
		// about where a request ends.
		if forbidden(key) {
			return nil, fmt.Errorf("the header %s cannot be set; leave it out", key)
		}
		if !token(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("the header %q is not valid: a name has letters, digits and -, "+
				"a value is one line", name)
		}
		h.Set(key, value)
	}

	if h.Get("Accept") == "" {
		h.Set("Accept", "text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.5")
	}
	if a.Body != "" && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		if json.Valid([]byte(a.Body)) {
			h.Set("Content-Type", "application/json")
		}
	}
	if v := pawl.InvocationFrom(ctx); writes && v != nil {
		h.Set("Idempotency-Key", v.IdempotencyKey())
	}
	return h, nil
}

// token reports whether s is a valid header name (RFC 9110, section 5.6.2).
func token(s string) bool { return s != "" && strings.Trim(s, tokenChars) == "" }

const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// answer converts the response into a tool result.
func answer(res *webpage.Response, a fetchArgs) llm.ToolResult {
	data := fetchData{
		URL:       res.URL,
		Status:    res.Status,
		Type:      res.Type,
		Bytes:     len(res.Body),
		Truncated: res.Truncated,
	}
	page := webpage.Read(res)
	if a.Raw {
		page = webpage.Page{Text: webpage.Source(res), Image: page.Image}
	}
	data.Title = page.Title

	var head strings.Builder
	fmt.Fprintf(&head, "%s %s", status(res.Status), res.Type)
	if len(res.Redirects) > 0 {
		fmt.Fprintf(&head, "\nredirected to %s", res.URL)
	}
	if page.Title != "" {
		fmt.Fprintf(&head, "\n%s", page.Title)
	}

	out := llm.ToolResult{IsError: res.Status >= 400}
	switch {
	// An error page is read as text, and its picture says nothing.
	case page.Image && !out.IsError:
		m, _ := foreign.Medium(res.Body, res.Type) // its bytes are an image's
		out.Parts = []llm.Part{llm.Text{Text: head.String()}, m}
	case page.Text != "":
		text, note := part(page.Text, a, &data)
		if res.Truncated {
			note += fmt.Sprintf("[only the first %d bytes were read]", len(res.Body))
		}
		out.Parts = []llm.Part{llm.Text{Text: head.String() + "\n\n" + text}}
		if note != "" {
			out.Parts = append(out.Parts, llm.Text{Text: "\n" + note})
		}
	case len(res.Body) == 0:
		out.Parts = []llm.Part{llm.Text{Text: head.String() + "\n[the body is empty]"}}
	default:
		out.Parts = []llm.Part{llm.Text{Text: fmt.Sprintf("%s\n[not text: %d bytes%s of %s are not shown]",
			head.String(), len(res.Body), more(res.Truncated), res.Type)}}
	}
	out.Data, _ = json.Marshal(data) // strings and numbers always marshal
	return out
}

func more(truncated bool) string {
	if truncated {
		return " and more"
	}
	return ""
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", code, nethttp.StatusText(code)))
}

// part returns the requested characters, and a note if the text has more.
func part(text string, a fetchArgs, data *fetchData) (string, string) {
	data.Chars = utf8.RuneCountInString(text)
	limit := pageChars
	if a.MaxChars >= 1 {
		limit = int(min(a.MaxChars, mostChars))
	}
	// The smaller one is found before the conversion: a huge float is no int.
	from := int(min(a.Offset, float64(data.Chars)))
	to := min(from+limit, data.Chars)
	switch {
	case from == 0 && to == data.Chars:
		return text, ""
	case from == data.Chars:
		return "", fmt.Sprintf("[offset %d is past the end: the text has %d characters]", from, data.Chars)
	}

	begin := byteAt(text, from)
	piece := text[begin : begin+byteAt(text[begin:], to-from)]
	note := fmt.Sprintf("[characters %d-%d of %d", from, to, data.Chars)
	if to < data.Chars {
		data.Next = to
		note += fmt.Sprintf("; continue with offset %d", to)
	}
	return piece, note + "]"
}

// byteAt returns the index at which the n-th character of s begins.
func byteAt(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
