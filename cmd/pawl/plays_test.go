package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/test/plays"
	"github.com/pawl-go/pawl/pawltest"
)

// playWires are the addresses of the four APIs, and the names that the command has for them.
var playWires = map[string]struct{ model, base string }{
	pawltest.Chat:      {"openai-chat:m", "/v1"},
	pawltest.Responses: {"openai:m", "/v1"},
	pawltest.Anthropic: {"anthropic:m", ""},
	pawltest.Gemini:    {"gemini:m", "/v1beta"},
}

// playSystem is a System with a key for each provider.
func playSystem(out, errs io.Writer) *cli.System {
	return &cli.System{In: strings.NewReader(""), Out: out, Err: errs, Env: func(name string) string {
		if strings.HasSuffix(name, "_API_KEY") {
			return "k"
		}
		return ""
	}}
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

// pawl run executes no call of a reply that its provider calls unfinished, and its status says that
// half a text is no answer. Complete replies are the controls.
func TestUnfinishedRepliesOfRun(t *testing.T) {
	provider := httptest.NewServer(new(plays.Stage))
	defer provider.Close()
	dir := t.TempDir()
	eachPlay(func(p plays.Play, call, stream bool, name string) {
		var out, errs bytes.Buffer
		w := playWires[p.API]
		status := execute([]string{"run", "--yes", "--tools", "file", "--root", dir, "--model", w.model, "--base-url",
			provider.URL + w.base, p.Line(call, stream, "run")}, playSystem(&out, &errs))

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

// servePlays serves the agents of files. end ends the server, and returns its status.
func servePlays(t *testing.T, files []string) (url string, end func() int) {
	t.Helper()
	r, w := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- execute(append([]string{"serve", "--http", "127.0.0.1:0", "--db", filepath.Join(t.TempDir(), "pawl.db")}, files...),
			playSystem(io.Discard, w))
		w.Close()
	}()

	lines := bufio.NewReader(r)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, at, ok := strings.Cut(strings.TrimSpace(line), " on http://"); ok {
			url = "http://" + at
		}
	}
	go io.Copy(io.Discard, lines)
	return url, func() int {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(os.Interrupt)
		}
		if err != nil {
			t.Fatal(err)
		}
		return <-status
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
