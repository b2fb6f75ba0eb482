// Package proxy lets a program in a sandbox reach hosts that are named, and no other.
//
//	hosts, err := proxy.New(proxy.Options{Allow: []string{"api.example.com:443", "*.example.org:443"}})
//	res, err := sandbox.Run(ctx, sandbox.Spec{Args: args, Proxy: hosts.Serve})
//
// The program's own network has a loopback and nothing else. On it listens a socket that belongs to this process, and HTTP_PROXY and HTTPS_PROXY lead there: a program
// that keeps to them, as most do, reaches the hosts over HTTP and HTTPS; whatever does not, reaches nothing. Names are resolved here, each address is checked, and the
// one that was checked is dialled: a name that is allowed and stands for a private address, this machine or a cloud's metadata is refused, unless that
// address is allowed itself. A name that is not allowed is not looked up, since a look-up is a message too. What is refused is told to the program in the answer (403), and kept in Result.Refused.
//
// What is inside of an HTTPS connection is not looked at: who may reach a host may send it anything, and a host that serves others' names serves those too.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/netguard"
)

// Options say what may be reached. The zero value lets nothing through.
type Options struct {
	// Allow names hosts ("example.com", "*.example.com:443"), addresses ("10.1.2.3:8080") and networks ("10.1.0.0/16"). Without a port all ports are meant.
	Allow []string
	// Deny names, in the same forms, what is never reached. It wins over Allow.
	Deny []string

	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver
}

// Hosts is a list of hosts that programs may reach. It may serve any number of programs at once.
type Hosts struct{ guard *netguard.Guard }

// New returns Hosts. The error names the entry that is none.
func New(o Options) (*Hosts, error) {
	g, err := netguard.New(netguard.Options{Allow: o.Allow, Deny: o.Deny, Only: true, Public: true, Lookup: o.Lookup,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}) // one proxy behind another would resolve names itself
	if err != nil {
		return nil, fmt.Errorf("sandbox proxy: %w", err)
	}
	return &Hosts{guard: g}, nil
}

const (
	mostAtOnce  = 64  // connections of a program
	mostRefused = 100 // hosts that are kept
)

// Serve answers connections to listener, until end is called: what a sandbox.Spec's Proxy is to do.
func (h *Hosts) Serve(listener *os.File) (end func() (refused []string)) {
	s := &server{hosts: h, slots: make(chan struct{}, mostAtOnce)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	l, err := net.FileListener(listener)
	listener.Close()
	if err != nil {
		return func() []string { s.cancel(); return []string{"everything: " + err.Error()} }
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return s.ctx }, ErrorLog: log.New(io.Discard, "", 0)}
	s.all.Go(func() { s.http.Serve(l) })
	return s.end
}

// server serves one program.
type server struct {
	hosts  *Hosts
	http   *http.Server
	ctx    context.Context // ends with the program
	cancel context.CancelFunc
	slots  chan struct{}
	all    sync.WaitGroup // what was started

	mu      sync.Mutex
	refused []string
	over    bool
}

func (s *server) end() []string {
	s.cancel()
	s.http.Close()
	s.mu.Lock()
	s.over = true // nothing is added to what is waited for
	s.mu.Unlock()
	s.all.Wait()
	s.hosts.guard.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// begin counts a request under way; false when the program has ended.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.all.Add(1)
	}
	return !s.over
}

// ServeHTTP carries one request, or opens one tunnel.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.all.Done()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		http.Error(w, fmt.Sprintf("sandbox: more than %d connections at once", mostAtOnce), http.StatusServiceUnavailable)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		s.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		s.forward(w, r)
	default:
		http.Error(w, "sandbox: this is a proxy: it takes CONNECT, and requests for whole http:// addresses", http.StatusBadRequest)
	}
}

// fail answers a request that came to nothing.
func (s *server) fail(w http.ResponseWriter, err error) {
	var no *netguard.Refused
	if errors.As(err, &no) {
		s.mu.Lock()
		if text := no.Error(); len(s.refused) < mostRefused && !slices.Contains(s.refused, text) {
			s.refused = append(s.refused, text)
		}
		s.mu.Unlock()
		http.Error(w, "sandbox: "+no.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "sandbox: the host could not be reached", http.StatusBadGateway)
}

// hop are the fields of a message that are between two neighbours only.
var hop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func clean(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hop {
		h.Del(name)
	}
}

func (s *server) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI, out.Close = "", false
	out.Host = r.URL.Host // not the Host field: what was checked is what is asked for
	clean(out.Header)
	res, err := s.hosts.guard.RoundTrip(out)
	if err != nil {
		s.fail(w, err)
		return
	}
	defer res.Body.Close()
	clean(res.Header)
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	flow := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			flow.Flush()
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // so that what was cut does not look whole
		}
	}
}

// tunnel joins the program's connection with one to the host.
func (s *server) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := s.hosts.guard.Dial(r.Context(), r.URL.Host)
	if err != nil {
		s.fail(w, err)
		return
	}
	defer far.Close()
	near, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "sandbox: no tunnel", http.StatusInternalServerError)
		return
	}
	defer near.Close()
	stop := context.AfterFunc(s.ctx, func() { near.Close(); far.Close() })
	defer stop()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(far, early); half(far) })
	io.Copy(near, far)
	half(near)
	both.Wait()
}

// half says that no more is sent, and leaves the other direction open.
func half(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
}
