package server

import (
	"errors"
	"net/http"

	"github.com/pawl-go/pawl/server/internal/runs"
	"github.com/pawl-go/pawl/store"
)

// Memories is a page of memories.
type Memories struct {
	Memories []store.Memory `json:"memories"`
	After    string         `json:"after,omitzero"`
}

// Confirm is the yes of a person to a memory.
type Confirm struct {
	Always bool `json:"always,omitzero"`
}

// Forgotten names the memories that were deleted.
type Forgotten struct {
	Forgotten []string `json:"forgotten"`
}

// memories handles GET /v1/memories.
func (c *call) memories() error {
	_, p, err := c.Page()
	if err != nil {
		return err
	}
	out := Memories{Memories: []store.Memory{}}
	if c.S.O.Memories != nil {
		list, err := c.S.O.Memories.Memories(c.Ctx(), c.Client.Scope(), p)
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
	id := c.R.PathValue("id")
	if err := store.CheckID(id); err != nil {
		return store.Memory{}, runs.BadRequest(err.Error(), "")
	}
	if c.S.O.Memories == nil {
		return store.Memory{}, runs.Fault("not_found", "the server has no memories", "")
	}
	return c.S.O.Memories.Memory(c.Ctx(), c.Client.Scope(), id)
}

// confirm handles POST /v1/memories/{id}/confirm.
func (c *call) confirm() error {
	var in Confirm
	if err := c.Read(&in); err != nil {
		return err
	}
	m, err := c.memory()
	if err != nil {
		return err
	}
	m.Source.Unconfirmed, m.Source.Always = false, in.Always || m.Source.Always
	m, _, err = c.S.O.Memories.AddMemory(c.Ctx(), c.Client.Scope(), m)
	if err != nil {
		return err
	}
	return c.Write(http.StatusOK, m)
}

// forget handles DELETE /v1/memories/{id}.
func (c *call) forget() error {
	m, err := c.memory()
	if err == nil {
		err = c.S.O.Memories.ForgetMemory(c.Ctx(), c.Client.Scope(), m.ID)
	}
	if err != nil {
		return err
	}
	c.S.Hub.Compact()
	return c.Write(http.StatusOK, Forgotten{[]string{m.ID}})
}

// forgetRun handles DELETE /v1/memories?run=RUN.
func (c *call) forgetRun() error {
	q, err := c.Params("run")
	if err != nil {
		return err
	}
	run := q.Get("run")
	out := Forgotten{[]string{}}
	if run == "" {
		return runs.BadRequest("the query has no run", "?run=RUN forgets what came of a run")
	}
	p := store.Page{Limit: 1000}
	for more := c.S.O.Memories != nil; more; {
		list, err := c.S.O.Memories.Memories(c.Ctx(), c.Client.Scope(), p)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Source.Run != run {
				continue
			}
			err := c.S.O.Memories.ForgetMemory(c.Ctx(), c.Client.Scope(), m.ID)
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
		c.S.Hub.Compact()
	}
	return c.Write(http.StatusOK, out)
}
