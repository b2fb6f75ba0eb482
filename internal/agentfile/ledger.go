package agentfile

// ledger.go: the key that signs durable runs and the place of their anchors, from the environment.

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/store"
)

// The variables of the ledger: the key that signs durable runs, as a file or as text in PEM, and
// the place of their anchors, file:PATH, otel:URL or exec:COMMAND. They belong to the process and
// not to an agent, so they are in the environment.
const (
	keyVariable    = "PAWL_SIGN_KEY"
	anchorVariable = "PAWL_ANCHOR"
)

// ledger returns the ledger of the environment. Nil means that it names none.
func ledger(env func(string) string) (*store.Ledger, error) {
	key := env(keyVariable)
	place := env(anchorVariable)
	if key == "" && place == "" {
		return nil, nil
	}

	l := new(store.Ledger)
	var err error
	if key != "" {
		l.Key, err = signingKey(key)
		if err != nil {
			return nil, finding(CodeBadValue, "store", "openssl genpkey -algorithm ed25519 -out FILE writes a key",
				"%s: %v", keyVariable, err)
		}
	}
	if place != "" {
		put := anchorPlace(place)
		if put == nil {
			return nil, finding(CodeBadValue, "store", "want file:PATH, otel:URL or exec:COMMAND",
				"%s: %q is no place for anchors", anchorVariable, place)
		}
		l.Anchor = anchorTo(put)
	}
	return l, nil
}

// signingKey reads a private key: a file in PEM, or its text.
func signingKey(from string) (ed25519.PrivateKey, error) {
	k, err := ReadKey(from)
	if err != nil {
		return nil, err
	}
	signer, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is a public key, which cannot sign")
	}
	return signer, nil
}

// putLine stores a line, and returns when it is stored.
type putLine = func(ctx context.Context, line []byte) error

// anchorPlace returns what stores lines at a place of anchors. Nil means that it is none.
func anchorPlace(place string) putLine {
	kind, where, _ := strings.Cut(place, ":")
	if where == "" {
		return nil
	}
	switch kind {
	case "file":
		return func(_ context.Context, line []byte) error { return appendTo(where, line) }
	case "otel":
		return func(ctx context.Context, line []byte) error { return logTo(ctx, where, line) }
	case "exec":
		return func(ctx context.Context, line []byte) error { return passTo(ctx, where, line) }
	}
	return nil
}

// ReadKey returns an ed25519 key: an ed25519.PrivateKey or an ed25519.PublicKey. from is a file in
// PEM, or its text.
func ReadKey(from string) (crypto.PublicKey, error) {
	text := []byte(from)
	if !strings.HasPrefix(strings.TrimSpace(from), "-----BEGIN") {
		var err error
		text, err = os.ReadFile(from)
		if err != nil {
			return nil, errors.New(plain(err))
		}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not in PEM")
	}

	k, err := parseKey(block)
	if err != nil {
		return nil, err
	}
	switch k.(type) {
	case ed25519.PrivateKey, ed25519.PublicKey:
		return k, nil
	}
	return nil, errors.New("it is a key of another kind; want ed25519")
}

func parseKey(block *pem.Block) (any, error) {
	if block.Type == "PUBLIC KEY" {
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(block.Bytes)
}

// anchorTo returns store.Ledger.Anchor, which passes each anchor to put as a line of JSON.
func anchorTo(put putLine) func(context.Context, store.Anchor) error {
	return func(ctx context.Context, a store.Anchor) error {
		line, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return put(ctx, append(line, '\n'))
	}
}

// appendTo appends a line to a file, and returns when it is on disk.
func appendTo(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// logTo sends a line as a log record to OpenTelemetry's collector at address, and returns when the
// collector has accepted it.
func logTo(ctx context.Context, address string, line []byte) error {
	body, err := json.Marshal(logRequest(line))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := strings.TrimSuffix(address, "/") + "/v1/logs"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", anchorVariable, err)
	}
	defer res.Body.Close()

	// A collector can accept a request and reject its records.
	said, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(said, []byte("rejectedLogRecords"))) {
		err = fmt.Errorf("%s: the collector answers %s: %.200s", anchorVariable, res.Status, said)
	}
	return err
}

// logRequest returns the request of OTLP's JSON form with one record, which has a line as its body.
func logRequest(line []byte) any {
	type object map[string]any
	text := func(s []byte) object { return object{"stringValue": string(bytes.TrimSpace(s))} }
	record := object{
		"timeUnixNano":   strconv.FormatInt(time.Now().UnixNano(), 10),
		"severityNumber": 9,
		"body":           text(line),
	}
	return object{"resourceLogs": []object{{
		"resource": object{"attributes": []object{{"key": "service.name", "value": text([]byte("pawl"))}}},
		"scopeLogs": []object{{
			"scope":      object{"name": "pawl.anchors"},
			"logRecords": []object{record},
		}},
	}}}
}

// passTo runs a command with a line as its input. A status other than 0 is an error.
func passTo(ctx context.Context, command string, line []byte) error {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Stdin = bytes.NewReader(line)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200s", anchorVariable, err, bytes.TrimSpace(out))
	}
	return nil
}
