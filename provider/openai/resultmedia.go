package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// imagesOfResults are the images that OpenAI takes. Most other servers take the same.
// https://developers.openai.com/api/docs/guides/images-vision.
var imagesOfResults = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// responsesMedia are the media that the Responses API takes in results. Texts are written as texts.
var responsesMedia = wire.MediaRule{
	Name:       "the Responses API",
	Data:       slices.Concat(imagesOfResults, []string{"application/pdf"}),
	Links:      []string{"", "image/*", "application/*", "text/*"},
	Schemes:    []string{"https://", "http://"},
	Files:      "file-",
	ImageFiles: true,
}

// chatMedia are the media that Chat Completions takes after results.
var chatMedia = wire.MediaRule{
	Name:    "Chat Completions",
	Data:    slices.Concat(imagesOfResults, []string{"application/pdf"}),
	Links:   []string{"", "image/*"},
	Schemes: []string{"https://", "http://"},
	Files:   "file-",
}

// sounds are the types of input_audio.
var sounds = []string{"audio/wav", "audio/mpeg"}

// media returns the rule for the media in results of a request to the named model.
func (d *dialect) media(name string) *wire.MediaRule {
	r := *d.results
	// OpenAI's other models reject requests with sounds; the models of other servers are not known.
	if d.api == chatAPI && (d.compatible || strings.Contains(name, "audio")) {
		r.Data = slices.Concat(r.Data, sounds)
	}
	known, ok := d.catalog.Find(d.provider, name)
	r.Blind = ok && known.Vision != nil && !*known.Vision
	return &r
}

// TakeMedia returns a medium of a result as the server takes it, or a note in its place.
func (m *Model) TakeMedia(req *llm.Request, of llm.Media) llm.Part {
	p, _ := m.media(cmp.Or(req.Model, m.name)).Take(of)
	return p
}
