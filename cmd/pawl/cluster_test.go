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
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// A cluster with mutual TLS and an API key is reachable with the flags or with the variables of
// Temporal's own command, and not without them.
func TestClusterTLS(t *testing.T) {
	addr := cluster.Address(t)
	cert, key, ours := certificate(t)
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	carry := &http.Transport{Protocols: &h2c}
	defer carry.CloseIdleConnections()
	var let atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.Transport, proxy.FlushInterval = carry, -1
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer cloud-key-0123" || len(req.TLS.PeerCertificates) != 1 ||
			!req.TLS.PeerCertificates[0].Equal(ours) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		let.Add(1)
		proxy.ServeHTTP(w, req)
	}))
	web.EnableHTTP2, web.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	clients := x509.NewCertPool()
	clients.AddCert(ours)
	web.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients}
	web.StartTLS()
	defer web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(web.URL, "https://")
	for _, c := range []struct {
		name   string
		args   []string
		env    map[string]string
		status int
	}{
		{"flags", []string{"--address", at, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key, "--api-key-env",
			"CLOUD"}, map[string]string{"CLOUD": "cloud-key-0123"}, 0},
		{"variables", nil, map[string]string{"TEMPORAL_ADDRESS": at, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": ca,
			"TEMPORAL_TLS_CLIENT_CERT_PATH": cert, "TEMPORAL_TLS_CLIENT_KEY_PATH": key, "TEMPORAL_API_KEY": "cloud-key-0123"}, 0},
		{"no certificate", []string{"--address", at, "--tls-ca", ca},
			map[string]string{"TEMPORAL_API_KEY": "cloud-key-0123"}, cli.StatusFailed},
		{"no key", []string{"--address", at, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key}, nil,
			cli.StatusFailed},
		{"an unknown server", []string{"--address", at, "--tls"},
			map[string]string{"TEMPORAL_API_KEY": "cloud-key-0123"}, cli.StatusFailed},
	} {
		before := let.Load()
		var out, said bytes.Buffer
		status := execute(append([]string{"runs", "list", "--engine", "temporal", "--blobs", t.TempDir()}, c.args...),
			&cli.System{In: strings.NewReader(""), Out: &out, Err: &said,
				Env: func(name string) string { return c.env[name] }, Width: 80})
		if status != c.status || (let.Load() > before) != (c.status == 0) || strings.Contains(said.String(),
			"cloud-key") {
			t.Errorf("%s: exit status %d, %d requests were let in: %s", c.name, status, let.Load()-before,
				said.String())
		}
	}
}

// certificate creates a self-signed certificate and returns the files of the certificate and its
// key.
func certificate(t *testing.T) (certFile, keyFile string, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, cert
}

// The questions of a run on the cluster are asked at the terminal.
func TestClusterAsks(t *testing.T) {
	t.Parallel()
	addr := cluster.Address(t)
	write := func(name string) script.Turn {
		return script.Call("file_write", map[string]any{"path": name, "content": "kept"})
	}
	sim, err := pawltest.NewSimulator(script.New(write("a.txt"), write("b.txt"), script.Say("done")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	dir, blobs := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "clerk.yaml"),
		[]byte("agent: clerk\nmodel: openai:sim\ntools: [file]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	queue := "asks-" + filepath.Base(blobs) + filepath.Base(dir)
	worker := exec.Command("pawl", "worker", "clerk.yaml", "--address", addr, "--blobs", blobs, "--task-queue", queue)
	worker.Dir, worker.Env = dir, append(os.Environ(), "OPENAI_BASE_URL="+sim.URL, "OPENAI_API_KEY=test-key")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(worker.Process.Signal(os.Interrupt), worker.Wait()); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	}()
	var out, said bytes.Buffer
	plain := func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	sys := &cli.System{In: strings.NewReader("y\nn\n"), Out: &out, Err: &said, Env: plain,
		InTerm: true, ErrTerm: true, Width: 80}
	status := execute([]string{"run", filepath.Join(dir, "clerk.yaml"), "--engine", "temporal", "--address", addr,
		"--blobs", blobs, "--task-queue", queue, "Keep it."}, sys)
	if status != 0 || out.String() != "done\n" {
		t.Errorf("exit status %d, %q\n%s", status, out.String(), said.String())
	}
	for file, there := range map[string]bool{"a.txt": true, "b.txt": false} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != there {
			t.Errorf("%s: %v", file, err)
		}
	}
	for what, times := range map[string]int{"may file_write run?": 2, "? file_write": 1, "✓ file_write": 1, "– file_write": 1, "skipped": 0} {
		if n := strings.Count(said.String(), what); n != times {
			t.Errorf("%q was told %d times:\n%s", what, n, said.String())
		}
	}
}
