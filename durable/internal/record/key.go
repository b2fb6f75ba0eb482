package record

// key.go: the keys of records.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// StepOf returns the number of the step of key.
func StepOf(key string) (int, bool) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) < 3 || parts[0] != "run" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}

// RunOf returns the key of the run that makes the request at key.
func RunOf(key llm.Key) string {
	k := strings.TrimSuffix(string(key), "/model")
	return k[:max(strings.LastIndex(k, "/"), 0)]
}

// Numbered returns the key of the record number n of a kind, for the call or request at key.
func Numbered(key llm.Key, kind string, n int) string {
	return string(key) + "/" + kind + "/" + strconv.Itoa(n)
}

// Digest returns a digest of parts, which also depends on their lengths.
func Digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
