package openai

import (
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// emitMediaNotice emits a notice about an image or a sound that the server generated. Such media
// are not parts of the reply, because the server would reject them in a later request.
func emitMediaNotice(out *wire.Emitter, what string) error {
	if !out.Yield(llm.Delta{Notice: &llm.Notice{Code: "media_left_out", Text: out.Provider + ": a picture or a sound was " + what}}, nil) {
		return wire.ErrStopped
	}
	return nil
}

// hasMedia reports whether a message has audio or images. Some servers send all optional members
// empty.
func hasMedia(raw []byte) bool {
	c := jsonscan.New(raw)
	if c.Kind() == jsonscan.Array {
		c.Array()
		return c.More()
	}
	return wire.MemberText(raw, "data") != ""
}

// emitImageNotice emits a notice with the place of the image of an image_generation_call.
func emitImageNotice(out *wire.Emitter, typ []byte) error {
	if string(typ) != "image_generation_call" {
		return nil
	}
	return emitMediaNotice(out, "made by the server's own tool: it is the result of the image_generation_call that "+
		"the reply keeps for the server, in Reasoning.Opaque")
}
