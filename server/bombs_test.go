package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/bombs"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server/api"
)

// bomber returns an agent whose model calls the client's tool bomb with the arguments of the bomb
// that the prompt numbers, answers with these arguments, or panics.
func bomber(all []bombs.Bomb) *pawl.Agent {
	turn := func(req *llm.Request) script.Turn {
		if res := script.Results(req); res != nil {
			return script.Say("Refused: " + res[0].Text())
		}
		word, rest, _ := strings.Cut(req.Messages[0].Text(), " ")
		n, _ := strconv.Atoi(rest)
		switch word {
		case "call":
			return script.Call("bomb", all[n].Args)
		case "answer":
			return script.Say(all[n].Args)
		}
		panic("the model's adapter has a fault")
	}
	return &pawl.Agent{Name: "bomber",
		Model: &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}}
}

// Clients send bombs as tools and as schemas of the answer. Each is refused by the request or for
// its arguments, within the bounds, and a run that began before them ends as if they were not
// there.
func TestBombsOfClients(t *testing.T) {
	soak.Sequential(t)
	all := bombs.All()
	v := serve(t, func(o *options) { o.Agents = append(o.Agents, bomber(all)) })
	v.do("POST", "/v1/runs", `{"id":"other","agent":"clerk","input":"wait"}`, 201, nil)
	paths := map[string]string{"output of a run": "/v1/runs"}
	for name, ask := range map[string]func(b bombs.Bomb, n int) string{
		"output of a run": func(b bombs.Bomb, n int) string {
			return `{"agent":"bomber","input":"answer ` + strconv.Itoa(n) + `","wait":true,"output":` + b.Schema + `}`
		},
		"tool": func(b bombs.Bomb, n int) string {
			return `{"model":"bomber","messages":[{"role":"user","content":"call ` + strconv.Itoa(n) + `"}],"tools":[{"type":"function","function":{"name":"bomb","parameters":` + b.Schema + `}}]}`
		},
		"output": func(b bombs.Bomb, n int) string {
			return `{"model":"bomber","messages":[{"role":"user","content":"answer ` + strconv.Itoa(n) + `"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + b.Schema + `}}}`
		},
	} {
		for n, b := range all {
			if n%soak.N(3, 1) != 0 {
				continue
			}
			if len(b.Args) > 250_000 {
				continue // their transport costs more than the check; internal/schema has them all
			}
			t.Run(name+": "+b.Name, func(t *testing.T) {
				body := ask(b, n)
				var status int
				var said []byte
				cpu, mem := bombs.Spent(func() {
					res := v.request("POST", cmp.Or(paths[name], "/v1/chat/completions"), body)
					defer res.Body.Close()
					said, _ = io.ReadAll(res.Body)
					status = res.StatusCode
				})
				switch {
				case status == http.StatusOK && b.Args != "" && bytes.Contains(said, []byte("Refused: ")):
				case status == http.StatusCreated && b.Args != "" && bytes.Contains(said, []byte("the answer does not fit")):
				case status == http.StatusBadGateway && b.Args != "" && bytes.Contains(said, []byte("the answer does not fit")):
				case status >= 400 && status < 500:
				default:
					t.Errorf("status %d: %.300s", status, said)
				}
				times := 1
				if name != "tool" && status != http.StatusBadRequest {
					times = 3 // two corrections, which stay in the conversation
				}
				if cpu > time.Duration(times)*bombs.MaxCPU || mem > int64(times)*bombs.MaxMemory {
					t.Errorf("it took %v of CPU and %d MiB", cpu, mem>>20)
				}
			})
		}
	}
	close(v.world.gate)
	v.events(v.request("GET", "/v1/runs/other/events", "").Body, nil)
	var run api.Run
	if v.do("GET", "/v1/runs/other", "", 200, &run); run.State != "over" || run.Stop != pawl.StopAnswer {
		t.Errorf("the other run: %+v", run)
	}
}

// A panic within a run fails that run. The log has the stack, and the other run goes on.
func TestAPanicFailsOneRun(t *testing.T) {
	var log synced
	v := serve(t, func(o *options) {
		o.Agents = append(o.Agents, bomber(nil))
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	v.do("POST", "/v1/runs", `{"id":"other","agent":"clerk","input":"wait"}`, 201, nil)
	res := v.request("POST", "/v1/chat/completions", `{"model":"bomber","messages":[{"role":"user","content":"panic"}]}`)
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusInternalServerError || !json.Valid(said) || bytes.Contains(said, []byte("adapter")) {
		t.Errorf("status %d: %s", res.StatusCode, said)
	}
	if s := log.String(); !strings.Contains(s, "the model's adapter has a fault") || !strings.Contains(s, "bombs_test.go") {
		t.Errorf("log: %.1000s", s)
	}
	close(v.world.gate)
	v.events(v.request("GET", "/v1/runs/other/events", "").Body, nil)
	var run api.Run
	if v.do("GET", "/v1/runs/other", "", 200, &run); run.State != "over" || run.Stop != pawl.StopAnswer {
		t.Errorf("the other run: %+v", run)
	}
}

// synced is a buffer for several goroutines.
type synced struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
