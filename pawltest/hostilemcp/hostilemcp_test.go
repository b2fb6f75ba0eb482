package hostilemcp_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostilemcp"
	"github.com/pawl-go/pawl/pawltest/hostilemcp/internal/plain"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/openai"
)

func TestMain(m *testing.M) {
	hostilemcp.ServeProcess()
	goleak.VerifyTestMain(m)
}

var update = flag.Bool("update", false, "write docs/hostile-mcp.md again")

func open(api, base string) llm.Model {
	if api == pawltest.Anthropic {
		return anthropic.New("hostile", &anthropic.Options{BaseURL: base, Key: "none-needed"})
	}
	return openai.NewChat("hostile", &openai.Options{BaseURL: base, Key: "none-needed"})
}

var apis = []string{pawltest.Chat, pawltest.Anthropic}

// pawlRows are the rows of pawl, played once.
var pawlRows = sync.OnceValues(func() (map[string][]hostilemcp.Row, error) {
	all := map[string][]hostilemcp.Row{}
	for _, api := range apis {
		rows, err := hostilemcp.Play(context.Background(), hostilemcp.Agent(api, open), hostilemcp.Behaviours())
		if err != nil {
			return nil, err
		}
		all[api] = rows
	}
	return all, nil
})

// byHand is the control as a Client.
func byHand(ctx context.Context, s hostilemcp.Server, calls int) hostilemcp.Report {
	c := &plain.Client{URL: s.URL, Command: s.Command, Env: s.Env, ID: s.ID, Secret: s.Secret}
	defer c.Close()
	if err := c.Connect(ctx, "note"); err != nil {
		return hostilemcp.Report{Err: err}
	}
	var r hostilemcp.Report
	for i := range calls {
		if i == 1 {
			time.Sleep(s.Pause)
		}
		r.Results = append(r.Results, c.Call(ctx, "note", map[string]any{"text": fmt.Sprint(i + 1)}))
	}
	return r
}

var controlRows = sync.OnceValues(func() ([]hostilemcp.Row, error) {
	return hostilemcp.Play(context.Background(), byHand, hostilemcp.Behaviours())
})

// pawl meets every behaviour, and there are at least 60.
func TestAgent(t *testing.T) {
	rows, err := pawlRows()
	if err != nil {
		t.Fatal(err)
	}
	for api, rows := range rows {
		if len(rows) < 60 {
			t.Errorf("there are %d behaviours", len(rows))
		}
		for _, r := range rows {
			for _, w := range r.Wrong {
				t.Errorf("%s over %s: %s", r.Behaviour.ID, api, w)
			}
		}
	}
}

// The control fails where a client needs more than the SDK, and meets the rest.
func TestControl(t *testing.T) {
	rows, err := controlRows()
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]int{}
	met := 0
	for _, r := range rows {
		if len(r.Wrong) > 0 {
			failed[r.Behaviour.Kind]++
		} else {
			met++
		}
	}
	for _, kind := range hostilemcp.Kinds {
		if failed[kind] == 0 {
			t.Errorf("the control meets all behaviours of %s", kind)
		}
	}
	if met == 0 {
		t.Error("the control meets none")
	}
}

// docs/hostile-mcp.md lists the plays of these tests. make docs writes it.
func TestPage(t *testing.T) {
	rows, err := pawlRows()
	if err != nil {
		t.Fatal(err)
	}
	control, err := controlRows()
	if err != nil {
		t.Fatal(err)
	}
	page := hostilemcp.Page(apis, rows, control)
	path := filepath.Join("..", "..", "docs", "hostile-mcp.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), page); diff != "" {
		t.Errorf("docs/hostile-mcp.md is not what was played; make docs writes it. Got -, want +\n%s", diff)
	}
}
