package pawltest

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
)

// seal makes the encrypted content of a reasoning item: text that must come back unchanged or not
// at all.
func seal(text string) string {
	return fmt.Sprintf("sim_%s.%08x", base64.RawURLEncoding.EncodeToString([]byte(text)), crc32.ChecksumIEEE([]byte(text)))
}

// unseal decodes the text of seal.
func unseal(s string) (text string, ok bool) {
	b64, _, _ := strings.Cut(strings.TrimPrefix(s, "sim_"), ".")
	b, err := base64.RawURLEncoding.DecodeString(b64)
	if err != nil || seal(string(b)) != s {
		return "", false
	}
	return string(b), true
}

// sign makes the signature of a thinking block or of a Gemini part, in base64 as in the APIs. It
// contains the signed content.
func sign(text string) string { return base64.StdEncoding.EncodeToString([]byte(seal(text))) }

// signs decodes the signature of sign.
func signs(signature string) (text string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return "", false
	}
	return unseal(string(b))
}

// isObject reports whether s is a JSON object.
func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s))
}

// verbatim returns the block or part that a script wrote in the form of provider. nil means that
// the script did not.
func verbatim(p llm.Reasoning, provider string) any {
	if p.Opaque == nil || p.Opaque.Provider != provider || !isObject(string(p.Opaque.Data)) {
		return nil
	}
	return p.Opaque.Data
}

// demandsSignatures reports whether a Gemini model refuses unsigned calls of the current turn.
func demandsSignatures(model string) bool { return signing.MatchString(model) }

var signing = regexp.MustCompile(`gemini-([3-9]|[1-9][0-9])`)

// unsealed refuses encrypted reasoning that this server did not write.
func unsealed(req *llm.Request) *apiError {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p, ok := p.(llm.Reasoning); ok && p.Opaque != nil {
				var item struct {
					ID        string `json:"id"`
					Encrypted string `json:"encrypted_content"`
				}
				json.Unmarshal(p.Opaque.Data, &item)
				if _, ok := unseal(item.Encrypted); !ok && item.Encrypted != "" {
					return &apiError{Status: 400, Code: "invalid_encrypted_content",
						Message: "The encrypted content for item " + item.ID + " could not be verified."}
				}
			}
		}
	}
	return nil
}

// contained stores a container that a reply names.
func (s *Simulator) contained(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers == nil {
		s.containers = map[string]bool{}
	}
	s.containers[id] = true
}

// uncontained refuses a container that no reply named.
func (s *Simulator) uncontained(body []byte) *apiError {
	var w struct{ Container string }
	if json.Unmarshal(body, &w) != nil || w.Container == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[w.Container] {
		return nil
	}
	return &apiError{Status: 400, Message: "container: " + w.Container + " was not found, or has expired"}
}

// binding matches the names of the Anthropic models that bind thinking to what stands before it.
var binding = regexp.MustCompile(`claude-((fable|mythos)-5-[1-9]|(opus|sonnet|haiku)-5-[5-9])`)

// prefixes returns what the thinking of a reply at each place among the messages is bound to, in
// the form that a signature contains: a digest of the tools and the messages before it, without
// their thinking. It is nil for models that do not bind thinking, unless always is true.
func prefixes(req *llm.Request, always bool) []string {
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

// unsigned refuses changed thinking, and thinking that is bound to other messages. prefixes is what
// the reply at each place is bound to, or nil.
func unsigned(req *llm.Request, prefixes []string) *apiError {
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
				text, ok := signs(block.Signature)
				text, bound, isBound := strings.Cut(text, "\x00")
				if isBound && prefixes != nil && "\x00"+bound != prefixes[i] {
					return &apiError{Status: 400, Message: fmt.Sprintf("messages.%d: the `thinking` block is bound to a different conversation", i)}
				}
				if !ok || block.Thinking != "" && block.Thinking != text {
					return &apiError{Status: 400, Message: fmt.Sprintf("messages.%d: Invalid `signature` in `thinking` block", i)}
				}
			case "compaction":
				_, ok := unseal(block.Content)
				if block.Signature != "" {
					signed, _ := signs(block.Signature)
					ok = signed == block.Content
				}
				if !ok {
					return &apiError{Status: 400, Message: fmt.Sprintf("messages.%d: the `compaction` block was changed", i)}
				}
			case "redacted_thinking":
				if _, ok := signs(block.Data); !ok {
					return &apiError{Status: 400, Message: fmt.Sprintf("messages.%d: Invalid `data` in `redacted_thinking` block", i)}
				}
			}
		}
	}
	return nil
}

// corrupted refuses signatures that do not belong to their part. A documented placeholder replaces
// the signature of a call that another model made.
func corrupted(req *llm.Request) *apiError {
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
			var part fields
			json.Unmarshal(own.Data, &part)
			signature := part.text("thoughtSignature")
			if signature == "" || placeholder(signature) {
				continue
			}
			if got, ok := signs(signature); !ok || got != want && !impossible(got) {
				return &apiError{Status: 400, Message: fmt.Sprintf("Corrupted thought signature (turn %d).", i)}
			}
		}
	}
	return nil
}

// impossible reports whether a signature belongs to a call with a name that no function can have. A
// client must write it another way.
func impossible(signed string) bool {
	name, ok := strings.CutPrefix(signed, "call ")
	return ok && !functionName.fits(name)
}

var functionName = nameForm{regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), 64}

// nameForm is the form of a name. A pattern with a large count takes long to compile, which every
// program that imports this package would do at its start.
type nameForm struct {
	pattern *regexp.Regexp
	longest int
}

func (n nameForm) fits(s string) bool { return len(s) <= n.longest && n.pattern.MatchString(s) }

func placeholder(signature string) bool {
	if b, err := base64.StdEncoding.DecodeString(signature); err == nil {
		if placeholder(string(b)) {
			return true
		}
	}
	return signature == "skip_thought_signature_validator" || signature == "context_engineering_is_the_way_to_go"
}
