package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/plays"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/pawltest"
)

// playWires are the addresses of the four APIs, and the names that the command has for them.
var playWires = map[string]struct{ model, base string }{
	pawltest.Chat:      {"openai-chat:m", "/v1"},
	pawltest.Responses: {"openai:m", "/v1"},
	pawltest.Anthropic: {"anthropic:m", ""},
	pawltest.Gemini:    {"gemini:m", "/v1beta"},
}

// playEnv is the environment of a program that plays: it has a key for each provider.
func playEnv(more ...string) []string {
	env := append(os.Environ(), more...)
	for _, name := range []string{"OPENAI", "ANTHROPIC", "GEMINI"} {
		env = append(env, name+"_API_KEY=k")
	}
	return env
}

// wrote reports whether a play wrote its file into dir, and removes it.
func wrote(t *testing.T, dir string) bool {
	t.Helper()
	err := os.Remove(filepath.Join(dir, plays.Path))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// eachPlay calls f for each play that a provider on this machine can play.
func eachPlay(f func(p plays.Play, call, stream bool, name string)) {
	for _, p := range plays.All {
		if p.Vendor {
			continue
		}
		for _, call := range []bool{true, false} {
			for _, stream := range []bool{true, false} {
				f(p, call, stream, fmt.Sprintf("%s %s, call %t, stream %t", p.API, p.Word, call, stream))
			}
		}
	}
}

// The command executes no call of a reply that its provider calls unfinished. Its status says that
// half a text is no answer. Complete replies are the controls.
func TestUnfinishedRepliesOfRun(t *testing.T) {
	soak.Sequential(t)
	provider := httptest.NewServer(new(plays.Stage))
	defer provider.Close()
	dir := t.TempDir()
	eachPlay(func(p plays.Play, call, stream bool, name string) {
		if testing.Short() && !call {
			return
		}
		var out, errs bytes.Buffer
		w := playWires[p.API]
		cmd := exec.CommandContext(t.Context(), "pawl", "run", "--yes", "--tools", "file", "--root", dir, "--model", w.model,
			"--base-url", provider.URL+w.base, p.Line(call, stream, "run"))
		cmd.Env = playEnv()
		cmd.Stdout = &out
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		status := cmd.ProcessState.ExitCode()

		if got := wrote(t, dir); got != (call && p.Complete) {
			t.Errorf("%s: the call was executed: %t; %s", name, got, errs.String())
		}
		answered := p.Complete || p.Continued
		if !call && (status == 0) != answered {
			t.Errorf("%s: status %d, %q; %s", name, status, out.String(), errs.String())
		}
	})
}

// pawl serve executes no such call either, and reports no such text as an answer.
func TestUnfinishedRepliesOfServe(t *testing.T) {
	provider := httptest.NewServer(new(plays.Stage))
	defer provider.Close()
	dir := t.TempDir()
	write := writer(t, t.TempDir())
	var files []string
	for api, w := range playWires {
		files = append(files, write(api+".yaml", fmt.Sprintf(
			"agent: %s\nmodel: {name: '%s', base_url: '%s'}\ntools: [file]\nroot: %s\napprove: {else: allow}\nflow: off\n",
			api, w.model, provider.URL+w.base, dir)))
	}
	url, end := servePlays(t, files)
	defer http.DefaultClient.CloseIdleConnections()

	eachPlay(func(p plays.Play, call, stream bool, name string) {
		finish := askPlay(t, url, p, p.Line(call, stream, "serve"), stream)
		if got := wrote(t, dir); got != (call && p.Complete) {
			t.Errorf("%s: the call was executed: %t", name, got)
		}
		answered := p.Complete || p.Continued
		if !call && (finish == "stop") != answered {
			t.Errorf("%s: the finish reason is %q", name, finish)
		}
	})
	if status := end(); status != 0 {
		t.Errorf("the server ended with status %d", status)
	}
}

// servePlays serves the agents of files with the command. end ends the server, and returns its
// status.
func servePlays(t *testing.T, files []string, more ...string) (url string, end func() int) {
	t.Helper()
	args := []string{"serve", "--http", "127.0.0.1:0", "--db", filepath.Join(t.TempDir(), "pawl.db")}
	cmd := exec.Command("pawl", append(args, files...)...)
	cmd.Env = playEnv(more...)
	errs, err := cmd.StderrPipe()
	ok(t, err)
	ok(t, cmd.Start())

	lines := bufio.NewReader(errs)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, at, ok := strings.Cut(strings.TrimSpace(line), " on http://"); ok {
			url = "http://" + at
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, lines)
	}()
	return url, func() int {
		ok(t, cmd.Process.Signal(os.Interrupt))
		<-drained
		_ = cmd.Wait() // the status says how it ended
		return cmd.ProcessState.ExitCode()
	}
}

// askPlay asks the agent of a play over Chat Completions, and returns the finish reason. "" means
// an error.
func askPlay(t *testing.T, url string, p plays.Play, line string, stream bool) (finish string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": p.API, "stream": stream,
		"messages": []any{map[string]any{"role": "user", "content": line}}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	for part := range strings.Lines(string(all)) {
		var chunk struct {
			Choices []struct {
				Finish *string `json:"finish_reason"`
			} `json:"choices"`
		}
		// Other lines have none.
		_ = json.Unmarshal([]byte(strings.TrimPrefix(part, "data: ")), &chunk)
		for _, c := range chunk.Choices {
			if c.Finish != nil {
				finish = *c.Finish
			}
		}
	}
	return finish
}
