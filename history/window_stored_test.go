package history_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// storedRun is a run as an earlier version stored it, with what that version sent to the model.
type storedRun struct {
	Options  storedOptions
	Messages []llm.Message
	Requests []storedRequest
	Last     []llm.Message // what was sent of the last request
}

// storedOptions are the options of the run. The other options are the default.
type storedOptions struct {
	Tokens     int
	HideReader bool
	Notes      bool
}

// storedRequest is a request of the run: the first Messages of its messages.
type storedRequest struct {
	Messages int
	Turn     int
	Tools    int    // how many were sent
	Edited   int    // of the request that was sent
	Sent     string // the SHA-256 of the messages that were sent, as JSON
}

// window returns the options of the run.
func (o storedOptions) window() *history.WindowOptions {
	w := &history.WindowOptions{Tokens: o.Tokens, HideReader: o.HideReader, Keep: 2}
	if o.Notes {
		w.Notes = script.New()
	}
	return w
}

// storedTools returns the tools of all stored runs: work can be done, and guide is pinned.
func storedTools() []pawl.Toolset {
	run := func(_ context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var in struct {
			Size  int  `json:"size"`
			Fails bool `json:"fails"`
		}
		if err := json.Unmarshal(call.Args, &in); err != nil {
			return llm.ToolResult{}, err
		}
		if in.Fails {
			return llm.ErrorResult("failed: " + strings.Repeat("cause ", in.Size/6)), nil
		}
		return llm.TextResult(strings.Repeat("word ", in.Size/5)), nil
	}
	input := json.RawMessage(`{"type":"object"}`)
	return []pawl.Toolset{
		&pawl.Tool{Name: "work", Description: "Works.", Input: input, Run: run},
		&pawl.Tool{Name: "read", Description: "Reads.", Input: input, Run: run, Effect: pawl.EffectRead},
		&pawl.Tool{Name: "guide", Description: "Shows a guide.", Input: input, Run: run, Effect: pawl.EffectRead, Pin: true},
		storedReader(),
	}
}

// storedReader returns result_read with the description of that time, whose size counts.
func storedReader() *pawl.Tool {
	const description = `Reads a result of an earlier call again, or what was left out of it. A result that is too long is cut in the middle, and old results are put away; there stands the id under which the whole is found.

Read on with offset (in bytes), page by page: each page ends with the offset of the next. Or ask for lines with line and lines. Or look for something with pattern, a regular expression (RE2): the lines that match come with their numbers, and then line and lines show what stands around them. A pattern without an id searches all results; each line comes with the id of its result.

Look for what you need instead of reading all of it.`
	tools, _ := artifact.Reader{}.Tools(context.Background())
	now := tools[0]
	reader := &pawl.Tool{Name: now.Name, Description: description, Effect: now.Effect, Run: now.Run}
	reader.MaxResult = now.MaxResult
	reader.Input = bytes.Replace(now.Input, []byte("run/1/0 or index;"), []byte("such as run/1/0;"), 1)
	return reader
}

// sentBy returns what Window sends of a request.
func sentBy(t *testing.T, o *history.WindowOptions, req *llm.Request) (sent llm.Request, notices []*llm.Notice) {
	t.Helper()
	seen := errors.New("seen")
	inner := modelFunc(func(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
		sent = *req
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{}, seen) }
	})
	for d, err := range history.Window(o).Model(inner).Stream(t.Context(), req) {
		if d.Notice != nil {
			notices = append(notices, d.Notice)
		}
		if err != nil && err != seen {
			t.Fatal(err)
		}
	}
	return sent, notices
}

func hashOf(t *testing.T, msgs []llm.Message) string {
	t.Helper()
	b, err := json.Marshal(msgs)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// Each request of a run that an earlier version stored is sent as that version sent it, and the run
// goes on. The files of the first version of the state never change.
func TestWindowStored(t *testing.T) {
	files, err := filepath.Glob("testdata/window_v*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var run storedRun
			if err := json.Unmarshal(b, &run); err != nil {
				t.Fatal(err)
			}

			// The tools come from an agent, so that Window finds what they say of themselves.
			var specs []*llm.ToolSpec
			m := script.New(script.Say("ready"))
			if _, err := (&pawl.Agent{Model: m, Tools: storedTools()}).Run(t.Context(), llm.User("Go.")); err != nil {
				t.Fatal(err)
			}
			specs = m.Requests()[0].Tools

			var last llm.Request
			for i, want := range run.Requests {
				req := &llm.Request{Key: "run/1/model", Messages: run.Messages[:want.Messages], Turn: want.Turn, Tools: specs}
				sent, notices := sentBy(t, run.Options.window(), req)
				for _, n := range notices {
					if n.Code == history.NoticeWindowMark {
						t.Errorf("request %d: %s", i, n.Text)
					}
				}
				got := storedRequest{want.Messages, want.Turn, len(sent.Tools), sent.Edited, hashOf(t, sent.Messages)}
				if got != want {
					t.Errorf("request %d: got %+v, want %+v", i, got, want)
				}
				last = sent
			}
			if diff := cmp.Diff(run.Last, last.Messages); diff != "" {
				t.Errorf("the last request (-want +got):\n%s", diff)
			}

			// The run goes on over the next edits.
			calls := 12
			going := modelFunc(func(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
				calls--
				turn := script.Call("read", map[string]any{"n": calls, "size": 900})
				if calls == 0 {
					turn = script.Say("done")
				}
				return script.New(turn).Stream(t.Context(), new(llm.Request))
			})
			o := run.Options.window()
			o.Notes = nil
			a := &pawl.Agent{Model: going, Tools: storedTools(), Middleware: []pawl.Middleware{history.Window(o)}}
			res, err := a.Run(t.Context(), append(slices.Clip(run.Messages), llm.User("Go on."))...)
			if err != nil {
				t.Fatal(err)
			}
			edits := 0
			for _, m := range res.Messages[len(run.Messages):] {
				if history.Edited(m) != "" {
					edits++
				}
			}
			if edits == 0 {
				t.Error("the run went on without an edit")
			}
		})
	}
}
