package openai

// models.go: the agents as models.

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/server/internal/turns"
)

// model is an agent in the form of OpenAI's models and of Anthropic's, whose address is the same,
// with the members that chat programs show.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Window      int    `json:"context_length,omitzero"`

	// Anthropic's members
	Type        string    `json:"type"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// models handles GET /v1/models and GET /v1/models/{model}.
func (c *call) models() error {
	if id := c.Request.PathValue("model"); id != "" {
		name := id
		if base, isSide := strings.CutSuffix(id, turns.SideName); isSide && c.Runs.TakesSide(base) {
			name = base
		}
		a, err := c.Runs.Agent(name)
		if err != nil {
			return err
		}

		// NAME means the newest NAME@VERSION, as in a request, and the answer has the name that was
		// asked for.
		m := c.modelOf(a)
		m.ID = id
		return c.Write(http.StatusOK, m)
	}

	list := []model{}
	for _, a := range c.Runs.Agents() {
		m := c.modelOf(a)
		list = append(list, m)
		if c.Runs.TakesSide(a.Name) { // listed, because programs let one choose from the list
			m.ID += turns.SideName
			m.Name += " (titles and tags)"
			m.DisplayName = m.Name
			list = append(list, m)
		}
	}
	return c.Write(http.StatusOK, object{
		"object":   "list",
		"data":     list,
		"has_more": false,
		"first_id": list[0].ID,
		"last_id":  list[len(list)-1].ID,
	})
}

// modelOf returns an agent as a model.
func (c *call) modelOf(a *pawl.Agent) model {
	about := c.About[a.Name]
	name := cmp.Or(about.Title, a.Name)
	began := c.Runs.Started()
	return model{
		ID:          a.Name,
		Object:      "model",
		Created:     began.Unix(),
		OwnedBy:     "pawl",
		Name:        name,
		Description: about.Description,
		Window:      about.Window,
		Type:        "model",
		DisplayName: name,
		CreatedAt:   began.UTC(),
	}
}
