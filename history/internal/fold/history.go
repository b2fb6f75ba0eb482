package fold

import (
	"github.com/pawl-go/pawl/llm"
)

// View is the part of a conversation that is sent.
type View struct {
	Messages []llm.Message
	Turn     int           // llm.Request.Turn, in messages
	Edited   int           // llm.Request.Edited, in messages
	Notices  []*llm.Notice // for the observers of the run
}

func Instructs(r llm.Role) bool { return r == llm.RoleSystem || r == llm.RoleDeveloper }
