package http_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/http"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns its address as host and port.
func serve(t *testing.T, h nethttp.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return strings.TrimPrefix(s.URL, "http://")
}

func direct(*nethttp.Request) (*url.URL, error) { return nil, nil }

// fetch executes a call through the whole pipeline.
func fetch(t *testing.T, o *http.Options, args string) pawl.Execution {
	t.Helper()
	if o.Proxy == nil {
		o.Proxy = direct
	}
	tool, err := http.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return pawl.Toolsets{tool}.Execute(t.Context(), llm.ToolCall{ID: "c1", Name: "http_fetch", Args: json.RawMessage(args)})
}

func want(t *testing.T, x pawl.Execution, outcome pawl.Outcome, texts ...string) {
	t.Helper()
	if x.Outcome != outcome {
		t.Errorf("outcome %s, want %s: %s", x.Outcome, outcome, x.Result.Text())
	}
	for _, text := range texts {
		if !strings.Contains(x.Result.Text(), text) {
			t.Errorf("the result has no %q: %s", text, x.Result.Text())
		}
	}
}

const article = `<!doctype html><html><head><title>On pawls</title><script>alert(1)</script></head><body><nav><a href="/home">Home</a></nav><article><h1>On pawls</h1>
<p>A pawl lets a ratchet turn one way only. It is a small catch that falls between the teeth of a wheel, and so keeps what was gained by each turn, however small the turn was.</p>
<p>Clocks have them, and so do winches and the <a href="/socket">socket wrench</a>. Without a pawl a load that was lifted would fall back as soon as the hand tires.</p>
<table><tr><th>machine</th><th>teeth</th></tr><tr><td>winch</td><td>12</td></tr></table></article><footer>Imprint</footer></body></html>`

func TestKinds(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n0000"
	host := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		kinds := map[string][2]string{"/page": {"text/html; charset=utf-8", article}, "/json": {"application/json", `{"a":1}`}, "/text": {"text/plain", "plain words"},
			"/png": {"image/png", png}, "/pdf": {"application/pdf", "%PDF-1.7 \x00\x01"}, "/empty": {"text/plain", ""}, "/gone": {"text/html", "<p>it is gone</p>"},
			"/latin": {"text/plain; charset=iso-8859-1", "caf\xe9"}, "/utf16": {"text/plain; charset=utf-16le", "h\x00i\x00"}, "/meta": {"text/html", `<meta charset="windows-1252"><p>na` + "\xefve</p>"},
			"/sniff": {"application/octet-stream", "just words"}, "/bad": {"text/plain; charset=utf-8", "a\xffb"}, "/svg": {"image/svg+xml", "<svg/>"}}
		k := kinds[r.URL.Path]
		w.Header().Set("Content-Type", k[0])
		if r.URL.Path == "/gone" {
			w.WriteHeader(410)
		}
		io.WriteString(w, k[1])
	})
	o := &http.Options{Allow: []string{host}}
	get := func(path string) pawl.Execution { return fetch(t, o, `{"url":"http://`+host+path+`"}`) }
	want(t, get("/page"), pawl.OutcomeOK, "HTTP 200 OK text/html\nOn pawls\n\n", "A pawl lets a ratchet", "(http://"+host+"/socket)", "| winch")
	if text := get("/page").Result.Text(); strings.Contains(text, "alert") || strings.Contains(text, "Imprint") {
		t.Errorf("the page has what is not its content: %s", text)
	}
	want(t, fetch(t, o, `{"url":"http://`+host+`/page","raw":true}`), pawl.OutcomeOK, "<script>alert(1)")
	want(t, get("/json"), pawl.OutcomeOK, "HTTP 200 OK application/json\n\n{\"a\":1}")
	want(t, get("/text"), pawl.OutcomeOK, "plain words")
	want(t, get("/pdf"), pawl.OutcomeOK, "[not text: 11 bytes of application/pdf are not shown]")
	want(t, get("/empty"), pawl.OutcomeOK, "[the body is empty]")
	want(t, get("/gone"), pawl.OutcomeError, "HTTP 410 Gone", "it is gone")
	want(t, get("/latin"), pawl.OutcomeOK, "café")
	want(t, get("/utf16"), pawl.OutcomeOK, "\n\nhi")
	want(t, get("/meta"), pawl.OutcomeOK, "naïve")
	want(t, get("/sniff"), pawl.OutcomeOK, "just words")
	want(t, get("/bad"), pawl.OutcomeOK, "a\uFFFDb")
	x := get("/png")
	if media, ok := x.Result.Parts[1].(llm.Media); !ok || media.MIME != "image/png" || string(media.Data) != png {
		t.Errorf("the image is %+v", x.Result.Parts)
	}
}

func TestPages(t *testing.T) {
	host := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { io.WriteString(w, strings.Repeat("añ", 500)) })
	o := &http.Options{Allow: []string{host}}
	whole, offset := "", 0
	for range 100 {
		x := fetch(t, o, fmt.Sprintf(`{"url":"http://%s","max_chars":333,"offset":%d}`, host, offset))
		var data struct {
			Chars int
			Next  int `json:"next_offset"`
		}
		if err := json.Unmarshal(x.Result.Data, &data); err != nil || data.Chars != 1000 {
			t.Fatalf("data %s: %v", x.Result.Data, err)
		}
		_, text, _ := strings.Cut(x.Result.Parts[0].(llm.Text).Text, "\n\n")
		whole += text
		if offset = data.Next; offset == 0 {
			break
		}
		want(t, x, pawl.OutcomeOK, fmt.Sprintf("continue with offset %d]", offset))
	}
	if whole != strings.Repeat("añ", 500) {
		t.Errorf("the pages together have %d bytes", len(whole))
	}
	want(t, fetch(t, o, `{"url":"http://`+host+`","offset":5000}`), pawl.OutcomeOK, "past the end: the text has 1000 characters")
}

// A redirect is checked like the first request: an address that may not be requested may not be a
// redirect target. As a control, each chain succeeds where its target is allowed.
func TestRedirects(t *testing.T) {
	inside := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { io.WriteString(w, "inside") })
	var hop string
	hop = serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		q := r.URL.Query()
		if n := q.Get("then"); n != "" {
			nethttp.Redirect(w, r, "http://"+hop+"/?code="+q.Get("code")+"&to="+url.QueryEscape(q.Get("to")), nethttp.StatusFound)
			return
		}
		code := 302
		fmt.Sscan(q.Get("code"), &code)
		w.Header().Set("Location", q.Get("to"))
		w.WriteHeader(code)
	})
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, then := range []string{"", "1"} {
			args := fmt.Sprintf(`{"url":"http://%s/?code=%d&then=%s&to=%s"}`, hop, code, then, url.QueryEscape("http://"+inside+"/"))
			want(t, fetch(t, &http.Options{Allow: []string{hop}}, args), pawl.OutcomeError, inside+" is refused: it is this machine")
			want(t, fetch(t, &http.Options{Allow: []string{hop, inside}}, args), pawl.OutcomeOK, "inside", "redirected to http://"+inside)
		}
	}
	for to, text := range map[string]string{
		"http://169.254.169.254/latest/": "169.254.169.254 is refused: it is the metadata service of a cloud", "http://[::1]/": "this machine", "http://localhost/": "names this machine",
		"http://[::ffff:10.0.0.1]/": "a private network", "file:///etc/passwd": "only http and https", "gopher://x.example.com/": "only http and https",
		"http://user:pass@x.example.com/": "must not carry a user name", "http://2130706433/": "looks like an address", "http://0x7f.1/": "looks like an address", "//10.0.0.1/": "a private network",
		"http://[64:ff9b::7f00:1]/": "this machine, in an IPv6 form", "/?to=http://10.1.1.1/": "a private network", "": "",
	} {
		x := fetch(t, &http.Options{Allow: []string{hop}}, `{"url":"http://`+hop+`/?to=`+url.QueryEscape(to)+`"}`)
		if to == "" { // a redirect without a target is returned to the model
			want(t, x, pawl.OutcomeOK, "HTTP 302 Found")
			continue
		}
		want(t, x, pawl.OutcomeError, text)
	}
	loop := ""
	loop = serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, "http://"+loop+"/", nethttp.StatusFound)
	})
	want(t, fetch(t, &http.Options{Allow: []string{loop}}, `{"url":"http://`+loop+`"}`), pawl.OutcomeError, "redirects more than 9 times")
}

// Headers that the model sends to one host are not sent to another. Credentials of the caller go to
// the hosts that the caller named.
func TestHeadersStayWithTheirHost(t *testing.T) {
	var got nethttp.Header
	other := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { got = r.Header })
	first := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if got = r.Header; r.URL.Path == "/away" {
			nethttp.Redirect(w, r, "http://"+other, nethttp.StatusTemporaryRedirect)
		}
	})
	o := &http.Options{Allow: []string{first, other}, Methods: []string{"GET", "POST"}}
	fetch(t, o, `{"url":"http://`+first+`","headers":{"x-key":"secret"}}`)
	if got.Get("X-Key") != "secret" {
		t.Errorf("the header was not sent: %v", got)
	}
	want(t, fetch(t, o, `{"url":"http://`+first+`/away","headers":{"X-Key":"secret","Authorization":"secret"}}`), pawl.OutcomeOK)
	for name, values := range got {
		if strings.Contains(strings.Join(values, ""), "secret") {
			t.Errorf("%s went along with the redirect", name)
		}
	}
	want(t, fetch(t, o, `{"url":"http://`+first+`/away","method":"POST","body":"secret"}`), pawl.OutcomeError, "what was sent is not sent there")

	o.Header = nethttp.Header{"Authorization": {"Bearer caller"}}
	fetch(t, o, `{"url":"http://`+first+`"}`)
	if got.Get("Authorization") != "Bearer caller" {
		t.Error("the caller's header was not sent to a host it named")
	}
	o.Allow = []string{"127.0.0.0/8"}
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	_, port, _ := net.SplitHostPort(first)
	fetch(t, o, `{"url":"http://elsewhere.example.com:`+port+`"}`)
	if got.Get("Authorization") != "" {
		t.Error("the caller's header was sent to a host it did not name")
	}
}

func TestMethods(t *testing.T) {
	var seen []string
	host := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %s %q key %d", r.Method, r.Header.Get("Content-Type"), b, len(r.Header.Get("Idempotency-Key"))))
	})
	plain, _ := http.New(nil)
	if plain.Effect != pawl.EffectRead || strings.Contains(string(plain.Input), "body") {
		t.Errorf("the tool that only reads has effect %v and takes %s", plain.Effect, plain.Input)
	}
	o := &http.Options{Allow: []string{host}, Methods: []string{"GET", "POST", "DELETE"}}
	if tool, _ := http.New(o); tool.Effect != pawl.EffectWrite {
		t.Errorf("effect %v, want Write", tool.Effect)
	}
	for _, args := range []string{`"method":"POST","body":"{\"a\":1}"`, `"method":"POST","body":"words"`, `"method":"DELETE"`, `"method":"GET"`} {
		want(t, fetch(t, o, `{"url":"http://`+host+`",`+args+`}`), pawl.OutcomeOK)
	}
	diff := cmp.Diff([]string{`POST application/json "{\"a\":1}" key 32`, `POST text/plain; charset=utf-8 "words" key 32`, `DELETE  "" key 32`, `GET  "" key 0`}, seen)
	if diff != "" {
		t.Error(diff)
	}
	want(t, fetch(t, o, `{"url":"http://`+host+`","method":"PUT"}`), pawl.OutcomeInvalid, "method")
	want(t, fetch(t, o, `{"url":"http://`+host+`","body":"x"}`), pawl.OutcomeError, "a GET request has no body")
	o.Idempotent = true
	if tool, _ := http.New(o); tool.Effect != pawl.EffectIdempotent {
		t.Errorf("effect %v, want Idempotent", tool.Effect)
	}
	if _, err := http.New(&http.Options{Methods: []string{"TRACE"}}); err == nil || !strings.Contains(err.Error(), "GET, HEAD") {
		t.Errorf("TRACE: %v", err)
	}
}

func TestBadCalls(t *testing.T) {
	host := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("it was sent") })
	o := &http.Options{Allow: []string{host}}
	for args, text := range map[string]string{
		`{"url":"example.com/x"}`: "begins with https://", `{"url":"http://"}`: "not a complete address", `{"url":"http://%zz/"}`: "is not an address", `{"url":"about:blank"}`: "not a complete address",
		`{"url":"http://` + host + `","headers":{"Host":"x"}}`: "Host cannot be set", `{"url":"http://` + host + `","headers":{"X-Forwarded-For":"1.1.1.1"}}`: "cannot be set",
		`{"url":"http://` + host + `","headers":{"Metadata-Flavor":"Google"}}`: "cannot be set", `{"url":"http://` + host + `","headers":{"a b":"c"}}`: "is not valid",
		`{"url":"http://` + host + `","headers":{"A":"b\r\nHost: c"}}`: "is not valid", `{"url":"http://127.0.0.1:1/"}`: "is refused", `{"url":"http://ⓛocalhost/"}`: "names this machine",
	} {
		want(t, fetch(t, o, args), pawl.OutcomeError, text)
	}
	want(t, fetch(t, o, `{"address":"http://x"}`), pawl.OutcomeInvalid, "url")
	want(t, fetch(t, &http.Options{Allow: []string{"127.0.0.1:1"}}, `{"url":"http://127.0.0.1:1/"}`), pawl.OutcomeError, "connection refused")
}

// Each of these responses would block or exhaust a fetcher without limits.
func TestBounds(t *testing.T) {
	soak.Sequential(t)
	over := make(chan struct{})
	defer close(over)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	host := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/slow":
			io.WriteString(w, "a")
			w.(nethttp.Flusher).Flush()
			select {
			case <-over:
			case <-r.Context().Done():
			}
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("endless ", 1000)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		case "/deflate":
			w.Header().Set("Content-Encoding", "deflate")
			f, _ := flate.NewWriter(w, 9)
			io.WriteString(f, "deflated")
			f.Close()
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		case "/deep":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, strings.Repeat("<div>", 200_000)+"deep words")
		case "/wide":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, strings.Repeat("<p>wide", 140_000))
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		}
	})
	o := &http.Options{Allow: []string{host}, Timeout: 300 * time.Millisecond, MaxBody: 100_000}
	get := func(path string) pawl.Execution { return fetch(t, o, `{"url":"http://`+host+path+`"}`) }
	want(t, get("/slow"), pawl.OutcomeError, "did not answer in full within 300ms")
	o.Timeout = time.Minute
	want(t, get("/endless"), pawl.OutcomeOK, "[only the first 100000 bytes were read]")
	want(t, get("/bomb"), pawl.OutcomeOK, "[only the first 100000 bytes were read]")
	want(t, get("/deflate"), pawl.OutcomeOK, "deflated")
	want(t, get("/br"), pawl.OutcomeError, `compressed as "br"`)
	want(t, get("/head"), pawl.OutcomeError, "cannot be fetched")
	want(t, get("/cut"), pawl.OutcomeError, "the connection ended before the answer did")
	o.MaxBody = 2 << 20
	want(t, get("/deep"), pawl.OutcomeOK, "deep words")
	want(t, get("/wide"), pawl.OutcomeOK, "wide")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(pawl.ErrCancelled)
	tool, _ := http.New(o)
	if x := (pawl.Toolsets{tool}).Execute(ctx,
		llm.ToolCall{Name: "http_fetch", Args: json.RawMessage(`{"url":"http://` + host + `/slow"}`)}); x.Outcome != pawl.OutcomeCancelled {
		t.Errorf("after a cancel: %s", x.Outcome)
	}
}

// A name that resolves to a public address when checked and to a private one when dialled is
// dialled at the checked address.
func TestRebinding(t *testing.T) {
	host := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { io.WriteString(w, "inside") })
	_, port, _ := net.SplitHostPort(host)
	lookups := 0
	o := &http.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}
	want(t, fetch(t, o, `{"url":"http://rebind.example.com:`+port+`/"}`), pawl.OutcomeError, "the name stands for this machine")
	if lookups != 1 {
		t.Errorf("%d lookups; there must be none between the check and the connection", lookups)
	}
	o.Allow = []string{"rebind.example.com"}
	want(t, fetch(t, o, `{"url":"http://rebind.example.com:`+port+`/"}`), pawl.OutcomeOK, "inside")
}

// TestWhoMayReadAPage: everybody may read a public page, and the user alone what was fetched with
// credentials or from a host that only the list of the operator makes reachable.
func TestWhoMayReadAPage(t *testing.T) {
	host := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { io.WriteString(w, "words") })
	url := `{"url":"http://` + host + `/page"`
	for name, test := range map[string]struct {
		options http.Options
		args    string
		public  bool
	}{
		"a host of the network":   {http.Options{}, url + `}`, false},
		"a host of the list":      {http.Options{Only: true}, url + `}`, true},
		"the operator's headers":  {http.Options{Only: true, Header: nethttp.Header{"X-Key": {"k"}}}, url + `}`, false},
		"the model's credentials": {http.Options{Only: true}, url + `,"headers":{"authorization":"Bearer x"}}`, false},
	} {
		test.options.Allow = []string{host}
		l, _ := llm.Results(fetch(t, &test.options, test.args).Result).Label()
		from := []llm.Source{{Kind: "url", Name: "http://" + host + "/page"}}
		if l.By != llm.Stranger || slices.Contains(l.Readers, "*") != test.public || !slices.Equal(l.From, from) {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
