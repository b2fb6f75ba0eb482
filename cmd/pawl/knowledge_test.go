package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// With --embed the search also uses meaning. If embedding fails, the search uses words and reports
// the failure.
func TestKnowledgeByMeaning(t *testing.T) {
	away := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if away || json.NewDecoder(r.Body).Decode(&body) != nil {
			http.Error(w, `{"error":"model is gone"}`, 404)
			return
		}
		var all []string
		for _, text := range body.Input { // texts about time off have one direction, others another
			v := "[0,1]"
			if strings.Contains(text, "holiday") || strings.Contains(text, "leave") {
				v = "[1,0.1]"
			}
			all = append(all, v)
		}
		fmt.Fprintf(w, `{"embeddings":[%s]}`, strings.Join(all, ","))
	}))
	defer srv.Close()
	dir := t.TempDir()
	run := func(args ...string) (string, int) {
		var out bytes.Buffer
		sys := &cli.System{Out: &out, Err: &out, Env: func(string) string { return "" }}
		status := execute(append([]string{"knowledge"}, append(args, "--db", filepath.Join(dir, "k.db"), "--embed",
			"ollama:m", "--embed-url", srv.URL)...), sys)
		return out.String(), status
	}
	for name, text := range map[string]string{"a.txt": "You have twelve days of leave.",
		"b.txt": "The printer is in room 12."} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, status := run("add", path); status != 0 {
			t.Fatal(out)
		}
	}
	if out, status := run("search", "holiday", "--limit", "1"); status != 0 ||
		!strings.Contains(out, "twelve days of leave") {
		t.Errorf("status %d: %s", status, out)
	}
	away = true
	if out, status := run("search", "printer"); status != 0 || !strings.Contains(out, "by their words only") ||
		!strings.Contains(out, "model is gone") || !strings.Contains(out, "room 12") {
		t.Errorf("status %d: %s", status, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, status := run("add", filepath.Join(dir, "a.txt")); status != cli.StatusFailed ||
		!strings.Contains(out, "model is gone") {
		t.Errorf("status %d: %s", status, out)
	}
}
