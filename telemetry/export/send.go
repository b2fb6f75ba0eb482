package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawl-go/pawl/internal/webaddress"
)

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	firstWait       = 2 * time.Second // the exporters wait for half to one and a half times as long
	maxWait         = 5 * time.Second
	maxReply        = 512 // bytes of a rejection in an error
)

// signal is the configuration of an exporter, its connection, and its first error. The SDK would
// write the error to the process's log.
type signal struct {
	url         string
	headers     map[string]string
	timeout     time.Duration
	compression int // as the exporters number them
	transport   http.RoundTripper
	closing     atomic.Bool // set at shutdown, so that it does not wait for a missing collector

	mu    sync.Mutex
	first error
}

// newSignal reads the options and the environment for a signal. The signal's own variables take
// precedence over the common ones.
func newSignal(o *Options, getenv func(string) string, name, path string) (*signal, error) {
	env := func(variable string) string {
		own := getenv("OTEL_EXPORTER_OTLP_" + name + "_" + variable)
		return strings.TrimSpace(cmp.Or(own, getenv("OTEL_EXPORTER_OTLP_"+variable)))
	}
	if err := supported(env); err != nil {
		return nil, err
	}

	s := &signal{transport: o.HTTP, timeout: defaultTimeout}
	base := cmp.Or(o.Endpoint, getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), defaultEndpoint)
	s.url = strings.TrimRight(base, "/") + path
	// The specification says that the signal's own variable is the whole address, and the common
	// one a base.
	if own := getenv("OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT"); own != "" && o.Endpoint == "" {
		s.url = own // used unchanged
	}
	if err := checkAddress(s.url, path); err != nil {
		return nil, err
	}

	var err error
	s.headers, err = parseHeaders(env("HEADERS"))
	if err != nil {
		return nil, err
	}
	if text := env("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is not a number of milliseconds", text)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	compression := env("COMPRESSION")
	switch compression {
	case "gzip":
		s.compression = 1
	case "", "none":
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION: %q is neither gzip nor none", compression)
	}
	return s, nil
}

// supported returns an error for a variable that has no effect here.
func supported(env func(string) string) error {
	protocol := env("PROTOCOL")
	switch protocol {
	case "", "http/json", "http/protobuf":
	default:
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %s is not supported; OTLP is sent over HTTP, usually at port 4318", protocol)
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"} {
		if env(name) != "" {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_%s is not supported; use a custom transport instead (Options.HTTP)", name)
		}
	}
	return nil
}

// checkAddress reports an address that is no collector's. path is what was added to it.
func checkAddress(address, path string) error {
	u, ok := webaddress.Parse(address)
	switch {
	case !ok:
		return fmt.Errorf("%q is not the address of a collector; want http://HOST:4318", strings.TrimSuffix(address, path))
	case u.User != nil, u.RawQuery != "":
		return errors.New("the address of a collector has a password or a query; want OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// parseHeaders reads a list of name=value with commas between.
func parseHeaders(list string) (map[string]string, error) {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if !ok || name == "" || err != nil {
			// The value may be a key, so the error does not have it.
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: the entry at %q is not name=value", name)
		}
		headers[name] = value
	}
	return headers, nil
}

// spans sends spans.
type spans struct {
	*otlptrace.Exporter
	*signal
}

// spans returns the exporter of the signal.
func (s *signal) spans() (spans, error) {
	e, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(s.url),
		otlptracehttp.WithHeaders(s.headers),
		otlptracehttp.WithCompression(otlptracehttp.Compression(s.compression)),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithRetry(s.retry()),
		otlptracehttp.WithHTTPClient(s.client()))
	return spans{e, s}, err
}

// ExportSpans sends a batch.
func (s spans) ExportSpans(ctx context.Context, all []trace.ReadOnlySpan) error {
	return s.send(ctx, func(ctx context.Context) error { return s.Exporter.ExportSpans(ctx, all) })
}

// metrics sends metrics.
type metrics struct {
	*otlpmetrichttp.Exporter
	*signal
}

// metrics returns the exporter of the signal.
func (s *signal) metrics() (metrics, error) {
	e, err := otlpmetrichttp.New(context.Background(),
		otlpmetrichttp.WithEndpointURL(s.url),
		otlpmetrichttp.WithHeaders(s.headers),
		otlpmetrichttp.WithCompression(otlpmetrichttp.Compression(s.compression)),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig(s.retry())),
		otlpmetrichttp.WithHTTPClient(s.client()))
	return metrics{e, s}, err
}

// Export sends a batch.
func (m metrics) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	return m.send(ctx, func(ctx context.Context) error { return m.Exporter.Export(ctx, all) })
}

// retry returns the retries of both exporters, which a type for each of them represents.
func (s *signal) retry() otlptracehttp.RetryConfig {
	return otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstWait, MaxInterval: maxWait,
		MaxElapsedTime: s.timeout}
}

func (s *signal) client() *http.Client {
	return &http.Client{Transport: s,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send limits the time of a batch with its retries, and stores its error for Close.
func (s *signal) send(ctx context.Context, export func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := export(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.first = cmp.Or(s.first, fmt.Errorf("telemetry: %w", err))
	}
	return nil
}

func (s *signal) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// temporary marks an error after which the exporters send a batch again.
type temporary struct{ error }

func (temporary) Temporary() bool { return true }
func (t temporary) Unwrap() error { return t.error }

// RoundTrip marks failed connections as temporary, because the collector may not be running yet. In
// errors, the exporters have the body of a rejection and not always the status, so RoundTrip limits
// the body and adds the status.
func (s *signal) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := s.transport.RoundTrip(req)
	switch {
	case err != nil && !s.closing.Load():
		return nil, temporary{err}
	case err == nil && res.StatusCode >= http.StatusMultipleChoices:
		status := strings.NewReader(res.Status + " ")
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(status, io.LimitReader(res.Body, maxReply)), res.Body}
	}
	return res, err
}
