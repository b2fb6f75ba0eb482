package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFront asks over TLS: HTTP/2 is what a client gets, and the load server is asked once.
func TestFront(t *testing.T) {
	var asked atomic.Int64
	load := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "answer to "+r.URL.RequestURI())
	}))
	defer load.Close()
	cert, public, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(&front{load: load.URL}, cert)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.ServeTLS(ln, "", "")
	defer s.Close()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(public) {
		t.Fatal("the certificate is not PEM")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	post := func(body string) (*http.Response, string) {
		t.Helper()
		res, err := client.Post("https://"+ln.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	for range 3 {
		res, got := post(`{"model":"mock-r1-n1","messages":["@@TASK@@"]}`)
		if got != "answer to /v1/chat/completions" || res.ProtoMajor != 2 || res.TLS == nil {
			t.Errorf("got %q over %s, want the load server's answer over TLS and HTTP/2", got, res.Proto)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the load server was asked %d times, want 1", n)
	}
	old := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}}}
	defer old.CloseIdleConnections()
	client.Transport = old
	if res, _ := post(`{"model":"mock-r1-n1","messages":["@@TASK@@"]}`); res.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Errorf("HTTP/1.1: got %s, want 505", res.Status)
	}
	client.Transport = tr
	if res, _ := post(`{}`); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a request without a script: got %s, want 400", res.Status)
	}
}

// TestKeyOf distinguishes requests that the load server answers differently, and no others.
func TestKeyOf(t *testing.T) {
	of := func(path, body string) key {
		t.Helper()
		k, ok := keyOf(path, []byte(body))
		if !ok {
			t.Fatalf("%s %s has no key", path, body)
		}
		return k
	}
	const chat = "/v1/chat/completions"
	first := of(chat, `{"model":"mock-r1","messages":["before","@@TASK@@"]}`)
	if again := of(chat, `{"model":"mock-r1","messages":[{"tool_call_id":"an earlier one"},"@@TASK@@"]}`); again != first {
		t.Errorf("a history makes another key: %+v and %+v", first, again)
	}
	others := []key{
		first,
		of(chat, `{"model":"mock-r2","messages":["@@TASK@@"]}`),
		of(chat, `{"model":"mock-r1","stream":true,"messages":["@@TASK@@"]}`),
		of(chat, `{"model":"mock-r1","stream":true,"include_usage":true,"messages":["@@TASK@@"]}`),
		of(chat, `{"model":"mock-r1","messages":["@@TASK@@",{"tool_call_id":"a"}]}`),
		of("/v1/responses", `{"model":"mock-r1","input":["@@TASK@@"]}`),
		of("/v1/responses", `{"model":"mock-r1","input":["@@TASK@@",{"type":"function_call_output"}]}`),
		of("/v1beta/models/mock-r1:generateContent", `{"contents":["@@TASK@@"]}`),
		of("/v1beta/models/mock-r1:generateContent", `{"contents":["@@TASK@@",{"functionResponse":{}}]}`),
		of("/v1/messages", `{"model":"mock-r1","messages":["@@TASK@@",{"type":"tool_result"}]}`),
	}
	seen := map[key]bool{}
	for _, k := range others {
		if seen[k] {
			t.Errorf("two requests have the key %+v", k)
		}
		seen[k] = true
	}
	for _, body := range []string{`{"model":"mock-r1"}`, `{"messages":["@@TASK@@"]}`, `{"model":"mock-r1 @@TASK@@`} {
		if _, ok := keyOf(chat, []byte(body)); ok {
			t.Errorf("%s has a key", body)
		}
	}
}
