package openai

import (
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// tellMedia says what became of a picture or a sound that the server made. A reply with Media in it could not be sent back to this server in
// that form, so they are no parts of it; but they are never lost without a word.
func tellMedia(out *wire.Emitter, what string) error {
	if !out.Yield(llm.Delta{Notice: &llm.Notice{Code: "media_left_out", Text: out.Provider + ": a picture or a sound was " + what}}, nil) {
		return wire.ErrStopped
	}
	return nil
}

// saysMedia reports whether the audio or the images of a message hold something: some servers send all optional members empty.
func saysMedia(raw []byte) bool {
	c := jsonscan.New(raw)
	if c.Kind() == jsonscan.Array {
		c.Array()
		return c.More()
	}
	if !c.Object() {
		return false
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		if string(k) == "data" && c.String() != "" {
			return true
		}
	}
	return false
}

// tellImage says where the picture of an image_generation_call is.
func tellImage(out *wire.Emitter, typ []byte) error {
	if string(typ) != "image_generation_call" {
		return nil
	}
	return tellMedia(out, "made by the server's own tool: it is the result of the image_generation_call that the reply keeps for the server, in Reasoning.Opaque")
}
