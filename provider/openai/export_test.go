package openai

import "github.com/pawl-go/pawl/provider/internal/wire"

// Unchecked lets m accept streams whose statements differ. It is the negative control of the tests
// of lost events.
func Unchecked(m *Model) *Model {
	m.client.Decoder = func(out *wire.Emitter) wire.Decoder {
		out.Unchecked = true
		return m.decode(out)
	}
	return m
}

// The tables of the words that end replies, which a test compares with the official SDK.
var (
	FinishReasons     = finishReasons
	Statuses          = statuses
	IncompleteReasons = incompleteReasons
)
