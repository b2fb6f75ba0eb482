package server

// memories.go: the endpoints of what agents remember.

import (
	"errors"
	"net/http"

	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// memories handles GET /v1/memories.
func (c *call) memories() error {
	_, p, err := c.Page()
	if err != nil {
		return err
	}
	out := api.Memories{Memories: []store.Memory{}}
	if c.server.options.Memories != nil {
		list, err := c.server.options.Memories.Memories(c.Context(), c.Client.Scope, p)
		if err != nil {
			return err
		}
		out.Memories = append(out.Memories, list...)
		if len(list) == p.Size() {
			out.After = list[len(list)-1].ID
		}
	}
	return c.Write(http.StatusOK, out)
}

// memory returns the memory of the client that the path names.
func (c *call) memory() (store.Memory, error) {
	id := c.Request.PathValue("id")
	if err := store.CheckID(id); err != nil {
		return store.Memory{}, runs.BadRequest(err.Error(), "")
	}
	if c.server.options.Memories == nil {
		return store.Memory{}, runs.Fault("not_found", "the server has no memories", "")
	}
	return c.server.options.Memories.Memory(c.Context(), c.Client.Scope, id)
}

// confirm handles POST /v1/memories/{id}/confirm.
func (c *call) confirm() error {
	var in api.Confirm
	if err := c.Read(&in); err != nil {
		return err
	}
	m, err := c.memory()
	if err != nil {
		return err
	}
	m.Source.Unconfirmed = false
	m.Source.Always = m.Source.Always || in.Always
	m, _, err = c.server.options.Memories.AddMemory(c.Context(), c.Client.Scope, m)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, m)
}

// forget handles DELETE /v1/memories/{id}.
func (c *call) forget() error {
	m, err := c.memory()
	if err == nil {
		err = c.server.options.Memories.ForgetMemory(c.Context(), c.Client.Scope, m.ID)
	}
	if err != nil {
		return err
	}
	c.Runs.Compact()
	return c.Write(http.StatusOK, api.Forgotten{Forgotten: []string{m.ID}})
}

// forgetRun handles DELETE /v1/memories?run=RUN.
func (c *call) forgetRun() error {
	q, err := c.Params("run")
	if err != nil {
		return err
	}
	run := q.Get("run")
	if run == "" {
		return runs.BadRequest("the query has no run", "?run=RUN forgets what came of a run")
	}

	out := api.Forgotten{Forgotten: []string{}}
	if c.server.options.Memories != nil {
		ids, err := c.forgetAllOf(run)
		if err != nil {
			return err
		}
		out.Forgotten = append(out.Forgotten, ids...)
	}
	if len(out.Forgotten) > 0 {
		c.Runs.Compact()
	}
	return c.Write(http.StatusOK, out)
}

// forgetAllOf forgets the memories that came of a run, and returns their IDs.
func (c *call) forgetAllOf(run string) (ids []string, err error) {
	memories := c.server.options.Memories
	for p := (store.Page{Limit: 1000}); ; {
		list, err := memories.Memories(c.Context(), c.Client.Scope, p)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.Source.Run != run {
				continue
			}
			err := memories.ForgetMemory(c.Context(), c.Client.Scope, m.ID)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			ids = append(ids, m.ID)
		}

		if len(list) < p.Limit {
			return ids, nil
		}
		p.After = list[len(list)-1].ID
	}
}
