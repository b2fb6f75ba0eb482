package pawl

// artifact.go: Artifacts: the store of results that are too large for the model; how results are
// truncated.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Artifact is a part of a result that is too large for the model: the whole text, an image or a
// file.
type Artifact struct {
	Key  llm.Key // of the call, with "/m" and a number for an image or a file
	MIME string  // text/plain, or the type of the image or file; may be empty
	Text string  // of text
	Data []byte  // of an image or a file
}

// Artifacts stores the parts of results that are too large for the model. The model reads them page
// by page with the tools of the store: if an implementation is a Toolset, its tools are offered to
// the runs that use it. Package artifact and the stores of this module offer result_read.
//
// An implementation must be safe for concurrent use. It separates runs: a run does not find the
// artifacts of another. It stores the output of tools unchanged, secrets included.
type Artifacts interface {
	// Put stores a for run. It replaces the artifact with the same Key.
	Put(ctx context.Context, run string, a Artifact) error
	// Get returns the stored artifact, which must not be changed. The error is ErrNotFound if
	// there is none.
	Get(ctx context.Context, run string, key llm.Key) (Artifact, error)
}

// artifactsValue is the value of the run with its name in the store, also when it is resumed.
const artifactsValue = "pawl.artifacts"

// shelf is the place of a run in a store. nil means that the run has none.
type shelf struct {
	store Artifacts
	run   string
	tools []*Tool // for the model, to read the artifacts
}

// shelf returns the run's place in the agent's store.
func (r *run) shelf(ctx context.Context) (*shelf, error) {
	s := &shelf{store: r.agent.Artifacts}
	var err error
	s.tools, err = readers(ctx, s.store)
	if err != nil {
		return nil, err
	}
	if b, ok := r.res.Values[artifactsValue]; ok {
		if err := json.Unmarshal(b, &s.run); err != nil || s.run == "" {
			return nil, fmt.Errorf("value %q is no name of a run: %s", artifactsValue, text.Clip(string(b), 80))
		}
		return s, nil
	}
	s.run = rand.Text()
	if r.scope.engine.Run != "" {
		s.run = r.scope.engine.Run + "/" + string(r.key) // the same when the run is resumed
	}
	r.res.Values = merged(r.res.Values, Values{artifactsValue: json.RawMessage(strconv.Quote(s.run))})
	return s, nil
}

// readers returns the tools of store, by which a model reads artifacts.
func readers(ctx context.Context, store Artifacts) ([]*Tool, error) {
	set, ok := store.(Toolset)
	if !ok {
		return nil, nil
	}
	return set.Tools(ctx)
}

// Artifact returns the artifact of an earlier result of the run, by the key in the truncated
// result. The error is ErrNotFound if there is none, or if the run has no Artifacts. A nested run
// finds only its own artifacts.
func (v *Invocation) Artifact(ctx context.Context, key llm.Key) (Artifact, error) {
	if v == nil {
		return Artifact{}, errOutside
	}
	s := v.work.task.scope.shelf
	if s == nil || !strings.HasPrefix(string(key), string(v.work.task.Run)+"/") {
		return Artifact{}, ErrNotFound
	}
	return s.store.Get(ctx, s.run, key)
}

// keep stores an artifact, also if the run has been cancelled.
func (s *shelf) keep(ctx context.Context, a Artifact) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return s.store.Put(ctx, s.run, a)
}

// storeTimeout is the time that a store has to accept an artifact.
const storeTimeout = 5 * time.Second

const (
	maxImage = 5 << 20  // bytes of an image: the limit of the Anthropic API
	maxFile  = 20 << 20 // bytes of another file: the limit of the Gemini API for a request
)

// sendable removes the parts that no provider accepts: parts of another kind than Text
// and Media, and Media without content. Media that is too large is replaced by a text, and stored
// if the run has Artifacts.
func (w *work) sendable(ctx context.Context, parts []llm.Part) []llm.Part {
	out := make([]llm.Part, 0, len(parts))
	for _, part := range parts {
		switch m := part.(type) {
		case llm.Text:
			if m.Opaque != nil {
				m.Opaque = m.Opaque.Clone()
				part = m
			}
			out = append(out, part)
		case llm.Media:
			// Media has either an address or data.
			if (m.URL == "") == (len(m.Data) == 0) {
				continue
			}
			isImage := strings.HasPrefix(m.MIME, "image/") && m.MIME != "image/"
			if len(m.Data) <= maxImage || !isImage && len(m.Data) <= maxFile {
				m.Data = bytes.Clone(m.Data)
				out = append(out, m)
				continue
			}
			key := w.task.Key + llm.Key("/m"+strconv.Itoa(len(out)))
			text := fmt.Sprintf("[%s of %d bytes is left out: it is too large to be shown",
				cmp.Or(m.MIME, "a file"), len(m.Data))
			if w.store(ctx, Artifact{Key: key, MIME: m.MIME, Data: m.Data}) {
				text += "; it is kept as " + string(key)
			}
			out = append(out, llm.Text{Text: text + "]", Label: m.Label})
		}
	}
	return out
}

// truncated bounds the text of a result to limit bytes, and returns the number of bytes that it
// cuts. A negative limit means no bound. The whole text is stored if the run has Artifacts.
func (w *work) truncated(ctx context.Context, parts []llm.Part, limit int) (cut []llm.Part, leftOut int) {
	total := 0
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok {
			total += len(t.Text)
		}
	}
	if limit < 0 || total <= limit {
		return parts, 0
	}
	stored := w.store(ctx, Artifact{Key: w.task.Key, MIME: "text/plain", Text: llm.Message{Parts: parts}.Text()})
	cut = capped(parts, total, limit, func(dropped, at int) string {
		leftOut = dropped // of the last call, whose text is used
		if !stored || len(w.task.scope.shelf.tools) == 0 {
			return fmt.Sprintf("\n[… %d bytes left out; ask for less at a time …]\n", dropped)
		}
		return fmt.Sprintf("\n[… %d bytes left out; read the rest with %s {\"id\":%q,\"offset\":%d} …]\n", dropped,
			w.task.scope.shelf.tools[0].Name, w.task.Key, at)
	})
	return cut, leftOut
}

// store stores a, and reports whether it did. A failure is recorded in the Execution.
func (w *work) store(ctx context.Context, a Artifact) bool {
	s := w.task.scope
	if s == nil || s.shelf == nil {
		return false
	}
	err := s.shelf.keep(ctx, a)
	if err != nil && w.exec.Error == "" {
		w.exec.Error = "what was left out of the result could not be kept: " + err.Error()
	}
	return err == nil
}

// capped cuts the text of parts from total to limit bytes. It keeps the head and the tail, and puts
// mark between them. mark receives the number of dropped bytes and the place where they begin.
func capped(parts []llm.Part, total, limit int, mark func(dropped, at int) string) []llm.Part {
	// The mark counts with its largest numbers, so that the result is never longer than limit.
	keep := max(0, limit-len(mark(total, total)))
	head := keep * 2 / 3
	tail := total - (keep - head) // the place where the tail begins
	out := make([]llm.Part, 0, len(parts))
	at := 0
	dropped := 0
	cut := 0
	marked := -1
	for _, p := range parts {
		t, ok := p.(llm.Text)
		if !ok {
			out = append(out, p)
			continue
		}
		n := len(t.Text)
		a := text.RuneBefore(t.Text, min(max(head-at, 0), n))
		b := max(a, text.RuneAfter(t.Text, min(max(tail-at, 0), n)))
		at += n
		dropped += b - a
		switch {
		case b == a:
			out = append(out, t)
		case marked < 0: // the first part that is cut
			marked = len(out)
			cut = at - n + a
			out = append(out, llm.Text{Text: t.Text[:a], Label: t.Label}, llm.Text{Text: t.Text[b:], Label: t.Label})
		case a > 0 || b < n:
			out = append(out, llm.Text{Text: t.Text[:a] + t.Text[b:], Label: t.Label})
		}
	}

	// Only now is the number of dropped bytes known.
	first := out[marked].(llm.Text)
	second := out[marked+1].(llm.Text)
	out[marked] = llm.Text{Text: first.Text + mark(dropped, cut) + second.Text, Label: first.Label}
	return slices.Delete(out, marked+1, marked+2)
}
