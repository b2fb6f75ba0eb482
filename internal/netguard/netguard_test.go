package netguard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-go/pawl/internal/netguard"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site answers on every dialled address and records the address.
type site struct {
	*httptest.Server
	mu     sync.Mutex
	dialed []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Server: httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))}
	t.Cleanup(s.Close)
	return s
}

func (s *site) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed = append(s.dialed, addr)
	s.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
}

// names returns a resolver.
func names(hosts map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		list, ok := hosts[host]
		if !ok {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		var addrs []netip.Addr
		for _, a := range strings.Fields(list) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		return addrs, nil
	}
}

func get(t *testing.T, o netguard.Options, target string) error {
	t.Helper()
	g, err := netguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", target, nil)
	if err != nil {
		return err
	}
	res, err := g.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	return err
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

var hosts = map[string]string{
	"public.example.com":       "93.184.215.14",
	"both.example.com":         "93.184.215.14 127.0.0.1",
	"loop.example.com":         "127.0.0.1",
	"six.example.com":          "::1",
	"private.example.com":      "10.2.3.4",
	"ula.example.com":          "fd12:3456::1",
	"mapped.example.com":       "::ffff:10.0.0.1",
	"nat64.example.com":        "64:ff9b::a00:1",
	"meta.example.com":         "169.254.169.254",
	"azure.example.com":        "168.63.129.16",
	"localhost":                "127.0.0.1",
	"app.localhost":            "127.0.0.1",
	"wiki":                     "10.0.0.7",
	"printer.local":            "192.168.1.9",
	"db.internal":              "10.0.0.8",
	"router.lan":               "192.168.0.1",
	"box.home.arpa":            "192.168.0.2",
	"news.intranet":            "10.0.0.9",
	"metadata.google.internal": "169.254.169.254",
}

// Each row is refused without a connection. As its control, the same request succeeds with a guard
// that allows the host in the row.
func TestSpecialAddresses(t *testing.T) {
	rows := []struct{ url, allow string }{
		// IPv4, plain
		{"http://127.0.0.1/", "127.0.0.1"}, {"http://127.8.9.10/", "127.0.0.0/8"}, {"http://0.0.0.0/", "0.0.0.0"}, {"http://0.1.2.3/", "0.0.0.0/8"},
		{"http://10.0.0.1/", "10.0.0.0/8"}, {"http://10.255.255.255/", "10.0.0.0/8"}, {"http://172.16.0.1/", "172.16.0.1"},
		{"http://172.31.255.254/", "172.16.0.0/12"}, {"http://192.168.0.1/", "192.168.0.1"}, {"http://192.168.255.1:8080/", "192.168.255.1:8080"},
		{"http://169.254.0.1/", "169.254.0.0/16"}, {"http://169.254.169.254/latest/meta-data/", "169.254.169.254"}, {"http://169.254.170.2/", "169.254.170.2"},
		{"http://100.64.0.1/", "100.64.0.0/10"}, {"http://100.127.255.255/", "100.64.0.0/10"}, {"http://100.100.100.200/", "100.100.100.200"},
		{"http://168.63.129.16/", "168.63.129.16"}, {"http://192.0.0.192/", "192.0.0.192"}, {"http://192.0.0.8/", "192.0.0.0/24"},
		{"http://192.0.2.1/", "192.0.2.1"}, {"http://198.51.100.1/", "198.51.100.1"}, {"http://203.0.113.1/", "203.0.113.1"},
		{"http://192.88.99.1/", "192.88.99.1"}, {"http://198.18.0.1/", "198.18.0.0/15"}, {"http://198.19.255.255/", "198.18.0.0/15"},
		{"http://224.0.0.1/", "224.0.0.1"}, {"http://239.255.255.250/", "239.255.255.250"}, {"http://240.0.0.1/", "240.0.0.1"},
		{"http://255.255.255.255/", "255.255.255.255"},
		// IPv6
		{"http://[::1]/", "::1"}, {"http://[::]/", "::"}, {"http://[0:0:0:0:0:0:0:1]/", "::1"}, {"http://[fe80::1]/", "fe80::/10"},
		{"http://[febf::1]/", "fe80::/10"}, {"http://[fec0::1]/", "fec0::1"}, {"http://[fc00::1]/", "fc00::/7"}, {"http://[fd00::1]/", "fd00::1"},
		{"http://[fd00:ec2::254]/", "fd00:ec2::254"}, {"http://[fd20:ce::254]/", "fd20:ce::254"}, {"http://[ff02::1]/", "ff02::1"},
		{"http://[2001:db8::1]/", "2001:db8::1"}, {"http://[3fff::1]/", "3fff::1"}, {"http://[100::1]/", "100::1"}, {"http://[5f00::1]/", "5f00::1"},
		{"http://[4000::1]/", "4000::1"}, {"http://[2001:20::1]/", "2001:20::1"},
		// IPv4 within IPv6
		{"http://[::ffff:127.0.0.1]/", "127.0.0.1"}, {"http://[::ffff:7f00:1]/", "127.0.0.1"}, {"http://[::ffff:a9fe:a9fe]/", "169.254.169.254"},
		{"http://[::127.0.0.1]/", "::127.0.0.1"}, {"http://[::ffff:0:10.0.0.1]/", "::ffff:0:10.0.0.1"}, {"http://[64:ff9b::127.0.0.1]/", "64:ff9b::127.0.0.1"},
		{"http://[64:ff9b::a9fe:a9fe]/", "64:ff9b::/96"}, {"http://[64:ff9b:1::1]/", "64:ff9b:1::/48"}, {"http://[2002:7f00:1::]/", "2002:7f00:1::"},
		{"http://[2002:a00:1::1]/", "2002:a00:1::1"}, {"http://[2001:0:a00:1::1]/", "2001:0:a00:1::1"}, {"http://[2001:0:808:808::f5ff:fffe]/", "2001:0:808:808::f5ff:fffe"},
		{"http://[2600::5efe:10.0.0.1]/", "2600::5efe:10.0.0.1"}, {"http://[2600::200:5efe:7f00:1]/", "2600::200:5efe:7f00:1"},
		// names
		{"http://localhost/", "localhost"}, {"http://LOCALHOST:80/", "localhost:80"}, {"http://localhost./", "localhost"}, {"http://app.localhost/", "*.localhost"},
		{"http://wiki/", "wiki"}, {"http://printer.local/", "printer.local"}, {"http://db.internal/", "db.internal"}, {"http://router.lan/", "router.lan"},
		{"http://box.home.arpa/", "box.home.arpa"}, {"http://news.intranet/", "news.intranet"}, {"http://metadata.google.internal/", "metadata.google.internal"},
		{"http://loop.example.com/", "loop.example.com"}, {"http://six.example.com/", "six.example.com"}, {"http://private.example.com/", "10.2.0.0/16"},
		{"http://ula.example.com/", "ula.example.com"}, {"http://mapped.example.com/", "10.0.0.1"}, {"http://nat64.example.com/", "nat64.example.com"},
		{"http://meta.example.com/", "meta.example.com"}, {"http://azure.example.com/", "azure.example.com"}, {"http://both.example.com/", "both.example.com"},
		{"http://loop.example.com./", "loop.example.com"},
	}
	if len(rows) < 60 {
		t.Fatalf("%d rows; 60 are the least", len(rows))
	}
	for _, row := range rows {
		t.Run(row.url, func(t *testing.T) {
			s := newSite(t)
			o := netguard.Options{Lookup: names(hosts), Dial: s.dial, Proxy: noProxy}
			var refused *netguard.Refused
			if err := get(t, o, row.url); !errors.As(err, &refused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if len(s.dialed) > 0 {
				t.Fatalf("it was refused, and yet %v was dialled", s.dialed)
			}
			if strings.Contains(refused.Error(), "10.2.3.4") {
				t.Errorf("the error reveals the address of a name: %v", refused)
			}
			o.Allow = []string{row.allow}
			if err := get(t, o, row.url); err != nil {
				t.Fatalf("allowed by %s: %v", row.allow, err)
			}
			o.Deny = o.Allow
			if err := get(t, o, row.url); !errors.As(err, &refused) {
				t.Fatalf("denied by %s: got %v, want a refusal", row.allow, err)
			}
		})
	}
}

// Forms that are neither an address nor a name are refused even if they are allowed, because
// programs interpret them differently.
func TestNoAddressAtAll(t *testing.T) {
	for _, u := range []string{"http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/", "http://127.0.0.1.1/", "http://010.0.0.1/",
		"http://user@public.example.com/", "http://public.example.com@127.0.0.1/", "http://:80/", "http:///x", "ftp://public.example.com/", "file:///etc/passwd", "gopher://public.example.com/",
		"http://public.example.com:0/", "http://ⓛocalhost/", "http://１２７.0.0.1/", "http://[fe80::1%25eth0]/"} {
		t.Run(u, func(t *testing.T) {
			s := newSite(t)
			target, err := url.Parse(u)
			if err != nil {
				return // no request can have this host
			}
			o := netguard.Options{Lookup: names(hosts), Dial: s.dial, Proxy: noProxy, Allow: []string{"0.0.0.0/0", "::/0", "localhost", "public.example.com"}}
			var refused *netguard.Refused
			if err := get(t, o, target.String()); !errors.As(err, &refused) || len(s.dialed) > 0 {
				t.Fatalf("got %v, dialled %v; want a refusal", err, s.dialed)
			}
		})
	}
}

func TestPublicHostsGetThrough(t *testing.T) {
	for _, u := range []string{"http://public.example.com/", "http://93.184.215.14/", "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", "http://[64:ff9b::5db8:d70e]/", "http://PUBLIC.example.com.:8080/"} {
		s := newSite(t)
		if err := get(t, netguard.Options{Lookup: names(hosts), Dial: s.dial, Proxy: noProxy}, u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
		if len(s.dialed) != 1 || strings.Contains(s.dialed[0], "example") {
			t.Errorf("%s: dialled %v, want one address", u, s.dialed)
		}
	}
}

func TestOnly(t *testing.T) {
	for allow, want := range map[string]bool{"public.example.com": true, "*.example.com": true, "93.184.0.0/16": true, "public.example.com:443": false, "example.com": false, "10.0.0.0/8": false} {
		s := newSite(t)
		err := get(t, netguard.Options{Lookup: names(hosts), Dial: s.dial, Proxy: noProxy, Allow: []string{allow},
			Only: true}, "http://public.example.com/")
		if (err == nil) != want {
			t.Errorf("only %s: %v", allow, err)
		}
	}
}

// Later answers of a resolver have no effect: the checked address is dialled.
func TestRebinding(t *testing.T) {
	s := newSite(t)
	n := 0
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		if n++; n%2 == 1 {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	o := netguard.Options{Lookup: lookup, Dial: s.dial, Proxy: noProxy}
	if err := get(t, o, "http://rebind.example.com/"); err != nil {
		t.Fatal(err)
	}
	if n != 1 || s.dialed[0] != "93.184.215.14:80" {
		t.Fatalf("%d lookups, dialled %v; want the address of the one lookup", n, s.dialed)
	}
	var refused *netguard.Refused
	if err := get(t, o, "http://rebind.example.com/"); !errors.As(err, &refused) || len(s.dialed) != 1 {
		t.Fatalf("the second answer: %v, dialled %v", err, s.dialed)
	}
}

func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
	}))
	defer proxy.Close()
	via, _ := url.Parse(proxy.URL)
	o := netguard.Options{Lookup: names(hosts), Proxy: func(*http.Request) (*url.URL, error) { return via, nil },
		Allow: []string{"only-the-proxy-knows.example.com"}}
	for _, u := range []string{"http://public.example.com/", "http://only-the-proxy-knows.example.com/"} {
		if err := get(t, o, u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, u := range []string{"http://loop.example.com/", "http://127.0.0.1/", "http://localhost/", proxy.URL,
		"http://wiki.corp.example.com/"} { // perhaps a host of the proxy's own network
		var refused *netguard.Refused
		if err := get(t, o, u); !errors.As(err, &refused) {
			t.Errorf("%s through a proxy: %v, want a refusal", u, err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, p := range []string{"", "*", "http://example.com", "10.0.0.0/40", "example.com:port", "a b", "*.*.com", "host:99999"} {
		if _, err := netguard.New(netguard.Options{Allow: []string{p}}); err == nil ||
			!strings.Contains(err.Error(), "want a host") {
			t.Errorf("allow %q: %v", p, err)
		}
	}
}

func ExampleGuard() {
	g, err := netguard.New(netguard.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: g}
	_, err = client.Get("http://169.254.169.254/latest/meta-data/")
	fmt.Println(errors.Unwrap(err))
	// Output: 169.254.169.254 is refused: it is the metadata service of a cloud
}

// With Public, allowing a host does not allow its addresses, and with Only a name that is not
// allowed is not resolved.
func TestPublic(t *testing.T) {
	looked := 0
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		looked++
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	dialled := 0
	dial := func(context.Context, string, string) (net.Conn, error) {
		dialled++
		c, other := net.Pipe()
		other.Close()
		return c, nil
	}
	for _, test := range []struct {
		allow          []string
		public, only   bool
		addr           string
		looked, dialed int
	}{
		{[]string{"wiki.example.com"}, false, true, "wiki.example.com:443", 1, 1},
		{[]string{"wiki.example.com"}, true, true, "wiki.example.com:443", 1, 0},
		{[]string{"wiki.example.com"}, true, false, "wiki.example.com:443", 1, 0},
		{[]string{"wiki.example.com", "127.0.0.0/8"}, true, true, "wiki.example.com:443", 1, 1},
		{[]string{"localhost:8080"}, true, true, "localhost:8080", 1, 1},
		{[]string{"127.0.0.0/8"}, false, true, "other.example.com:443", 1, 1},
		{[]string{"127.0.0.0/8"}, true, true, "other.example.com:443", 0, 0},
		{[]string{"127.0.0.0/8"}, true, true, "127.0.0.1:443", 0, 1},
		{nil, true, true, "1.1.1.1:443", 0, 0},
	} {
		looked, dialled = 0, 0
		g, err := netguard.New(netguard.Options{Allow: test.allow, Public: test.public, Only: test.only,
			Lookup: lookup, Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Dial(t.Context(), test.addr)
		if err == nil {
			c.Close()
		}
		if looked != test.looked || dialled != test.dialed || (err == nil) != (test.dialed == 1) {
			t.Errorf("%+v: looked up %d, dialled %d, %v", test, looked, dialled, err)
		}
	}
}
