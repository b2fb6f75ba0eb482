package runs

import (
	"github.com/pawl-go/pawl/llm"
)

// System adds to the system prompt.
func (in *Asked) System(parts []llm.Part) {
	if in.Dress.System != "" {
		in.Dress.System += "\n\n"
	}
	in.Dress.System += llm.Message{Parts: parts}.Text()
}

// Join adds parts to the last message if it has that role: to the results or the items of the same
// reply. Otherwise they are a message.
func (in *Asked) Join(role llm.Role, parts ...llm.Part) {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == role {
		in.Messages[n-1].Parts = append(in.Messages[n-1].Parts, parts...)
		return
	}
	in.Messages = append(in.Messages, llm.Message{Role: role, Parts: parts})
}
