package openai

// models.go: the agents as models.

import (
	"cmp"
	"net/http"
	"slices"
)

// model is an agent in the form of OpenAI's models, with the members that chat programs show.
type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Window      int    `json:"context_length,omitzero"`
}

// models handles GET /v1/models and GET /v1/models/{model}.
func (c *call) models() error {
	list := []model{}
	for _, a := range c.Runs.Agents() {
		about := c.About[a.Name]
		list = append(list, model{
			ID:          a.Name,
			Object:      "model",
			Created:     c.Runs.Started().Unix(),
			OwnedBy:     "pawl",
			Name:        cmp.Or(about.Title, a.Name),
			Description: about.Description,
			Window:      about.Window,
		})
	}

	id := c.Request.PathValue("model")
	if id == "" {
		return c.Write(http.StatusOK, object{"object": "list", "data": list})
	}
	i := slices.IndexFunc(list, func(m model) bool { return m.ID == id })
	if i < 0 {
		_, err := c.Runs.Agent(id)
		return err
	}
	return c.Write(http.StatusOK, list[i])
}
