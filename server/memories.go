package server

// memories.go: the endpoints of what agents remember of the client's user (tools/remember).

import (
	"errors"
	"net/http"

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
	_, p, err := c.page()
	if err != nil {
		return err
	}
	out := Memories{Memories: []store.Memory{}}
	if c.s.o.Memories != nil {
		list, err := c.s.o.Memories.Memories(c.ctx(), c.client.scope(), p)
		if err != nil {
			return err
		}
		out.Memories = append(out.Memories, list...)
		if len(list) == p.Size() {
			out.After = list[len(list)-1].ID
		}
	}
	return c.write(http.StatusOK, out)
}

// memory returns the memory of the client that the path names.
func (c *call) memory() (store.Memory, error) {
	id := c.r.PathValue("id")
	if err := store.CheckID(id); err != nil {
		return store.Memory{}, badRequest(err.Error(), "")
	}
	if c.s.o.Memories == nil {
		return store.Memory{}, fault("not_found", "the server has no memories", "")
	}
	return c.s.o.Memories.Memory(c.ctx(), c.client.scope(), id)
}

// confirm handles POST /v1/memories/{id}/confirm.
func (c *call) confirm() error {
	var in Confirm
	if err := c.read(&in); err != nil {
		return err
	}
	m, err := c.memory()
	if err != nil {
		return err
	}
	m.Source.Unconfirmed, m.Source.Always = false, in.Always || m.Source.Always
	m, _, err = c.s.o.Memories.AddMemory(c.ctx(), c.client.scope(), m)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, m)
}

// forget handles DELETE /v1/memories/{id}.
func (c *call) forget() error {
	m, err := c.memory()
	if err == nil {
		err = c.s.o.Memories.ForgetMemory(c.ctx(), c.client.scope(), m.ID)
	}
	if err != nil {
		return err
	}
	c.s.hub.compact()
	return c.write(http.StatusOK, Forgotten{[]string{m.ID}})
}

// forgetRun handles DELETE /v1/memories?run=RUN.
func (c *call) forgetRun() error {
	q, err := c.params("run")
	if err != nil {
		return err
	}
	run := q.Get("run")
	out := Forgotten{[]string{}}
	if run == "" {
		return badRequest("the query has no run", "?run=RUN forgets what came of a run")
	}
	p := store.Page{Limit: 1000}
	for more := c.s.o.Memories != nil; more; {
		list, err := c.s.o.Memories.Memories(c.ctx(), c.client.scope(), p)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Source.Run != run {
				continue
			}
			err := c.s.o.Memories.ForgetMemory(c.ctx(), c.client.scope(), m.ID)
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
		c.s.hub.compact()
	}
	return c.write(http.StatusOK, out)
}
