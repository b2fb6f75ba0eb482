package openai

import (
	"encoding/json"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

var chatAPI = &api{
	id:       "openai-chat",
	path:     "chat/completions",
	maxID:    40,
	rules:    &wire.Rules{HistoryRules: llm.HistoryRules{Settled: true}},
	results:  &chatMedia,
	encode:   fromChatRequest,
	fromTool: fromChatTool,
	decoder: func(d *dialect, out *wire.Emitter) wire.Decoder {
		return &chatDecoder{dialect: d, Emitter: out, text: closed, thought: closed}
	},
}

// closed is the index of a part that is not open.
const closed = -1

// chatDecoder emits the deltas of a Chat Completions reply. A whole message is read like the
// single delta of a stream.
type chatDecoder struct {
	*dialect
	*wire.Emitter
	text    int // the open text, or closed
	thought int // the open reasoning, or closed
	calls   []chatCall
	details *chatDetails // OpenRouter's reasoning_details; nil means none
	thinks  bool         // reasoning arrived next to the details
	end     wire.End     // the finish reason
	done    bool         // [DONE] arrived
	// counted means that the usage came with the last chunk, and not before: servers that state it
	// once state it at the end
	counted bool
	sealing bool // a whole reply: parts are emitted complete
	noticed bool // the notice about media was emitted
}

// toDelta reads a message, or a fragment of one. It emits the members in the order in which a
// model writes, not in their order in the JSON.
func (d *chatDecoder) toDelta(c *jsonscan.Cursor) error {
	var refused, thought, plain []byte
	var content, details, pieces, function, audio, images []byte
	c.Fields("content", &content, "refusal", &refused, reasoningContent, &thought, reasoningPlain, &plain,
		reasoningDetails, &details, "tool_calls", &pieces, "function_call", &function,
		"audio", &audio, "images", &images)
	if c.Err() != nil {
		return nil // the chunk reports it
	}
	// The notice comes once a reply: a stream sends the media in many fragments.
	media := ""
	if hasMedia(audio) {
		media = "audio"
	}
	if hasMedia(images) {
		media = "images"
	}
	if media != "" && !d.noticed {
		d.noticed = true
		if err := emitMediaNotice(d.Emitter, "left out of the reply: the server sent it next to its text, as "+media); err != nil {
			return err
		}
	}
	form := reasoningContent
	thinking := wire.AsPiece(thought)
	if thinking == "" {
		thinking = wire.AsPiece(plain)
		form = reasoningPlain
	}
	d.thinks = d.thinks || thinking != ""
	if len(details) > 2 && details[0] == '[' {
		if err := d.addDetails(details); err != nil {
			return err
		}
		if !d.thinks { // most servers state the text of the details a second time
			thinking = textOfDetails(details)
		}
	}
	if err := d.reasoning(thinking, form); err != nil {
		return err
	}
	// Mistral sends content as a list if it contains thinking, in streams too.
	if len(content) > 0 && content[0] == '[' {
		if err := d.content(content); err != nil {
			return err
		}
	} else if err := d.say(wire.AsPiece(content)); err != nil {
		return err
	}
	if refusal := wire.AsPiece(refused); refusal != "" {
		d.Refused = true
		if err := d.say(refusal); err != nil {
			return err
		}
	}
	list := jsonscan.New(pieces)
	for list.Array(); list.More(); {
		p := d.piece(&list)
		if err := d.fragment(&p); err != nil {
			return err
		}
	}
	// Snowflake sends an empty function_call next to the real calls; legacy skips it.
	if len(function) > 2 && function[0] == '{' {
		return d.legacy(function)
	}
	return nil
}

// content reads a list of typed parts.
func (d *chatDecoder) content(raw []byte) error {
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		var typ jsonscan.Word
		var text, thinking []byte
		c.Fields("type", &typ, "text", &text, "thinking", &thinking)
		switch {
		case string(typ) == "thinking" && len(thinking) > 2:
			if err := d.thinking(thinking); err != nil {
				return err
			}
		// References, the other parts, have no text.
		case wire.Filled(text):
			if err := d.say(wire.AsPiece(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// thinking reads Mistral's thinking: text, or a list of text parts.
func (d *chatDecoder) thinking(raw []byte) error {
	if raw[0] == '"' {
		return d.reasoning(wire.AsPiece(raw), reasoningList)
	}
	c := jsonscan.New(raw)
	for c.Array(); c.More(); {
		if err := d.reasoning(wire.AsPiece(wire.Member(c.Raw(), "text")), reasoningList); err != nil {
			return err
		}
	}
	return nil
}

func (d *chatDecoder) say(s string) error {
	if s == "" {
		return nil
	}
	if err := d.closeThought(); err != nil {
		return err
	}
	if d.text != closed {
		return d.MoreText(d.text, s)
	}
	if d.sealing {
		return d.Part(llm.Text{Text: s})
	}
	i, err := d.BeginText(llm.Text{Text: s})
	d.text = i
	return err
}

func (d *chatDecoder) reasoning(s, form string) error {
	if s == "" {
		return nil
	}
	if d.thought != closed {
		return d.MoreReasoning(d.thought, s)
	}
	if err := d.closeText(); err != nil {
		return err
	}
	// The part remembers the server's name for reasoning, because the server reads it only under
	// that name.
	part := llm.Reasoning{Text: s, Opaque: &llm.Opaque{Provider: d.tag, Data: json.RawMessage(`{"field":"` + form + `"}`)}}
	if d.sealing {
		return d.Part(part)
	}
	i, err := d.BeginReasoning(part)
	d.thought = i
	return err
}

func (d *chatDecoder) closeText() error {
	if d.text == closed {
		return nil
	}
	i := d.text
	d.text = closed
	return d.Seal(i)
}

// closeThought ends the open reasoning. Reasoning with details stays open, because they may
// continue until the end.
func (d *chatDecoder) closeThought() error {
	if d.thought == closed || d.details != nil && d.details.part == d.thought {
		return nil
	}
	i := d.thought
	d.thought = closed
	return d.Seal(i)
}
