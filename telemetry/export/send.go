package export

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	tries           = 3
	firstWait       = time.Second
)

// exporter sends one signal.
type exporter struct {
	faults
	url     string
	header  http.Header
	timeout time.Duration
	gzip    bool
	client  *http.Client
	closing atomic.Bool // set at shutdown, so that it does not wait for a missing collector
}

// newExporter reads the options and the environment for a signal. The signal's own variables take
// precedence over the common ones.
func newExporter(o *Options, getenv func(string) string, signal, path string) (*exporter, error) {
	env := func(name string) string {
		return strings.TrimSpace(cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+name), getenv("OTEL_EXPORTER_OTLP_"+name)))
	}
	e := &exporter{timeout: defaultTimeout, header: http.Header{"Content-Type": {"application/json"}}, client: &http.Client{Transport: o.HTTP,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if p := env("PROTOCOL"); p != "" && p != "http/json" && p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %s is not supported; OTLP is sent over HTTP, usually at port 4318", p)
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"} {
		if env(name) != "" {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_%s is not supported; use a custom transport instead (Options.HTTP)", name)
		}
	}
	e.url = strings.TrimRight(cmp.Or(o.Endpoint, getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), defaultEndpoint), "/") + path
	if own := getenv("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"); own != "" && o.Endpoint == "" {
		e.url = own // used unchanged
	}
	if u, err := url.Parse(e.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a collector; want http://HOST:4318", strings.TrimSuffix(e.url, path))
	}
	for pair := range strings.SplitSeq(env("HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			// the value may be a key
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: the entry at %q is not name=value", name)
		}
		e.header.Set(name, value)
	}
	if text := env("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is not a number of milliseconds", text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	switch c := env("COMPRESSION"); c {
	case "gzip":
		e.gzip = true
		e.header.Set("Content-Encoding", "gzip")
	case "", "none":
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION: %q is neither gzip nor none", c)
	}
	return e, nil
}

// send sends a batch, and repeats it once if the collector asks for that. An error is stored for
// Close, because the SDK would write it to the process's log.
func (e *exporter) send(ctx context.Context, batch any) {
	body, err := e.encode(batch)
	if err != nil {
		e.keep(fmt.Errorf("telemetry: %w", err))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	for try := 1; ; try++ {
		wait, err := e.post(ctx, body)
		if err == nil {
			return
		}
		if wait < 0 || try == tries || wait == 0 && e.closing.Load() {
			e.keep(err)
			return
		}
		t := time.NewTimer(max(wait, firstWait<<(try-1)))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			e.keep(err)
			return
		}
	}
}

func (e *exporter) encode(batch any) ([]byte, error) {
	b, err := json.Marshal(batch)
	if err != nil || !e.gzip {
		return b, err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// post sends a body. wait is the time until it may be sent again; a negative wait means that
// retrying is useless.
func (e *exporter) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = e.header.Clone()
	res, err := e.client.Do(req)
	if err != nil { // the collector may not be running yet
		return 0, fmt.Errorf("telemetry: %w", err)
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return -1, refused(said)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		wait = max(firstWait, time.Duration(seconds)*time.Second)
	default:
		wait = -1
	}
	return wait, fmt.Errorf("telemetry: %s: %s", e.url, res.Status)
}

// refused returns the error for a batch that a collector accepted only partly.
func refused(said []byte) error {
	var reply struct {
		Partial struct {
			Spans  json.Number `json:"rejectedSpans"`
			Points json.Number `json:"rejectedDataPoints"`
			Why    string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &reply) != nil {
		return nil // the batch was accepted, even if the response is not JSON
	}
	if n := cmp.Or(reply.Partial.Spans, reply.Partial.Points, "0"); n != "0" {
		return fmt.Errorf("telemetry: the collector refused %s of a batch: %s", n, reply.Partial.Why)
	}
	return nil
}
