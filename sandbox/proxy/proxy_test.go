//go:build linux && (amd64 || arm64)

package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/sandbox/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local serves on 127.0.0.1 and counts requests.
func local(t *testing.T, withTLS bool) (srv *httptest.Server, port string, came *atomic.Int64) {
	came = new(atomic.Int64)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		fmt.Fprintf(w, "hello from %s %s", r.Host, r.URL.Path)
	})
	if withTLS {
		srv = httptest.NewTLSServer(h)
	} else {
		srv = httptest.NewServer(h)
	}
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return srv, u.Port(), came
}

// names is a resolver for tests; names that are not in list do not exist.
func names(list map[string][]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range list[host] {
			out = append(out, netip.MustParseAddr(a))
		}
		if out == nil {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return out, nil
	}
}

// serve serves a proxy on the loopback of this machine, without a sandbox.
func serve(t *testing.T, o proxy.Options) (addr string, end func() []string) {
	hosts, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String(), hosts.Serve(f)
}

func get(t *testing.T, addr, target string) (int, string) {
	t.Helper()
	p := &url.URL{Scheme: "http", Host: addr}
	// the test's own server
	tr := &http.Transport{Proxy: http.ProxyURL(p), TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Get(target)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// Named hosts are reached. Any other host is refused with the reason, and receives nothing.
func TestHosts(t *testing.T) {
	_, port, came := local(t, false)
	_, tlsPort, cameTLS := local(t, true)
	here := []string{"127.0.0.1"}
	lookup := names(map[string][]string{"good.example.com": here, "other.example.com": here, "rebound.example.com": here, "mixed.example.com": {"93.184.216.34", "127.0.0.1"},
		"meta.example.com": {"169.254.169.254"}, "denied.example.com": here})
	// the addresses of good, allowed explicitly
	own := []string{"127.0.0.1:" + port, "127.0.0.1:" + tlsPort}
	for _, test := range []struct {
		name        string
		allow, deny []string
		url         string
		status      int
		want        string
	}{
		{"named", append(own, "good.example.com"), nil, "http://good.example.com:" + port + "/a", 200, "hello from good.example.com:" + port + " /a"},
		{"named, TLS", append(own, "good.example.com"), nil, "https://good.example.com:" + tlsPort + "/b", 200, "hello from good.example.com"},
		{"an address that is named", own, nil, "http://127.0.0.1:" + port + "/", 200, "hello"},
		// the test's resolver does not know it
		{"localhost names itself", []string{"localhost:" + port}, nil, "http://localhost:" + port + "/", 502, "could not be reached"},
		{"another host", []string{"good.example.com"}, nil, "http://other.example.org:" + port + "/", 403, "not on the list"},
		{"another host, TLS", []string{"good.example.com"}, nil, "https://other.example.org:" + tlsPort + "/", 0, "Forbidden"},
		{"another port", []string{"good.example.com:1"}, nil, "http://good.example.com:" + port + "/", 403, "not on the list"},
		{"an address that is not named", []string{"good.example.com"}, nil, "http://127.0.0.1:" + port + "/", 403, "not on the list"},
		{"an address in another form", []string{"good.example.com"}, nil, "http://2130706433:" + port + "/", 403, "looks like an address"},
		{"a name that stands for this machine", []string{"rebound.example.com"}, nil, "http://rebound.example.com:" + port + "/", 403, "the name stands for this machine"},
		{"the same, TLS", []string{"rebound.example.com"}, nil, "https://rebound.example.com:" + tlsPort + "/", 0, "Forbidden"},
		{"one of its addresses", []string{"mixed.example.com"}, nil, "http://mixed.example.com:" + port + "/", 403, "the name stands for this machine"},
		{"metadata", []string{"meta.example.com"}, nil, "http://meta.example.com/", 403, "the metadata service"},
		{"denied", append(own, "*.example.com"), []string{"denied.example.com"}, "http://denied.example.com:" + port + "/", 403, "refused addresses"},
		{"nothing is named", nil, nil, "http://good.example.com:" + port + "/", 403, "not on the list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := came.Load() + cameTLS.Load()
			addr, end := serve(t, proxy.Options{Allow: test.allow, Deny: test.deny, Lookup: lookup})
			status, text := get(t, addr, test.url)
			refused := end()
			if status != test.status || !strings.Contains(text, test.want) {
				t.Errorf("%d %q, want %d %q", status, text, test.status, test.want)
			}
			if no := test.status == 403 || test.status == 0; no != (len(refused) == 1) || no &&
				came.Load()+cameTLS.Load() != before {
				t.Errorf("kept %q; %d arrived", refused, came.Load()+cameTLS.Load()-before)
			}
		})
	}
}

// A name whose address changes between two lookups is refused when it is dialled: check and
// connection use the same lookup.
func TestRebinding(t *testing.T) {
	_, port, came := local(t, false)
	var asked atomic.Int64
	addr, end := serve(t, proxy.Options{Allow: []string{"flip.example.com"}, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			// refused as well: no test connects to other machines
			return []netip.Addr{netip.MustParseAddr("203.0.113.9")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	defer end()
	for range 3 {
		if status, text := get(t, addr, "http://flip.example.com:"+port+"/"); status != 403 {
			t.Errorf("%d %q", status, text)
		}
	}
	if came.Load() != 0 || asked.Load() != 3 {
		t.Errorf("%d arrived, %d lookups", came.Load(), asked.Load())
	}
}

// The end of a program ends its tunnels, and unusual requests get an explanation.
func TestEndsAndOddRequests(t *testing.T) {
	_, port, _ := local(t, false)
	addr, end := serve(t, proxy.Options{Allow: []string{"127.0.0.1:" + port}})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	buf := make([]byte, 200)
	n, err := c.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 200") {
		t.Fatalf("%q %v", buf[:n], err)
	}
	if status, text := get(t, addr, "http://127.0.0.1:"+port+"/"); status != 200 {
		t.Errorf("during a tunnel: %d %s", status, text)
	}
	res, err := http.Get("http://" + addr + "/plain")
	if err != nil || res.StatusCode != 400 {
		t.Errorf("a request for the proxy itself: %v %v", res, err)
	} else {
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	end()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(buf); err == nil || os.IsTimeout(err) {
		t.Errorf("the tunnel is still there: %v", err)
	}
}

// strict skips the test with a message if the machine cannot enforce the level.
func strict(t *testing.T) bool {
	if p := sandbox.Probe().Level(sandbox.Strict); !p.OK {
		t.Log("strict cannot be enforced here, so nothing is tried: " + p.Reason)
		return false
	}
	return true
}

const ways = `
import socket, sys, urllib.request
port, way = int(sys.argv[1]), sys.argv[2]
def fetch(url, proxies=None):
    opener = urllib.request.build_opener() if proxies is None else urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    return opener.open(url, timeout=5).read().decode()
if way == "allowed": print(fetch("http://127.0.0.1:%d/in" % port))
elif way == "other host": print(fetch("http://other.example.com/"))
elif way == "direct": print(fetch("http://127.0.0.1:%d/in" % port, {}))
elif way == "direct to another": socket.create_connection(("192.0.2.1", 80), 3); print("hello")
elif way == "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)); print("hello")
elif way == "ipv6": socket.socket(socket.AF_INET6, socket.SOCK_STREAM); print("hello")
elif way == "raw": socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); print("hello")
elif way == "packet": socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("hello")
elif way == "netlink": socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print("hello")
elif way == "mptcp": socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); print("hello")
elif way == "dns": print("hello", socket.getaddrinfo("localhost.example.com", 80))
elif way == "listen":
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); print("hello")
`

// A program in the sandbox reaches the named hosts through its proxy, and nothing in any other way.
// Each way is also tried without a sandbox, where it must succeed, except ways that would leave
// this machine or need features of certain kernels.
func TestASandboxWithNamedHosts(t *testing.T) {
	if !strict(t) {
		return
	}
	python := parts.Program(t, "/usr/bin/python3", "python3")
	_, port, came := local(t, false)
	for _, test := range []struct {
		way     string
		in      bool   // whether it succeeds in the sandbox
		control bool   // whether it must succeed without a sandbox
		refused string // the proxy's message
	}{
		{"allowed", true, true, ""},
		{"other host", false, false, "other.example.com is refused"},
		{"direct", false, true, ""},
		{"direct to another", false, false, ""},
		{"udp", false, true, ""},
		{"ipv6", false, true, ""},
		{"raw", false, os.Geteuid() == 0, ""},
		{"packet", false, os.Geteuid() == 0, ""},
		{"netlink", false, true, ""},
		{"mptcp", false, false, ""},
		{"dns", false, false, ""},
		{"listen", false, true, ""},
	} {
		t.Run(test.way, func(t *testing.T) {
			hosts, err := proxy.New(proxy.Options{Allow: []string{"127.0.0.1:" + port}})
			if err != nil {
				t.Fatal(err)
			}
			args := []string{python, "-c", ways, port, test.way}
			before := came.Load()
			res, err := sandbox.Run(t.Context(), sandbox.Spec{Args: args, Proxy: hosts.Serve})
			if err != nil {
				t.Fatal(err)
			}
			if in := strings.Contains(res.Stdout.String(), "hello"); in != test.in || (came.Load() > before) != test.in {
				t.Errorf("led somewhere: %v, want %v: %s%s", in, test.in, res.Stdout.String(), res.Stderr.String())
			}
			if got := strings.Join(res.Refused, "; "); test.refused == "" && got != "" || !strings.Contains(got, test.refused) {
				t.Errorf("refused %q, want %q: %s", got, test.refused, res.Stderr.String())
			}
			if test.control {
				out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
				if !strings.Contains(string(out), "hello") {
					t.Errorf("without a sandbox it leads nowhere, so it shows nothing: %v %s", err, out)
				}
			}
			res, err = sandbox.Run(t.Context(), sandbox.Spec{Args: args})
			if err != nil || strings.Contains(res.Stdout.String(), "hello") {
				t.Errorf("without a proxy: %v %s", err, res.Stdout.String())
			}
		})
	}
}

// Only strict gives a program its own network. At other levels nothing runs.
func TestLevelsWithoutANetwork(t *testing.T) {
	hosts, err := proxy.New(proxy.Options{Allow: []string{"example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []sandbox.Level{sandbox.Standard, sandbox.None} {
		if _, err := sandbox.Run(t.Context(),
			sandbox.Spec{Level: level, Args: []string{"true"}, Proxy: hosts.Serve}); err == nil ||
			!strings.Contains(err.Error(), sandbox.ErrUnenforced.Error()) {
			t.Errorf("%s: %v", level, err)
		}
	}
	if _, err := proxy.New(proxy.Options{Allow: []string{"http://example.com/"}}); err == nil {
		t.Error("an address of a page was taken for a host")
	}
}

func ExampleHosts_Serve() {
	hosts, err := proxy.New(proxy.Options{Allow: []string{"api.example.com:443"}, Deny: []string{"169.254.0.0/16"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := sandbox.Spec{Level: sandbox.Strict, Args: []string{"curl", "https://api.example.com/"}, Proxy: hosts.Serve}
	fmt.Println(spec.Args[0], "has a proxy:", spec.Proxy != nil)
	// Output: curl has a proxy: true
}
