// Package seal has the data that only a provider reads, in the form of the simulated providers:
// text that must come back unchanged, in its place, or not at all. It refuses requests in which it
// does not.
package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/wire"
)

// Text makes the encrypted content of a reasoning item: text that must come back unchanged or not
// at all.
func Text(text string) string {
	return fmt.Sprintf("sim_%s.%08x", base64.RawURLEncoding.EncodeToString([]byte(text)), crc32.ChecksumIEEE([]byte(text)))
}

// Open decodes the text of Text.
func Open(s string) (text string, ok bool) {
	b64, _, _ := strings.Cut(strings.TrimPrefix(s, "sim_"), ".")
	b, err := base64.RawURLEncoding.DecodeString(b64)
	if err != nil || Text(string(b)) != s {
		return "", false
	}
	return string(b), true
}

// Sign makes the signature of a thinking block or of a Gemini part, in base64 as in the APIs. It
// contains the signed content.
func Sign(text string) string { return base64.StdEncoding.EncodeToString([]byte(Text(text))) }

// Signed decodes the signature of Sign.
func Signed(signature string) (text string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return "", false
	}
	return Open(string(b))
}

// Demanded reports whether a Gemini model refuses unsigned calls of the current turn.
func Demanded(model string) bool { return signing.MatchString(model) }

var signing = regexp.MustCompile(`gemini-([3-9]|[1-9][0-9])`)

// Responses refuses encrypted reasoning that this server did not write.
func Responses(req *llm.Request) *wire.Error {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p, ok := p.(llm.Reasoning); ok && p.Opaque != nil {
				var item struct {
					ID        string `json:"id"`
					Encrypted string `json:"encrypted_content"`
				}
				json.Unmarshal(p.Opaque.Data, &item)
				if _, ok := Open(item.Encrypted); !ok && item.Encrypted != "" {
					return &wire.Error{Status: 400, Code: "invalid_encrypted_content",
						Message: "The encrypted content for item " + item.ID + " could not be verified."}
				}
			}
		}
	}
	return nil
}

// binding matches the names of the Anthropic models that bind thinking to what stands before it.
var binding = regexp.MustCompile(`claude-((fable|mythos)-5-[1-9]|(opus|sonnet|haiku)-5-[5-9])`)

// Prefixes returns what the thinking of a reply at each place among the messages is bound to, in
// the form that a signature contains: a digest of the tools and the messages before it, without
// their thinking. It is nil for models that do not bind thinking, unless always is true.
func Prefixes(req *llm.Request, always bool) []string {
	if !always && !binding.MatchString(req.Model) {
		return nil
	}
	h := sha256.New()
	e := json.NewEncoder(h)
	e.Encode(llm.Request{Tools: req.Tools})
	all := make([]string, 0, len(req.Messages)+1)
	for _, m := range append(slices.Clip(req.Messages), llm.Message{}) {
		all = append(all, fmt.Sprintf("\x00%x", h.Sum(nil)[:8]))
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
			_, is := p.(llm.Reasoning)
			return is
		})
		e.Encode(m)
	}
	return all
}

// Anthropic refuses changed thinking, and thinking that is bound to other messages. prefixes is
// what the reply at each place is bound to, or nil.
func Anthropic(req *llm.Request, prefixes []string) *wire.Error {
	for i, m := range req.Messages {
		for _, p := range m.Parts {
			r, ok := p.(llm.Reasoning)
			if !ok || r.Opaque == nil {
				continue
			}
			var block struct{ Type, Thinking, Signature, Data, Content string }
			json.Unmarshal(r.Opaque.Data, &block)
			switch block.Type {
			case "thinking":
				text, ok := Signed(block.Signature)
				text, bound, isBound := strings.Cut(text, "\x00")
				if isBound && prefixes != nil && "\x00"+bound != prefixes[i] {
					return &wire.Error{Status: 400, Message: fmt.Sprintf("messages.%d: the `thinking` block is bound to a different conversation", i)}
				}
				if !ok || block.Thinking != "" && block.Thinking != text {
					return &wire.Error{Status: 400, Message: fmt.Sprintf("messages.%d: Invalid `signature` in `thinking` block", i)}
				}
			case "compaction":
				_, ok := Open(block.Content)
				if block.Signature != "" {
					signed, _ := Signed(block.Signature)
					ok = signed == block.Content
				}
				if !ok {
					return &wire.Error{Status: 400, Message: fmt.Sprintf("messages.%d: the `compaction` block was changed", i)}
				}
			case "redacted_thinking":
				if _, ok := Signed(block.Data); !ok {
					return &wire.Error{Status: 400, Message: fmt.Sprintf("messages.%d: Invalid `data` in `redacted_thinking` block", i)}
				}
			}
		}
	}
	return nil
}

// Gemini refuses signatures that do not belong to their part. A documented placeholder replaces
// the signature of a call that another model made.
func Gemini(req *llm.Request) *wire.Error {
	for i, m := range req.Messages {
		for _, p := range m.Parts {
			var own *llm.Opaque
			want := "text"
			switch p := p.(type) {
			case llm.Text:
				own = p.Opaque
			case llm.ToolCall:
				own = p.Opaque
				want = "call " + p.Name
			case llm.Reasoning:
				own = p.Opaque
			}
			if own == nil {
				continue
			}
			var part wire.Fields
			json.Unmarshal(own.Data, &part)
			signature := part.Text("thoughtSignature")
			if signature == "" || placeholder(signature) {
				continue
			}
			if got, ok := Signed(signature); !ok || got != want && !impossible(got) {
				return &wire.Error{Status: 400, Message: fmt.Sprintf("Corrupted thought signature (turn %d).", i)}
			}
		}
	}
	return nil
}

// impossible reports whether a signature belongs to a call with a name that no function can have. A
// client must write it another way.
func impossible(signed string) bool {
	name, ok := strings.CutPrefix(signed, "call ")
	return ok && !functionName.Fits(name)
}

var functionName = wire.NameForm{Pattern: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), Longest: 64}

func placeholder(signature string) bool {
	if b, err := base64.StdEncoding.DecodeString(signature); err == nil {
		if placeholder(string(b)) {
			return true
		}
	}
	return signature == "skip_thought_signature_validator" || signature == "context_engineering_is_the_way_to_go"
}
