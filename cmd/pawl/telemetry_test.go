package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type collectorKey struct{}

// collector records the received requests, as JSON.
type collector struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var batch proto.Message = new(tracepb.TracesData)
	if r.URL.Path == "/v1/metrics" {
		batch = new(metricspb.MetricsData)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.got, "%s ", r.URL.Path)
	decoded := proto.Unmarshal(b, batch)
	text, shown := protojson.Marshal(batch)
	err = errors.Join(err, decoded, shown, json.Compact(&c.got, text))
	fmt.Fprintf(&c.got, " %v\n", err)
}

// collect starts a collector at $COLLECTOR. With FILE it writes the received requests, one a line.
func collect(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 1 {
		c := ts.Value(collectorKey{}).(*collector)
		c.mu.Lock()
		defer c.mu.Unlock()
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), c.got.Bytes(), 0o600))
		return
	}
	c := ts.Value(collectorKey{}).(*collector)
	s := httptest.NewServer(c)
	ts.Defer(s.Close)
	ts.Setenv("COLLECTOR", s.URL)
}
