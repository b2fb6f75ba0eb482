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
	if c.s.o.Memories != nil {
		list, err := c.s.o.Memories.Memories(c.Context(), c.Client.Scope, p)
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
	if c.s.o.Memories == nil {
		return store.Memory{}, runs.Fault("not_found", "the server has no memories", "")
	}
	return c.s.o.Memories.Memory(c.Context(), c.Client.Scope, id)
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
	m, _, err = c.s.o.Memories.AddMemory(c.Context(), c.Client.Scope, m)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, m)
}

// forget handles DELETE /v1/memories/{id}.
func (c *call) forget() error {
	m, err := c.memory()
	if err == nil {
		err = c.s.o.Memories.ForgetMemory(c.Context(), c.Client.Scope, m.ID)
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
	out := api.Forgotten{Forgotten: []string{}}
	if run == "" {
		return runs.BadRequest("the query has no run", "?run=RUN forgets what came of a run")
	}
	p := store.Page{Limit: 1000}
	for more := c.s.o.Memories != nil; more; {
		list, err := c.s.o.Memories.Memories(c.Context(), c.Client.Scope, p)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Source.Run != run {
				continue
			}
			err := c.s.o.Memories.ForgetMemory(c.Context(), c.Client.Scope, m.ID)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			out.Forgotten = append(out.Forgotten, m.ID)
		}
		more = len(list) == p.Limit
		if more {
			p.After = list[len(list)-1].ID
		}
	}
	if len(out.Forgotten) > 0 {
		c.Runs.Compact()
	}
	return c.Write(http.StatusOK, out)
}
