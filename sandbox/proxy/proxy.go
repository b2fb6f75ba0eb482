// Package proxy lets a program in a sandbox reach named hosts, and no others.
//
//	hosts, err := proxy.New(proxy.Options{
//		Allow: []string{"api.example.com:443", "*.example.org:443"},
//	})
//	res, err := sandbox.Run(ctx, sandbox.Spec{Args: args, Proxy: hosts.Serve})
//
// The program's own network has only a loopback device. A socket of this process listens on it, and
// HTTP_PROXY and HTTPS_PROXY contain its address. A program that uses these variables, as most
// programs do, reaches the hosts over HTTP and HTTPS; any other connection fails. The proxy
// resolves names, checks each address, and dials the checked address. An allowed name that resolves
// to a private address, this machine or a cloud's metadata service is refused unless that address
// is allowed itself. A name that is not allowed is not resolved, because a lookup could carry a
// message as well. The program gets a refusal as response (403), and Result.Refused lists it.
//
// The content of HTTPS connections is not inspected: a program may send anything to an allowed
// host, and a host that also serves other names is reachable under those names.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/netguard"
)

// Options define which hosts may be reached. The zero value allows none.
type Options struct {
	// Allow lists hosts ("example.com", "*.example.com:443"), addresses ("10.1.2.3:8080") and
	// networks ("10.1.0.0/16"). An entry without a port allows all ports.
	Allow []string
	// Deny lists, in the same forms, what is never reached. It takes precedence over Allow.
	Deny []string

	// A nil Lookup means the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Hosts is a set of hosts that programs may reach. It may serve any number of programs
// concurrently.
type Hosts struct{ guard *netguard.Guard }

// New returns Hosts. The error names an invalid entry.
func New(o Options) (*Hosts, error) {
	g, err := netguard.New(netguard.Options{Allow: o.Allow, Deny: o.Deny, Only: true, Public: true, Lookup: o.Lookup,
		// a second proxy would resolve names itself
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }})
	if err != nil {
		return nil, fmt.Errorf("sandbox proxy: %w", err)
	}
	return &Hosts{guard: g}, nil
}

const (
	mostAtOnce  = 64  // concurrent connections of a program
	mostRefused = 100 // refused hosts that are recorded
)

// Serve accepts connections from listener until end is called. It implements Proxy of sandbox.Spec.
func (h *Hosts) Serve(listener *os.File) (end func() (refused []string)) {
	s := &server{hosts: h, slots: make(chan struct{}, mostAtOnce)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	l, err := net.FileListener(listener)
	listener.Close()
	if err != nil {
		return func() []string { s.cancel(); return []string{"everything: " + err.Error()} }
	}
	s.forward = &httputil.ReverseProxy{Transport: h.guard, FlushInterval: -1, ErrorHandler: s.fail,
		ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery // unchanged, also if it cannot be parsed
			r.Out.Host = r.In.URL.Host             // not the Host field: the host that is checked
			r.Out.Header.Del("Upgrade")
			r.Out.Header.Del("Connection")
		}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 64 << 10,
		BaseContext:    func(net.Listener) context.Context { return s.ctx }, ErrorLog: log.New(io.Discard, "", 0)}
	s.all.Go(func() { s.http.Serve(l) })
	return s.close
}

// server serves one program.
type server struct {
	hosts   *Hosts
	http    *http.Server
	forward *httputil.ReverseProxy // for requests that are not tunnels
	ctx     context.Context        // ends with the program
	cancel  context.CancelFunc
	slots   chan struct{}
	all     sync.WaitGroup // all goroutines and requests

	mu      sync.Mutex
	refused []string
	over    bool
}

func (s *server) close() []string {
	s.cancel()
	s.http.Close()
	s.mu.Lock()
	s.over = true // no request is added to the WaitGroup afterwards
	s.mu.Unlock()
	s.all.Wait()
	s.hosts.guard.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// begin counts a request in progress. It returns false if the program has ended.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.all.Add(1)
	}
	return !s.over
}

// ServeHTTP forwards one request, or opens one tunnel.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.all.Done()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		// A limit with an answer: a program that waits without one could not see why.
		http.Error(w, fmt.Sprintf("sandbox: more than %d concurrent connections", mostAtOnce), http.StatusServiceUnavailable)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		s.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		s.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "sandbox: this is a proxy: it accepts CONNECT, and requests for absolute http:// addresses", http.StatusBadRequest)
	}
}

// fail answers a request that failed.
func (s *server) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if no, ok := errors.AsType[*netguard.Refused](err); ok {
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

// tunnel connects the program's connection with a connection to the host.
func (s *server) tunnel(w http.ResponseWriter, r *http.Request) {
	// The host is checked before the program gets its connection, so that a refusal is an answer of
	// HTTP.
	far, err := s.hosts.guard.Dial(r.Context(), r.URL.Host)
	if err != nil {
		s.fail(w, r, err)
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
	// early has what the program sent before the answer. Each direction ends alone, since a program
	// may send all and then wait for the rest of the reply.
	both.Go(func() { io.Copy(far, early); half(far) })
	io.Copy(near, far)
	half(near)
	both.Wait()
}

// half closes the sending direction and leaves the other open.
func half(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
}
