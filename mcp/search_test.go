package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/corpora"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/tools/find"
)

// The size of a request with 400 tools, and its size with tools that are found on demand.
func TestRequestBytes(t *testing.T) {
	soak.Sequential(t)
	var sizes []int
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sizes = append(sizes, len(b))
		http.Error(w, `{"error":{"message":"enough"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(web.Close)
	var recorded []json.RawMessage
	for _, x := range corpora.Lines[struct{ Tools []json.RawMessage }](t, "tool-schemas/mcp-servers.dev.jsonl.gz") {
		recorded = append(recorded, x.Tools...)
	}
	var tools pawl.Toolsets
	for i := 0; len(tools) < 400; i++ {
		list, _ := json.Marshal(map[string]any{"tools": []json.RawMessage{recorded[i%len(recorded)]}})
		listed, err := mcp.Inspect(mcp.Server{Name: fmt.Sprint("s", i), Command: "x"}, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		if listed[0].Tool != nil {
			tools = append(tools, listed[0].Tool)
		}
	}
	for _, set := range []pawl.Toolset{tools, find.OnDemand(tools, nil), tools[:20], find.OnDemand(tools[:20], nil)} {
		a := &pawl.Agent{Model: openai.New("gpt-6.1-terra", &openai.Options{BaseURL: web.URL, Key: "k"}), Tools: []pawl.Toolset{set}}
		if _, err := a.Run(t.Context(), llm.User("What is in the file?")); err == nil {
			t.Fatal("the server answers")
		}
	}
	if sizes[0] < 20*sizes[1] {
		t.Errorf("400 tools: %d bytes, with tool_search %d", sizes[0], sizes[1])
	}
	section(t, "search", fmt.Sprintf("| tools | request, bytes | with `tool_search` |\n|---|---|---|\n| 20 | %d | %d |\n| 400 | %d | %d |\n", sizes[2], sizes[3], sizes[0], sizes[1]))
}
