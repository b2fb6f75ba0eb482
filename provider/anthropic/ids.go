package anthropic

import (
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/provider/internal/wire"
)

// callIDs maps the ids of calls to ids that the API accepts: at most 64 letters, digits, _ and -,
// each once in a conversation. Other providers use other forms, and some repeat ids in each reply.
// Such ids are replaced by a hash, the same for the call and its result, and different for
// different ids. Anthropic's own ids do not change.
type callIDs struct {
	seen map[string]int // how often another provider's id named a call
}

func (x *callIDs) ofCall(id string) string {
	if strings.HasPrefix(id, "toolu_") {
		return fitting(id, 0)
	}
	if x.seen == nil {
		x.seen = map[string]int{}
	}
	n := x.seen[id]
	x.seen[id] = n + 1
	return fitting(id, n)
}

// ofResult returns the id of the last call with that id.
func (x *callIDs) ofResult(id string) string { return fitting(id, max(0, x.seen[id]-1)) }

// fitting returns the id of the n-th call with that id, counted from 0.
func fitting(id string, n int) string {
	if n == 0 && fits(id) {
		return id
	}
	if n > 0 {
		id += "#" + strconv.Itoa(n)
	}
	return "call_" + strconv.FormatUint(wire.Hash(id), 36)
}

func fits(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, wire.Alphanumeric+"_-") == ""
}
