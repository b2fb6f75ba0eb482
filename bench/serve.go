package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl/internal/test/load"
)

// addresses are where a server listens. It prints them as one line of JSON.
type addresses struct {
	HTTPS string `json:"https"` // TLS with HTTP/2, as hosted providers
	HTTP  string `json:"http"`  // plain HTTP/1.1, as local servers
}

// certName is the file in the folder of a server with its certificate.
const certName = "cert.pem"

// serve answers as a provider does, until the process ends. It writes its certificate into dir.
func serve(dir string, out io.Writer) error {
	cert, public, err := certificate()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, certName), public, 0o644); err != nil {
		return err
	}
	encrypted, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	s := newServer(cert)
	ended := make(chan error, 2)
	go func() { ended <- s.ServeTLS(encrypted, "", "") }()
	go func() { ended <- s.Serve(plain) }()
	at := addresses{HTTPS: "https://" + encrypted.Addr().String(), HTTP: "http://" + plain.Addr().String()}
	line, err := json.Marshal(at)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", line)
	return <-ended
}

// newServer returns a server that offers HTTP/2 over TLS, with the default limits of net/http.
func newServer(cert tls.Certificate) *http.Server {
	return &http.Server{
		Handler:           new(load.Server),
		ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert},
			MinVersion:   tls.VersionTLS12,
			// The server has a plain listener, too. If that one starts first, net/http prepares
			// HTTP/2 only if it is listed here.
			NextProtos: []string{"h2", "http/1.1"},
		},
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
