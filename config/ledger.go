package config

// ledger.go: the key that signs durable runs, and the place of their anchors. They belong to the
// process and not to an agent, so they are in the environment.

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/pawl-go/pawl/store"
)

// The variables of the ledger: the key, as a file or as text in PEM, and the place of the anchors,
// file:PATH or exec:COMMAND.
const (
	keyVariable    = "PAWL_SIGN_KEY"
	anchorVariable = "PAWL_ANCHOR"
)

// ledger returns the ledger of the environment. Nil means that it names none.
func ledger(env func(string) string) (*store.Ledger, error) {
	key, place := env(keyVariable), env(anchorVariable)
	if key == "" && place == "" {
		return nil, nil
	}
	l := new(store.Ledger)
	if key != "" {
		k, err := ReadKey(key)
		signer, ok := k.(ed25519.PrivateKey)
		if err == nil && !ok {
			err = fmt.Errorf("it is a public key, which cannot sign")
		}
		if err != nil {
			return nil, finding(CodeBadValue, "store", "openssl genpkey -algorithm ed25519 -out FILE writes a key", "%s: %v", keyVariable, err)
		}
		l.Key = signer
	}
	switch kind, where, _ := strings.Cut(place, ":"); {
	case place == "":
	case kind == "file" && where != "":
		l.Anchor = func(_ context.Context, a store.Anchor) error { return appendAnchor(where, a) }
	case kind == "exec" && where != "":
		l.Anchor = func(ctx context.Context, a store.Anchor) error { return passAnchor(ctx, where, a) }
	default:
		return nil, finding(CodeBadValue, "store", "want file:PATH or exec:COMMAND", "%s: %q is no place for anchors", anchorVariable, place)
	}
	return l, nil
}

// ReadKey returns an ed25519 key: an ed25519.PrivateKey or an ed25519.PublicKey. from is a file in
// PEM, or its text.
func ReadKey(from string) (crypto.PublicKey, error) {
	text := []byte(from)
	if !strings.HasPrefix(strings.TrimSpace(from), "-----BEGIN") {
		var err error
		if text, err = os.ReadFile(from); err != nil {
			return nil, fmt.Errorf("%s", plain(err))
		}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("it is not in PEM")
	}
	var k any
	var err error
	if block.Type == "PUBLIC KEY" {
		k, err = x509.ParsePKIXPublicKey(block.Bytes)
	} else {
		k, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	switch k.(type) {
	case ed25519.PrivateKey, ed25519.PublicKey:
		return k, nil
	}
	if err == nil {
		err = fmt.Errorf("it is a key of another kind; want ed25519")
	}
	return nil, err
}

// appendAnchor appends an anchor to a file, and returns when it is on disk.
func appendAnchor(path string, a store.Anchor) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// passAnchor runs a command with an anchor as its input. A status other than 0 is an error.
func passAnchor(ctx context.Context, command string, a store.Anchor) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Stdin = bytes.NewReader(append(line, '\n'))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200s", anchorVariable, err, bytes.TrimSpace(out))
	}
	return nil
}
