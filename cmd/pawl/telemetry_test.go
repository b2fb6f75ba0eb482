package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

type collectorKey struct{}

// collector records the received requests.
type collector struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.got, "%s %s %v\n", r.URL.Path, b, err)
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
