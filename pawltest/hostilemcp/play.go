package hostilemcp

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/mcp"
)

// Server is how a client reaches the server of a play.
type Server struct {
	URL     string   // the address; empty for a process
	Command string   // the program of a process
	Env     []string // its environment, as NAME=value
	// ID and Secret are the credentials of the client. Empty means that it needs none.
	ID, Secret string
	// Pause is the time that the model takes before the second call.
	Pause time.Duration
}

// Report is the outcome of a play.
type Report struct {
	// Results are the texts that the model read, in the order of the calls.
	Results []string
	// Err is why a run ended without an answer. Nil means that both runs ended with one.
	Err error
	// Invalid says what a provider would refuse in the conversation. Empty means nothing.
	Invalid string
}

// Client connects to a server, offers its tool to a model that calls it, and reports what came of
// it. calls is the number of calls.
type Client func(ctx context.Context, s Server, calls int) Report

// Row is the result of a Client for a Behaviour.
type Row struct {
	Behaviour *Behaviour
	// Wrong says what was not as wanted. Empty means nothing.
	Wrong []string
}

// Play plays all behaviours to a client, some at the same time, and returns a Row for each.
func Play(ctx context.Context, client Client, all []Behaviour) ([]Row, error) {
	dir, err := os.MkdirTemp("", "hostilemcp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	rows := make([]Row, len(all))
	var wait sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range all {
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			rows[i] = play(ctx, client, &all[i], filepath.Join(dir, all[i].ID))
		})
	}
	wait.Wait()
	return rows, ctx.Err()
}

// play plays one behaviour. log is the file for the calls that run.
func play(ctx context.Context, client Client, b *Behaviour, log string) Row {
	f := &fake{b: b, log: log}
	s := Server{Pause: b.Pause}
	if b.Process {
		program, err := os.Executable()
		if err != nil {
			return Row{b, []string{err.Error()}}
		}
		s.Command = program
		s.Env = []string{variableID + "=" + b.ID, variableLog + "=" + log, "GORACE=atexit_sleep_ms=0"}
	} else {
		web := httptest.NewServer(f)
		defer web.Close()
		defer web.CloseClientConnections()
		s.URL = web.URL + "/mcp"
		if b.Login {
			s.ID = "kit"
			s.Secret = "kit-secret"
		}
	}
	return Row{b, judge(b, client(ctx, s, b.Calls), f.ran())}
}

// unknown is how a result says that its call may have happened.
const unknown = "may have happened"

// judge compares the outcome of a play with the expected one.
func judge(b *Behaviour, r Report, ran int) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if r.Err != nil {
		add("a run ended: %s", clip(r.Err.Error()))
	}
	if r.Invalid != "" {
		add("the conversation cannot continue: %s", clip(r.Invalid))
	}
	if len(r.Results) != b.Calls {
		add("%d of %d calls have a result", len(r.Results), b.Calls)
		return wrong
	}

	doubts := 0
	for i, text := range r.Results {
		if !strings.Contains(text, b.says(i)) {
			add("result %d is %q, want %q", i+1, clip(text), b.says(i))
		}
		if strings.Contains(text, unknown) {
			doubts++
		}
	}
	if doubts > b.Want.Unknown {
		add("%d results say that a call may have happened, want %d", doubts, b.Want.Unknown)
	}
	if ran != b.ran() {
		add("the tool ran %d times, want %d", ran, b.ran())
	}
	return wrong
}

func clip(s string) string {
	const most = 90
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "")
}

// config returns the settings of pawl's client for a server.
func (s Server) config() mcp.Server {
	out := mcp.Server{Name: "kit", Prefix: "-", URL: s.URL, Command: s.Command, Env: s.Env, StartSeconds: 30, CallSeconds: 30}
	if s.ID != "" {
		out.OAuth = &mcp.OAuth{ClientID: s.ID, SecretEnv: "KIT_SECRET"}
	}
	return out
}
