package pawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// Artifact is what a result was too large to tell: the whole of its text, or an image or a file of it.
type Artifact struct {
	Key  llm.Key // of the call; with "/m" and a number behind it for the result's n-th image or file
	MIME string  // text/plain, or what the image or file is; may be empty
	Text string  // of text
	Data []byte  // of all else
}

// Artifacts keeps what was too large for the model, so that it can be read page by page with the tool result_read, which an Agent
// with Artifacts offers. What belongs to a run stands under a name of its own; another run does not find it. An implementation may be used
// concurrently, and keeps what tools gave as it is, secrets included. One that is a Toolset, too, offers its tools to the runs that use it:
// the Artifacts of this module offer result_read so.
type Artifacts interface {
	// Put keeps a for run, in place of what had its Key there.
	Put(ctx context.Context, run string, a Artifact) error
	// Get returns what was kept, or an error that is ErrNotFound. It must not be changed.
	Get(ctx context.Context, run string, key llm.Key) (Artifact, error)
}

// artifactsValue is the run's value that names it in the store. It is a value so that a run that is resumed finds what it kept.
const artifactsValue = "pawl.artifacts"

// shelf is a run's place in a store; nil: it has none.
type shelf struct {
	store Artifacts
	run   string
	tools []*Tool // those by which a model reads it
}

// shelf returns the run's place in the agent's store, or that of the run around it.
func (r *run) shelf(ctx context.Context, o runOptions) (*shelf, error) {
	store := r.agent.Artifacts
	if store == nil {
		if o.inside != nil {
			return o.inside.work.task.scope.shelf, nil
		}
		return nil, nil
	}
	s := &shelf{store: store}
	var err error
	if s.tools, err = readers(ctx, store); err != nil {
		return nil, err
	}
	if b, ok := r.res.Values[artifactsValue]; ok {
		if err := json.Unmarshal(b, &s.run); err != nil || s.run == "" {
			return nil, fmt.Errorf("value %q is no name of a run: %s", artifactsValue, text.Clip(string(b), 80))
		}
		return s, nil
	}
	if s.run = rand.Text(); o.engine.Run != "" {
		s.run = o.engine.Run + "/" + string(r.key) // the same when it is repeated
	}
	r.res.Values = merged(r.res.Values, Values{artifactsValue: json.RawMessage(strconv.Quote(s.run))})
	return s, nil
}

// readers returns the tools by which a model reads what store has.
func readers(ctx context.Context, store Artifacts) ([]*Tool, error) {
	set, ok := store.(Toolset)
	if !ok {
		return nil, nil
	}
	return set.Tools(ctx)
}

// Artifact returns what was too large for an earlier result of the run, by the key that the cut result names; ErrNotFound if there is
// none, or the run has no Artifacts. A run inside a call reads its own alone.
func (v *Invocation) Artifact(ctx context.Context, key llm.Key) (Artifact, error) {
	s := v.work.task.scope.shelf
	if s == nil || !strings.HasPrefix(string(key), string(v.work.task.Run)+"/") {
		return Artifact{}, ErrNotFound
	}
	return s.store.Get(ctx, s.run, key)
}

// put keeps an artifact, also when the run was cancelled.
func (s *shelf) put(ctx context.Context, a Artifact) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return s.store.Put(ctx, s.run, a)
}

// storeTimeout is the time that a store has to accept an artifact.
const storeTimeout = 5 * time.Second

const (
	maxImage = 5 << 20  // bytes; what Anthropic's API takes of one image
	maxFile  = 20 << 20 // of anything else; what the Gemini API takes of one request
)

// sendable returns parts without those that no provider accepts: a part of another kind than Text and
// Media, and Media without content. Media that is too large is replaced by a text, and stored if the
// run has Artifacts.
func (w *work) sendable(ctx context.Context, parts []llm.Part) []llm.Part {
	out := make([]llm.Part, 0, len(parts))
	for _, part := range parts {
		switch m := part.(type) {
		case llm.Text:
			out = append(out, m)
		case llm.Media:
			if (m.URL == "") == (len(m.Data) == 0) {
				continue
			}
			isImage := strings.HasPrefix(m.MIME, "image/") && m.MIME != "image/"
			if len(m.Data) <= maxImage || !isImage && len(m.Data) <= maxFile {
				out = append(out, m)
				continue
			}
			key := w.task.Key + llm.Key("/m"+strconv.Itoa(len(out)))
			text := fmt.Sprintf("[%s of %d bytes is left out: it is too large to be shown", cmp.Or(m.MIME, "a file"), len(m.Data))
			if w.store(ctx, Artifact{Key: key, MIME: m.MIME, Data: m.Data}) {
				text += "; it is kept as " + string(key)
			}
			out = append(out, llm.Text{Text: text + "]"})
		}
	}
	return out
}

// truncated bounds the text of a result to limit bytes. A negative limit means no bound. The whole
// text is stored if the run has Artifacts.
func (w *work) truncated(ctx context.Context, parts []llm.Part, limit int) []llm.Part {
	total := 0
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok {
			total += len(t.Text)
		}
	}
	if limit < 0 || total <= limit {
		return parts
	}
	stored := w.store(ctx, Artifact{Key: w.task.Key, MIME: "text/plain", Text: llm.Message{Parts: parts}.Text()})
	return capped(parts, total, limit, func(dropped, at int) string {
		if !stored || len(w.task.scope.shelf.tools) == 0 {
			return fmt.Sprintf("\n[… %d bytes left out; ask for less at a time …]\n", dropped)
		}
		return fmt.Sprintf("\n[… %d bytes left out; read the rest with %s {\"id\":%q,\"offset\":%d} …]\n", dropped,
			w.task.scope.shelf.tools[0].Name, w.task.Key, at)
	})
}

// store stores a, and reports whether it did. A failure is recorded in the Execution.
func (w *work) store(ctx context.Context, a Artifact) bool {
	s := w.task.scope
	if s == nil || s.shelf == nil {
		return false
	}
	err := s.shelf.put(ctx, a)
	if err != nil && w.x.Error == "" {
		w.x.Error = "what was left out of the result could not be kept: " + err.Error()
	}
	return err == nil
}
