// Command front serves the benchmark's answers over TLS with HTTP/2, as hosted providers do. The
// load server speaks plain HTTP/1.1; front asks it once for each distinct answer and then answers
// from memory, so that neither is the bottleneck.
//
//	front -load 127.0.0.1:8080 -dir scratch
//
// front writes its self-signed certificate to scratch/cert.pem and prints its address.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	load := flag.String("load", "", "address of the load server")
	dir := flag.String("dir", ".", "folder for the certificate")
	flag.Parse()
	if err := run(*load, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "front:", err)
		os.Exit(1)
	}
}

func run(load, dir string) error {
	cert, public, err := certificate()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), public, 0o644); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := newServer(&front{load: "http://" + load}, cert)
	fmt.Println(ln.Addr())
	return s.ServeTLS(ln, "", "")
}

// newServer returns a server that offers HTTP/2 and HTTP/1.1, with the default limits of net/http.
func newServer(h http.Handler, cert tls.Certificate) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}
}

// certificate returns a new certificate for the loopback addresses, and its public part as PEM.
func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(7 * 24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:     []string{"localhost"},
		IsCA:         true,

		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, public, nil
}

// front answers requests with the load server's answers, which it caches.
type front struct {
	load     string
	requests atomic.Int64
	bad      atomic.Int64
	answers  sync.Map // by key, *answer
	buffers  sync.Pool
}

type answer struct {
	contentType string
	body        []byte
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stats" {
		f.stats(w)
		return
	}
	if r.ProtoMajor != 2 {
		f.bad.Add(1)
		http.Error(w, "the measurement is over HTTP/2, not "+r.Proto, http.StatusHTTPVersionNotSupported)
		return
	}
	f.requests.Add(1)
	b, _ := f.buffers.Get().(*bytes.Buffer)
	if b == nil {
		b = new(bytes.Buffer)
	}
	b.Reset()
	defer f.buffers.Put(b)
	if _, err := b.ReadFrom(r.Body); err != nil {
		f.bad.Add(1)
		return // the client has disconnected
	}
	a, err := f.answer(r, b.Bytes())
	if err != nil {
		f.bad.Add(1)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("X-Request-Id", "req_mock")
	w.Write(a.body)
	if strings.HasPrefix(a.contentType, "text/event-stream") {
		w.(http.Flusher).Flush() // no Content-Length, as in a stream
	}
}

// answer returns the cached answer to a request. It asks the load server for the first one.
func (f *front) answer(r *http.Request, body []byte) (*answer, error) {
	key, ok := keyOf(r.URL.Path, body)
	if !ok {
		return nil, errors.New("the request names no script")
	}
	if a, ok := f.answers.Load(key); ok {
		return a.(*answer), nil
	}
	res, err := http.Post(f.load+r.URL.RequestURI(), "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the load server: %s: %s", res.Status, all)
	}
	a := &answer{res.Header.Get("Content-Type"), all}
	f.answers.Store(key, a)
	return a, nil
}

// key determines a load server's answer: the API, the script, the form of the reply, and the number
// of tool results after the task.
type key struct {
	path          string
	script        string // empty if the path has it
	stream, usage bool
	results       int
}

// results are the prefixes of a tool result in the four APIs.
var results = [][]byte{[]byte(`"tool_call_id":`), []byte(`"function_call_output"`), []byte(`"tool_result"`), []byte(`"functionResponse"`)}

// keyOf returns the key of a request. A request without a task or a script has none.
func keyOf(path string, body []byte) (k key, ok bool) {
	task := bytes.LastIndex(body, []byte("@@TASK@@"))
	if task < 0 {
		return k, false
	}
	k.path = path
	if !strings.Contains(path, "/models/") {
		_, after, found := bytes.Cut(body, []byte(`"mock-`))
		name, _, closed := bytes.Cut(after, []byte(`"`))
		if !found || !closed {
			return k, false
		}
		k.script = string(name)
	}
	k.stream = bytes.Contains(body, []byte(`"stream":true`))
	k.usage = bytes.Contains(body, []byte(`"include_usage":true`))
	for _, begin := range results {
		k.results += bytes.Count(body[task:], begin)
	}
	return k, true
}

// stats writes the figures that the harness reads: requests, bad requests, and the CPU time of this
// process.
func (f *front) stats(w io.Writer) {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	fmt.Fprintf(w, `{"requests":%d,"bad":%d,"cpu_ns":%d}`, f.requests.Load(), f.bad.Load(), u.Utime.Nano()+u.Stime.Nano())
}
