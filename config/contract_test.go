package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/config"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/llm"
)

// An agent does the same when a file describes it.
func TestContract(t *testing.T) {
	contract.Play(t, "file", func(t *testing.T, s *contract.Scene) contract.Visit {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "turns.json"), []byte(`{"turns":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		text := s.YAML() + "model: script:turns.json\n"
		file, err := config.Parse("a.yaml", []byte(text), &config.Options{Dir: dir, Tools: s.Tools})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		built, err := file.Build(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(built.Close)
		a := built.Agent
		a.Model = s.Model

		var last *pawl.Result
		return contract.Visit{
			Say: func(text string) contract.Shown {
				var earlier []llm.Message
				if last != nil {
					earlier = last.Messages
				}
				res, err := a.Run(t.Context(), append(earlier, llm.User(text))...)
				last = res
				return contract.ShownBy(res, err)
			},
			Reply: func(answers []contract.Answer) contract.Shown {
				res, err := a.Resume(t.Context(), last, contract.Decisions(answers))
				last = res
				return contract.ShownBy(res, err)
			},
		}
	})
}
