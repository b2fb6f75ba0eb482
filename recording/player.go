package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
)

// Player is a RoundTripper that answers from a recording and sends nothing: see Play. It may be
// used concurrently. Equal requests are answered in the recorded order.
type Player struct {
	// Secrets is the redactor of the recording, for requests with secrets in their bodies. Set it
	// before the first request. Nil means no secrets.
	Secrets *redact.Redactor

	exchanges []Exchange
	forms     []form
	mu        sync.Mutex
	played    []bool
	asked     int
}

var _ http.RoundTripper = (*Player)(nil)

// form is what requests are compared by.
type form struct{ to, body string }

// Play returns a Player of r, which must not be changed any more.
func Play(r *Recording) *Player {
	p := &Player{exchanges: r.Exchanges, played: make([]bool, len(r.Exchanges))}
	for _, e := range r.Exchanges {
		p.forms = append(p.forms, formOf(e.Request))
	}
	return p
}

func formOf(r Request) form {
	to := r.URL
	if u, err := url.Parse(r.URL); err == nil { // where the server is may differ
		to = u.Path
		if u.RawQuery != "" {
			to += "?" + u.RawQuery
		}
	}
	return form{r.Method + " " + to, string(jsonform.Canonical(json.RawMessage(r.Body)))}
}

// Left returns how many recorded requests were not asked.
func (p *Player) Left() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, played := range p.played {
		if !played {
			n++
		}
	}
	return n
}

// RoundTrip answers with the recorded response. A request that was not recorded fails with a
// *llm.ProviderError around a *Miss, which no adapter retries.
func (p *Player) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	body, req, err := readBody(req)
	if err != nil {
		return nil, err
	}
	// The recorded requests were scrubbed, so that only a scrubbed request equals them.
	now := Scrub(Exchange{Request: Request{Method: req.Method, URL: req.URL.String(), Body: body}}, p.Secrets).Request
	e, miss := p.find(now)
	if miss != nil {
		return nil, &llm.ProviderError{Code: llm.CodeInvalidRequest, Message: miss.Error(), Err: miss}
	}
	if e.Response.Status == 0 { // no answer came
		return nil, errors.New(e.Response.Error)
	}
	res := e.Response.asHTTP()
	res.Request = req
	return res, nil
}

// asHTTP returns the response as a connection would deliver it.
func (r *Response) asHTTP() *http.Response {
	h := http.Header{}
	for name, v := range r.Header {
		h.Set(name, v)
	}
	var body io.Reader = bytes.NewReader(r.Body)
	length := int64(len(r.Body))
	// The connection broke: the body ends with an error, and its length was not known.
	if r.Cut {
		body = io.MultiReader(body, broken{})
		length = -1
	}
	return &http.Response{
		StatusCode:    r.Status,
		Status:        fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        h,
		Body:          io.NopCloser(body),
		ContentLength: length,
	}
}

// broken is where a connection broke.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// find takes the first recorded exchange with that request.
func (p *Player) find(now Request) (*Exchange, *Miss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	f := formOf(now)
	// Equal requests are answered in their recorded order, each once: a retry gets the answer that
	// the retry got.
	same := 0
	for i := range p.exchanges {
		if p.forms[i] != f {
			continue
		}
		same++
		if !p.played[i] {
			p.played[i] = true
			return &p.exchanges[i], nil
		}
	}
	return nil, p.miss(now, f, same)
}

// Miss is the error for a request that was not recorded.
type Miss struct {
	Number  int     // of the request, from 1
	Request Request // without secrets
	Same    int     // how many recorded ones are the same, and were played already

	// the number of the nearest recorded request, from 1; 0 means none with that address
	Nearest int

	Differs []Difference // what differs from that
	Known   []string     // where recorded requests go, when none goes where this one does
}

// Difference is a place in two bodies.
type Difference struct {
	// Path is a place such as messages[2].content. Empty means the whole body.
	Path string
	// Recorded is JSON. Empty means that nothing was there.
	Recorded string
	// Now is JSON. Empty means that nothing is there.
	Now string
}

// Error shows the nearest recorded request and what differs.
func (m *Miss) Error() string {
	to := m.Request.URL
	if u, err := url.Parse(to); err == nil {
		to = u.Path
	}
	text := fmt.Sprintf("request %d was not recorded: %s %s", m.Number, m.Request.Method, to)
	switch {
	case m.Same > 0:
		return text + fmt.Sprintf("; the same was recorded %d times, and asked once more", m.Same)
	case m.Nearest == 0 && len(m.Known) == 0:
		return text + "; nothing was"
	case m.Nearest == 0:
		return text + "; recorded are " + strings.Join(m.Known, ", ")
	}

	// One change of a prompt may differ in each message of a long conversation.
	const most = 3
	text += fmt.Sprintf("; the nearest is number %d, which differs in", m.Nearest)
	for i, d := range m.Differs {
		if i == most {
			text += fmt.Sprintf("\nand %d places more", len(m.Differs)-most)
			break
		}
		recorded, now := parting(d.Recorded, d.Now)
		path := cmp.Or(d.Path, "the whole body")
		text += fmt.Sprintf("\n%s: recorded %s, now %s", path, recorded, now)
	}
	return text
}

// miss finds the nearest recorded request: of those with the same address, the one with the fewest
// differences. The caller holds p.mu.
func (p *Player) miss(now Request, f form, same int) *Miss {
	m := &Miss{Number: p.asked, Request: now, Same: same}
	// The request is recorded, and all its answers are used. There is no difference to look for.
	if same > 0 {
		return m
	}

	known := map[string]bool{}
	for i := range p.exchanges {
		known[p.forms[i].to] = true
		if p.forms[i].to != f.to {
			continue
		}
		d := differences(p.exchanges[i].Request.Body, now.Body)
		if m.Nearest == 0 || p.isNearer(i, len(d), m) {
			m.Nearest = i + 1
			m.Differs = d
		}
	}
	if m.Nearest == 0 {
		m.Known = slices.Sorted(maps.Keys(known))
	}
	return m
}

// isNearer reports whether exchange i, with so many differences, is nearer than m.Nearest. Of two
// that are equally near, an exchange that was not played yet is. The caller holds p.mu.
func (p *Player) isNearer(i, differences int, m *Miss) bool {
	if differences != len(m.Differs) {
		return differences < len(m.Differs)
	}
	return p.played[m.Nearest-1] && !p.played[i]
}

// differences are the places in which two bodies differ.
func differences(recorded, now []byte) []Difference {
	a, errA := jsonform.Value(recorded)
	b, errB := jsonform.Value(now)
	if errA != nil || errB != nil {
		return []Difference{{"", quoted(string(recorded)), quoted(string(now))}}
	}
	var out []Difference
	walk("", a, b, &out)
	return out
}

// absent stands for a missing value.
type absent struct{}

func walk(path string, a, b any, out *[]Difference) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			// Members of both sides: a member that one side lacks is a difference too.
			names := maps.Clone(x)
			maps.Copy(names, y)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				walk(strings.TrimPrefix(path+"."+name, "."), member(x, name), member(y, name), out)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				walk(fmt.Sprintf("%s[%d]", path, i), item(x, i), item(y, i), out)
			}
			return
		}
	}
	was := rendered(a)
	is := rendered(b)
	if was != is {
		*out = append(*out, Difference{path, was, is})
	}
}

func member(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

func item(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return absent{}
}

func rendered(v any) string {
	if v == (absent{}) {
		return ""
	}
	b, err := jsonform.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// parting cuts two values to what stands around the place where they part.
func parting(a, b string) (string, string) {
	from := text.Parting(a, b, 20)
	return cut(a, from), cut(b, from)
}

func cut(s string, from int) string {
	const width = 80
	switch {
	case s == "":
		return "nothing"
	case len(s) <= width:
		return s
	}
	to := text.RuneAfter(s, min(len(s), from+width))
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}
