package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// A server of bad models lists its behaviours, judges its clients, and ends with its context.
func TestHostileServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	var said strings.Builder
	go func() {
		err := (&hostileServeCmd{Addr: "127.0.0.1:0", API: "all"}).serve(ctx, &cli.System{Out: w, Err: &said})
		w.Close()
		ended <- err
	}()
	root, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	root = strings.TrimSpace(root)
	get := func(path string, into any) string {
		t.Helper()
		res, err := http.Get(root + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatalf("%s: %v in %s", path, err, b)
			}
		}
		return string(b)
	}
	if home := get("/", nil); !strings.Contains(home, "unknown-tool") {
		t.Errorf("the page does not list unknown-tool: %s", home)
	}
	var b struct {
		Task   string
		Define []struct {
			Name  string
			Input json.RawMessage
		}
	}
	get("/b/unknown-tool", &b)
	if len(b.Define) != 1 || b.Define[0].Name != "weather" {
		t.Fatalf("got the tools %+v, want weather", b.Define)
	}
	tool := &pawl.Tool{Name: b.Define[0].Name, Input: b.Define[0].Input, Passive: true}
	agent := &pawl.Agent{Model: openai.NewChat("any", &openai.Options{BaseURL: root + "/b/unknown-tool/v1",
		Key: "k"}), Tools: []pawl.Toolset{tool}}
	if _, err := agent.Run(t.Context(), llm.User(b.Task)); err != nil {
		t.Fatal(err)
	}
	var verdict struct {
		Requests      int
		Valid, Passed bool
		Wrong         []string
	}
	get("/b/unknown-tool/verdict", &verdict)
	if verdict.Requests != 2 || !verdict.Valid || !verdict.Passed {
		t.Errorf("got the verdict %+v", verdict)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(said.String(), "stopped\n") {
		t.Errorf("got %q on standard error", said.String())
	}
}
