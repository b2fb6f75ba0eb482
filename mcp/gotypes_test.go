package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/gotypes"
	"github.com/pawl-go/pawl/mcp"
)

// echoes serves the tool of each Go type, which returns its argument.
func echoes(t *testing.T) (url string, samples []gotypes.Sample) {
	t.Helper()
	s := &mcp.Service{}
	samples = gotypes.All()
	for _, sample := range samples {
		s.Tools = append(s.Tools, pawl.Toolset(sample.Echo))
	}
	h, err := s.Handler(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return web.URL, samples
}

// The official client of TypeScript accepts the results of tools of every Go type: it checks them
// against the output schemas, which it compiles with another validator.
func TestGoTypesForTypeScript(t *testing.T) {
	packageOf(t, "@modelcontextprotocol/sdk/package.json")
	url, samples := echoes(t)
	r := rand.New(rand.NewPCG(11, 12))
	var calls bytes.Buffer
	want := 0
	for _, s := range samples {
		for range 3 {
			fmt.Fprintf(&calls, "{\"name\":%q,\"args\":%s}\n", s.Echo.Name, s.Random(r))
			want++
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/npm/gotypes.mjs", url)
	cmd.Stdin = &calls
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, faults.String())
	}
	got := 0
	for line := range strings.Lines(string(out)) {
		got++
		if !strings.HasSuffix(line, ": ok\n") {
			t.Error(strings.TrimSpace(line))
		}
	}
	if got != want {
		t.Errorf("%d results, want %d", got, want)
	}
}

// The official client of Go reads the results, and its validator accepts them.
func TestGoTypesForGo(t *testing.T) {
	url, samples := echoes(t)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()

	outputs := map[string]*jsonschema.Resolved{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		src, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(src, &schema); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
		outputs[tool.Name], err = schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	r := rand.New(rand.NewPCG(13, 14))
	for _, s := range samples {
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: s.Echo.Name, Arguments: s.Random(r)})
		if err != nil || res.IsError {
			t.Errorf("%s: %+v, %v", s.Name, res, err)
			continue
		}
		if err := outputs[s.Echo.Name].Validate(res.StructuredContent); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
