package outside

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/internal/netguard"
	"github.com/pawl-go/pawl/internal/webaddress"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/sending"
	"github.com/pawl-go/pawl/tools/internal/webpage"
)

const requestTimeout = 30 * time.Second

// request converts the arguments of a call to a request. Everything except the arguments is fixed
// when the tool is created.
type request struct {
	method  string
	origin  *url.URL   // scheme and host
	path    []template // escaped segments; the first one follows the first slash
	query   []field
	headers []field
	own     identity
	body    func(args map[string]any) (text, contentType string, err error) // nil means no body
	result  pointer
	page    *webpage.Fetcher
}

// field is a field of the query, or a header.
type field struct {
	name  string
	value template
	// for an argument in the query: its parts "name=value", escaped; nil means as text
	encode func(name string, v any) []string
}

// reads reports whether a method is safe, so that it changes nothing at the server (RFC 9110,
// section 9.2.1).
func reads(method string) bool { return method == "GET" || method == "HEAD" }

// effectOf returns the effect of a method according to RFC 9110, section 9.2.2.
func effectOf(method string) pawl.Effect {
	switch method {
	case "GET", "HEAD":
		return pawl.EffectRead
	case "PUT", "DELETE":
		return pawl.EffectIdempotent
	}
	return pawl.EffectWrite
}

// origin parses the beginning of an address, which cannot contain arguments.
func origin(address string) (*url.URL, error) {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	u, ok := webaddress.Parse(address)
	switch {
	case strings.ContainsAny(rest, "{}$"):
		return nil, fmt.Errorf("url %q: no argument can stand in the host", address)
	case !ok:
		return nil, fmt.Errorf("url %q: want a whole address that begins with https:// or http:// and a host", address)
	case u.User != nil:
		return nil, fmt.Errorf("url %q: it has a name or a password in it; send them in a header", u.Redacted())
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// fetcher returns the fetcher for the requests of a definition. The definition's host is allowed if
// it is public, or written as an IP address or as localhost, because then the intent is clear.
// Other names of private networks must be in allow.
func (m *maker) fetcher(own *url.URL, allow []string, timeout Duration) (*webpage.Fetcher, error) {
	allow = append(slices.Clone(m.opts.Allow), allow...)
	if own != nil {
		host := own.Hostname()
		if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
			allow = append(allow, own.Host)
		}
	}
	g, err := netguard.New(netguard.Options{Allow: allow, Proxy: m.opts.Proxy, Lookup: m.opts.Lookup})
	if err != nil {
		return nil, err
	}
	t := cmp.Or(time.Duration(timeout), requestTimeout)
	return &webpage.Fetcher{Transport: g, Timeout: t}, nil
}

// address inserts the arguments into the address.
func (r *request) address(args map[string]any) (string, error) {
	var b strings.Builder
	b.WriteString(r.origin.Scheme + "://" + r.origin.Host)
	for _, t := range r.path {
		s, ok, err := t.fill(args, inPath)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", fmt.Errorf("an argument that stands in the path of the address is missing: %s",
				strings.Join(t.args(), ", "))
		}
		b.WriteString("/" + s)
	}

	var query []string
	for _, f := range r.query {
		name, only := f.value.alone()
		v, given := args[name]
		if only && f.encode != nil {
			if given && v != nil {
				query = append(query, f.encode(f.name, v)...)
			}
			continue
		}
		s, ok, _ := f.value.fill(args, inText)
		if ok {
			query = append(query, percent(f.name)+"="+percent(s))
		}
	}
	if len(query) > 0 {
		b.WriteString("?" + strings.Join(query, "&"))
	}

	// Escaped values cannot lead elsewhere; this is a second safeguard.
	if !r.leadsTo(b.String()) {
		return "", errors.New("the arguments do not fit into the address")
	}
	return b.String(), nil
}

// leadsTo reports whether an address has the host of the definition, and a path of as many
// segments.
func (r *request) leadsTo(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != r.origin.Scheme || u.Host != r.origin.Host {
		return false
	}
	return strings.Count(u.EscapedPath(), "/") == len(r.path)
}

func (t template) args() []string {
	var names []string
	for _, p := range t {
		if p.arg != "" {
			names = append(names, p.arg)
		}
	}
	return names
}

// run executes a call.
func (r *request) run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	args, err := arguments(call.Args)
	if err != nil {
		return llm.ErrorResult(err.Error()), nil
	}
	q := webpage.Request{Method: r.method, Header: http.Header{}}
	q.URL, err = r.address(args)
	if err != nil {
		return llm.ErrorResult(err.Error()), nil
	}

	if r.body != nil {
		text, kind, err := r.body(args)
		if err != nil {
			return llm.ErrorResult(err.Error()), nil
		}
		q.Body = text
		if text != "" {
			q.Header.Set("Content-Type", kind)
		}
	}

	q.Header.Set("Accept", "application/json, text/*;q=0.8, */*;q=0.5")
	// A server that knows the header executes a repeated call once. The key is the same in each
	// attempt and after a restart.
	if v := pawl.InvocationFrom(ctx); v != nil && !reads(r.method) {
		q.Header.Set("Idempotency-Key", v.IdempotencyKey())
	}
	secrets, err := r.setHeaders(ctx, q.Header, args)
	if err != nil {
		// Without its credential the request is not sent, so that the call can be repeated.
		return llm.ToolResult{}, delivery.NewError(delivery.NotSent, err.Error(), nil)
	}

	res, err := r.page.Fetch(ctx, q)
	var failed *webpage.Error
	switch {
	case errors.As(err, &failed):
		own := *failed
		own.Text = hide(llm.TextResult(own.Text), secrets).Text()
		if own.Down {
			return llm.ToolResult{}, sending.Down(own.Call())
		}
		return llm.ToolResult{}, own.Call()
	case err != nil:
		return llm.ToolResult{}, err
	}
	return stated(hide(r.answer(res), secrets), res.Status, len(res.Body) == 0)
}

// stated returns the result of a call that a server answered with a status, or the error that the
// status stands for.
func stated(answer llm.ToolResult, status int, empty bool) (llm.ToolResult, error) {
	if sending.IsDown(status) {
		c := sending.OfStatus(status, empty)
		return llm.ToolResult{}, sending.Down(&delivery.Error{Certainty: c, Result: answer})
	}
	return sending.Stated(answer, status, empty)
}

// setHeaders sets the headers of the definition, then the headers of Options.Header. It returns the
// values that belong to the caller of the run.
func (r *request) setHeaders(ctx context.Context, h http.Header, args map[string]any) (secrets []string, err error) {
	values, err := r.own.values(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		secrets = append(secrets, plainText(v))
	}
	// Values of the caller come last: an argument of the model must not take the place of a
	// credential.
	filled := maps.Clone(args)
	maps.Copy(filled, values)
	for _, f := range r.headers {
		s, ok, err := f.value.fill(filled, inHeader)
		if err != nil {
			return nil, err
		}
		if ok {
			h.Set(f.name, s)
		}
	}
	more, err := r.own.apply(ctx, h)
	return append(secrets, more...), err
}

// arguments decodes the arguments of a call; numbers keep their spelling.
func arguments(b json.RawMessage) (map[string]any, error) {
	args := map[string]any{}
	if len(b) == 0 {
		return args, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, errors.New("invalid args: " + err.Error())
	}
	return args, nil
}

// answer converts the response to a result: the part of a JSON response that the definition points
// to, the text of a page, other text unchanged.
func (r *request) answer(res *webpage.Response) llm.ToolResult {
	status := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", res.Status, http.StatusText(res.Status)))
	note := ""
	if res.Truncated {
		note = fmt.Sprintf("\n[only the first %d bytes of the answer were read]", len(res.Body))
	}
	var out llm.ToolResult
	text := ""
	value, isJSON := decoded(res)
	switch {
	// An error of the server has another form than its answers, so that the pointer does not apply
	// to it.
	case isJSON && res.Status < 400:
		part, err := r.result.find(value)
		if err != nil {
			return llm.ErrorResult(status + ", but " + err.Error())
		}
		text = plainText(part)
		out.Data = mustJSON(part)

	default:
		page := webpage.Read(res)
		text = page.Text
		switch {
		case len(res.Body) == 0:
			text = status
		case text == "":
			// Half a file is no file.
			if m, ok := foreign.Medium(res.Body, res.Type); ok && !res.Truncated {
				head := llm.Text{Text: status + " " + res.Type + "\n"}
				return llm.ToolResult{Parts: []llm.Part{head, m}, IsError: res.Status >= 400}
			}
			text = fmt.Sprintf("%s\n[not text: %d bytes of %s are not shown]", status, len(res.Body), res.Type)
		case res.Status >= 300:
			text = status + "\n\n" + text
		case r.result != nil:
			return llm.ErrorResult(status + ", but the answer is not JSON, so " + r.result.String() +
				" cannot be found in it:\n\n" + text + note)
		}
	}

	out.IsError = res.Status >= 400
	out.Parts = []llm.Part{llm.Text{Text: text + note}}
	return out
}

// decoded decodes a body that is JSON, independent of its content type.
func decoded(res *webpage.Response) (any, bool) {
	if res.Truncated || len(res.Body) == 0 || strings.Contains(res.Type, "html") {
		return nil, false
	}
	// In UTF-8, without a byte order mark, also if the server uses another charset.
	body := []byte(webpage.Source(res))
	if len(body) == 0 {
		body = res.Body // its type is not a text
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if !json.Valid(body) || d.Decode(&v) != nil {
		return nil, false
	}
	return v, true
}

func mustJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // it was decoded from JSON
	return b
}

// canSet reports whether name is the name of a header that does not belong to the connection.
func canSet(name string) bool {
	return webpage.IsHeaderName(name) && !slices.Contains(webpage.ConnectionHeaders, http.CanonicalHeaderKey(name))
}

// headerPlace matches ${NAME}, which is an environment variable, and ${caller.token}.
var headerPlace = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*|caller\.[^}]*)\}`)

// header parses the headers of a definition. Variables are inserted now, arguments at each call.
func (m *maker) header(headers map[string]string, use func(name string) error) ([]field, identity, error) {
	out, err := m.fields(headers, use)
	if err != nil {
		return nil, identity{}, err
	}
	own := identity{header: m.opts.Header}
	for _, f := range out {
		for _, p := range f.value {
			if m := callerPlace.FindStringSubmatch(p.arg); m != nil && !slices.Contains(own.fields, m[1]) {
				own.fields = append(own.fields, m[1])
			}
		}
	}
	return out, own, nil
}

func (m *maker) fields(headers map[string]string, use func(name string) error) ([]field, error) {
	var out []field
	for name, value := range headers {
		key := http.CanonicalHeaderKey(name)
		if !canSet(name) {
			return nil, fmt.Errorf("headers: %q cannot be set", name)
		}
		t, err := m.headerValue(value, use)
		if err != nil {
			return nil, fmt.Errorf("headers: %s: %w", name, err)
		}
		out = append(out, field{name: key, value: t})
	}
	slices.SortFunc(out, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// headerValue parses the value of a header: text with arguments, variables and fields of the
// caller.
func (m *maker) headerValue(value string, use func(name string) error) (template, error) {
	var t template
	at := 0
	for _, v := range headerPlace.FindAllStringSubmatchIndex(value, -1) {
		before, err := parseTemplate(value[at:v[0]], use)
		if err != nil {
			return nil, err
		}
		t = append(t, before...)
		at = v[1]

		p, err := m.place(value[v[0]:v[1]], value[v[2]:v[3]])
		if err != nil {
			return nil, err
		}
		t = append(t, p)
	}
	rest, err := parseTemplate(value[at:], use)
	if err != nil {
		return nil, err
	}
	t = append(t, rest...)

	// A line break would begin another header.
	for _, p := range t {
		if _, err := inHeader("", p.text); err != nil {
			return nil, errors.New("its value is not one line of ASCII characters")
		}
	}
	return t, nil
}

// place returns what stands for ${NAME} in a header.
func (m *maker) place(written, name string) (piece, error) {
	if field := callerPlace.FindStringSubmatch(written); field != nil {
		if _, known := (caller.Caller{}).Field(field[1]); !known {
			return piece{}, fmt.Errorf("%s: a caller has name, tenant, user and token", field[0])
		}
		return piece{arg: callerArgument(field[1])}, nil
	}

	secret := m.opts.Getenv(name)
	if strings.TrimSpace(secret) == "" {
		return piece{}, fmt.Errorf("the variable %s of the environment is not set", name)
	}
	if _, err := inHeader("", secret); err != nil {
		return piece{}, fmt.Errorf("the variable %s has a character that is not allowed in a header, "+
			"such as a line break",
			name)
	}
	m.set.secrets = append(m.set.secrets, secret)
	return piece{text: secret}, nil
}
