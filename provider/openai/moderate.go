package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// Moderator judges texts over POST /moderations, at OpenAI and servers with the same endpoint.
// Create it with NewModerator. It is safe for concurrent use.
type Moderator struct{ m *Model }

// moderationsAPI has only a path and errors.
var moderationsAPI = &api{id: "openai", path: "moderations"}

// NewModerator returns the named moderation model. An empty name means omni-moderation-latest. The
// options are a Model's. The first request reports invalid options.
func NewModerator(model string, o *Options) *Moderator {
	return &Moderator{newModel(moderationsAPI, cmp.Or(model, "omni-moderation-latest"), o)}
}

// Flagged returns the categories for which the text is flagged, sorted. None means that it is not
// flagged; an answer that does not say is an error. Errors are as with Embedder.Embed.
func (m *Moderator) Flagged(ctx context.Context, text string) (categories []string, err error) {
	if m.m.err != nil {
		return nil, m.m.err
	}
	body := jsonscan.AppendString([]byte(`{"model":`), m.m.name)
	body = append(jsonscan.AppendString(append(body, `,"input":`...), text), '}')
	err = m.m.client.Post(ctx, m.m.url, body, func(answer []byte) (err error) {
		categories, err = m.read(answer)
		return err
	})
	return categories, err
}

// read returns the categories of all results that are flagged.
func (m *Moderator) read(answer []byte) (categories []string, err error) {
	var a struct {
		Results []struct {
			Flagged    *bool
			Categories map[string]any
		}
	}
	// An answer that cannot be read is an error and never "not flagged": a guardrail that fails
	// must not let the text pass.
	broken := json.Unmarshal(answer, &a) != nil || len(a.Results) == 0
	for _, r := range a.Results {
		broken = broken || r.Flagged == nil
		if broken || !*r.Flagged {
			continue
		}
		before := len(categories)
		for name, is := range r.Categories {
			if is == true {
				categories = append(categories, name)
			}
		}
		// A server may flag a text without a category that this version knows. The text is flagged
		// all the same.
		if len(categories) == before {
			categories = append(categories, "no category")
		}
	}
	if broken {
		return nil, wire.Broken(m.m.provider, "the answer is no moderation: %s", wire.Excerpt(answer))
	}
	slices.Sort(categories)
	return slices.Compact(categories), nil
}
