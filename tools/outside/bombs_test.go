package outside_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/bombs"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/tools/outside"
)

// verdict checks that a bomb gave no tool, or a tool that refuses the arguments.
func verdict(t *testing.T, b bombs.Bomb, make func() (*pawl.Tool, string)) {
	t.Helper()
	var tool *pawl.Tool
	var refused error
	reason := ""
	cpu, mem := bombs.Spent(func() {
		if tool, reason = make(); tool != nil && b.Args != "" {
			refused = tool.Validate(json.RawMessage(b.Args))
		}
	})
	switch {
	case tool == nil && reason == "":
		t.Error("it was refused without a reason")
	case tool != nil && refused == nil:
		t.Errorf("it was accepted: %.300s", tool.Input)
	}
	if cpu > bombs.MaxCPU || mem > bombs.MaxMemory {
		t.Errorf("it took %v of CPU and %d MiB", cpu, mem>>20)
	}
}

func TestBombsInAToolFile(t *testing.T) {
	soak.Sequential(t)
	for _, b := range bombs.All() {
		t.Run(b.Name, func(t *testing.T) {
			file := `{"tools":[{"http":{"name":"bomb","description":"d","url":"https://example.com/","method":"POST","input":` + b.Schema + `}}]}`
			verdict(t, b, func() (*pawl.Tool, string) {
				defs, err := outside.Parse([]byte(file))
				if err != nil {
					return nil, err.Error()
				}
				s, err := outside.New(defs, options())
				if err != nil {
					return nil, err.Error()
				}
				tools, _ := s.Tools(t.Context())
				return tools[0], ""
			})
		})
	}
}

// An operation with a bomb is left out, and no other operation.
func TestBombsInOpenAPI(t *testing.T) {
	soak.Sequential(t)
	for _, b := range bombs.All() {
		if bombs.Valid(b.Schema) == "" {
			continue // no document can contain it
		}
		t.Run(b.Name, func(t *testing.T) {
			schema := strings.ReplaceAll(b.Schema, `"#/`, `"#/components/schemas/bomb/`)
			doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"https://example.com"}],"components":{"schemas":{"bomb":` + schema + `}},"paths":{
				"/plain":{"get":{"operationId":"plain","responses":{}}},
				"/bomb":{"post":{"operationId":"bomb","requestBody":{"required":true,"content":{"application/json":{"schema":` + schema + `}}},"responses":{}}}}}`
			if b.Args != "" {
				b.Args = `{"body":` + b.Args + `}`
			}
			if strings.HasSuffix(b.Name, "description") { // it is cut, and then harmless
				if s, err := openapi(t, doc, ""); err != nil || len(s.LeftOut()) > 0 || len(listed(t, s)) > 2000 {
					t.Error(err)
				}
				return
			}
			verdict(t, b, func() (*pawl.Tool, string) {
				s, err := openapi(t, doc, "")
				if err != nil {
					return nil, err.Error()
				}
				tools, _ := s.Tools(t.Context())
				for _, tool := range tools {
					if tool.Name == "bomb" {
						return tool, ""
					}
				}
				if len(tools) != 1 || len(s.LeftOut()) != 1 {
					t.Errorf("%d tools, %v left out", len(tools), s.LeftOut())
				}
				return nil, s.LeftOut()[0].Reason
			})
		})
	}
}
