package summaries

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pawl-go/pawl/llm"
)

// Content returns the summary that a server wrote. ok is false if p is none.
func Content(p llm.Part) (content string, ok bool) {
	r, is := p.(llm.Reasoning)
	if !is || r.Opaque == nil {
		return "", false
	}
	var block struct {
		Type, Content string
		Encrypted     string `json:"encrypted_content"`
	}
	json.Unmarshal(r.Opaque.Data, &block)
	return cmp.Or(block.Content, block.Encrypted), block.Type == "compaction"
}

// Since returns the request as the server reads it: without what stands before the last
// summary, but for instructions. ok is false if there is no summary.
func Since(req *llm.Request) (_ *llm.Request, ok bool) {
	if req == nil {
		return req, false
	}
	for i, m := range slices.Backward(req.Messages) {
		if !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { _, ok := Content(p); return ok }) {
			continue
		}
		r := new(*req)
		r.Messages = append(Instructions(req), req.Messages[i:]...)
		return r, true
	}
	return req, false
}

// Instructions returns the instructions among the messages of a request.
func Instructions(req *llm.Request) []llm.Message {
	return slices.DeleteFunc(slices.Clone(req.Messages), func(m llm.Message) bool { return m.Role != llm.RoleSystem })
}
