package a2a

// card.go: the card of an agent.

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentname"
	"github.com/pawl-go/pawl/server/internal/web"
)

// card describes an agent, without its tools.
func (c call) card(a *pawl.Agent, o Options) *a2a.AgentCard {
	about := c.About[a.Name]
	title := cmp.Or(about.Title, a.Name)
	description := cmp.Or(about.Description, "The agent "+a.Name+".")
	server := strings.TrimSuffix(cmp.Or(o.URL, web.Base(c.Request)), "/")
	base := server + "/a2a/" + url.PathEscape(a.Name)
	name, version := agentname.Split(a.Name)

	card := &a2a.AgentCard{
		Name:        title,
		Description: description,
		Version:     cmp.Or(version, "1"),
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface(base, a2a.TransportProtocolJSONRPC),
			a2a.NewAgentInterface(base+"/rest", a2a.TransportProtocolHTTPJSON),
		},
		Capabilities:       a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:  []string{"text/plain", "application/json", "image/*"},
		DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{
			ID:          name,
			Name:        title,
			Description: description,
			Tags:        []string{"agent"},
		}},
	}
	if len(a.Output) > 0 {
		card.DefaultOutputModes = []string{"application/json"}
	}
	if o.Secured {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{"bearer": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer"}}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"bearer": {}}}
	}
	return card
}
