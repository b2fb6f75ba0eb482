package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/test/browser"
	"github.com/pawl-go/pawl/internal/test/parts"
)

// LangChain and OpenAI's agents SDK use an agent as a model, over Chat Completions and Responses.
// LangChain repeats a request after 422 to 424, and the agents SDK repeats one whose stream ends
// with response.failed and no error: each request is sent once here, and acts once.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	for framework, module := range map[string]string{"langchain": "@langchain/openai", "agents": "@openai/agents"} {
		t.Run(framework, func(t *testing.T) {
			v := serveClerk(t)
			got := v.node("frameworks.mjs", framework, module)
			want := map[string]string{}
			const asks, fails = `"code":"needs_decision","message":"waits for a decision"}`, `"code":"model_failed","message":"made to fail"}`
			for _, api := range []string{"chat ", "responses "} {
				for _, mode := range []string{"whole ", "streamed "} {
					at, locked, failed := mode+api, "423", "424"
					if framework == "langchain" {
						locked, failed = "409", "409"
					}
					if mode == "streamed " {
						locked, failed = "null", "null"
					}
					want[at+"text"] = `"You said: hello there"`
					want[at+"own tool"] = `"Done: found Oslo"`
					want[at+"parallel tools"] = `"Done: found Oslo; found Rome"`
					want[at+"client tool"] = `{"text":"Done: Rome","ran":1}`
					want[at+"prose"] = `"{\"city\":\"Oslo\"}"`
					want[at+"needs a yes"] = `{"status":` + locked + `,` + asks
					want[at+"fails"] = `{"status":` + failed + `,` + fails
					want[at+"fails after a write"] = want[at+"fails"]
				}
			}
			same(t, got, want)
			v.once(4, 4)
			posts := map[string]int{}
			for _, n := range []string{"1", "2", "3", "4"} {
				posts["pay "+n], posts["fail "+n], posts["refund "+n] = 1, 1, 1
			}
			v.requests(posts)
		})
	}
}

// The connections of clients break behind a write. A client that repeats the request by itself gets
// the answer of the first one's run; a run whose client does not return, or stops, is cancelled.
// Each task is written once, and is one run.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	parts.Packages(t, sdkFolder, "ai", "openai", "@langchain/openai", "@openai/agents")
	b := startPages(t)
	origin := b.serve(t)
	v := serveClerk(t, "--origin", origin)
	var inPage map[string]string
	both := make(chan error, 1)
	go func() {
		both <- b.eval(t, origin, `(async () => {
			globalThis.args = ['`+v.edge.URL+`', '`+servedToken+`'];
			await import('/lost.mjs');
			return globalThis.all;
		})()`, &inPage)
	}()
	got := v.node("lost.mjs", "")
	if err := <-both; err != nil {
		t.Fatal(err)
	}
	const answer = `"answer Done: refunded; held"`
	want, posts, runs := map[string]string{}, map[string]int{}, map[string]string{}
	for _, client := range []string{"openai-chat", "openai-responses", "ai-chat", "ai-responses", "ai-compatible", "langchain-chat",
		"langchain-responses", "agents-chat", "agents-responses", "page-chat", "anthropic-messages", "ai-messages"} {
		want["whole "+client], want["stream "+client], want["stop "+client] = answer, `"error"`, `"no end"`
		posts["slow lose-whole-"+client], posts["slow lose-stream-"+client], posts["slow stop-"+client] = 2, 1, 1
		runs["slow lose-whole-"+client], runs["slow lose-stream-"+client], runs["slow stop-"+client] = "answer", "cancelled", "cancelled"
		switch client {
		case "ai-chat", "ai-responses": // it repeats a stream that has no output yet
			want["stream "+client], runs["slow lose-stream-"+client] = answer, "answer"
			posts["slow lose-stream-"+client] = 2
		case "langchain-chat", "langchain-responses":
			want["stop "+client] = `"error"`
		}
	}
	for name, said := range inPage {
		got[name] = json.RawMessage(strconv.Quote(said))
	}
	same(t, got, want)
	v.requests(posts)
	var list struct {
		Runs []struct{ ID, Task, Stop string }
	}
	for range 2 {
		v.get("/v1/runs?limit=100", &list)
		for _, run := range list.Runs {
			v.curl("/v1/runs/" + run.ID + "/events") // until it ends
		}
	}
	ends := map[string]string{}
	for _, run := range list.Runs {
		ends[run.Task] += run.Stop // "answeranswer" would be two runs
	}
	if diff := cmp.Diff(ends, runs); diff != "" {
		t.Errorf("runs by task: got -, want +\n%s", diff)
	}
	v.once(0, len(runs))
}

var sdkFolder = filepath.Join("..", "..", "pawltest", "testdata", "sdk")

// sdkPages are pages of Chromium that can import the packages and scripts of pawltest's clients.
type sdkPages struct{ *browser.Browser }

// startPages starts Chromium.
func startPages(t *testing.T) sdkPages {
	t.Helper()
	path := browser.Need(t)
	parts.Packages(t, sdkFolder, "openai/index.mjs")
	b, err := browser.Start(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return sdkPages{b}
}

// serve serves pages at an origin of their own.
func (sdkPages) serve(t *testing.T) (origin string) {
	page := http.NewServeMux()
	page.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(filepath.Join(sdkFolder, "node_modules")))))
	page.Handle("/lost.mjs", http.FileServer(http.Dir(sdkFolder)))
	page.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<title>page</title>") })
	s := httptest.NewServer(page)
	t.Cleanup(s.Close)
	return s.URL
}

// eval executes code in a new page of an origin.
func (b sdkPages) eval(t *testing.T, origin, code string, out any) error {
	p, err := b.Page(t.Context())
	if err == nil {
		err = p.Open(t.Context(), origin)
	}
	if err == nil {
		err = p.Eval(t.Context(), code, out)
	}
	return err
}
