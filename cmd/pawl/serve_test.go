package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// startServing starts a web server for scripts.
func startServing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FOLDER")
	}
	dir := ts.MkAbs(args[0])
	pay := &payments{answer: make(chan struct{})}
	*ts.Value(paymentsKey{}).(**payments) = pay
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/echo") {
			echo(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/pay") {
			pay.serve(w, r)
			return
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path.Clean("/"+r.URL.Path))))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		text := strings.ReplaceAll(string(b), "$SERVER", r.Host)
		if strings.HasPrefix(text, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		io.WriteString(w, text)
	}))
	ts.Defer(func() { server.CloseClientConnections(); server.Close() })
	ts.Setenv("SERVER", strings.TrimPrefix(server.URL, "http://"))
}

// echo answers with the request, line by line: the received method and address, the headers that
// tests use, and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s\n", r.Method, r.RequestURI)
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains([]string{"Accept", "Accept-Encoding", "Content-Length", "User-Agent"}, name) {
			fmt.Fprintf(w, "%s: %s\n", name, r.Header.Get(name))
		}
	}
	body, _ := io.ReadAll(r.Body)
	w.Write(body)
}

// payments is a bank at /pay whose first payment hangs: the payment happens, but gets no answer.
// /payments returns the number of payments, /payments/keys their idempotency keys.
type payments struct {
	n      atomic.Int64
	answer chan struct{} // the first payment is answered when it is closed
	mu     sync.Mutex
	keys   []string
}

type paymentsKey struct{}

func (p *payments) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/payments" {
		fmt.Fprintln(w, p.n.Load())
		return
	}
	p.mu.Lock()
	if r.URL.Path == "/payments/keys" {
		defer p.mu.Unlock()
		fmt.Fprintln(w, strings.Join(p.keys, "\n"))
		return
	}
	p.keys = append(p.keys, r.Header.Get("Idempotency-Key"))
	p.mu.Unlock()
	io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnected
	if p.n.Add(1) == 1 {
		select {
		case <-p.answer:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprintln(w, "paid")
}

// killed runs pawl and kills it with SIGKILL during its first payment.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: killed pawl …")
	}
	pay := *ts.Value(paymentsKey{}).(**payments)
	cmd, out, done := begin(ts, args)
	wait(ts, done, out, func() bool { return pay.n.Load() > 0 })
	ts.Check(cmd.Process.Kill())
	<-done
}

// drained presses Ctrl-C during the first payment of pawl, and lets the bank answer after that. It
// expects status 130.
func drained(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: drained pawl …")
	}
	pay := *ts.Value(paymentsKey{}).(**payments)
	cmd, out, done := begin(ts, args)
	wait(ts, done, out, func() bool { return pay.n.Load() > 0 })
	ts.Check(cmd.Process.Signal(os.Interrupt))
	wait(ts, done, out, func() bool { return strings.Contains(out.String(), "a second interrupt") })
	close(pay.answer)
	err := <-done
	ts.Logf("%s", out.String())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.StatusInterrupted {
		ts.Fatalf("got %v, want exit status %d", err, cli.StatusInterrupted)
	}
}
