package server

// stored_response.go: GET and DELETE /v1/responses/{id}: a response that is read from the journal.

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// responseID returns the ID of a response: its run, and the number of the run's replies in earlier
// responses.
func responseID(run string, skip int) string {
	if skip == 0 {
		return run
	}
	return run + "." + strconv.Itoa(skip)
}

// runOfResponse returns the run of a response and the number of replies before it.
func runOfResponse(id string) (run string, skip int) {
	run, n, _ := strings.Cut(id, ".")
	skip, _ = strconv.Atoi(n) // an invalid number is 0
	return run, skip
}

// showResponse handles GET /v1/responses/{id}.
func (c *call) showResponse() error {
	id := c.r.PathValue("id")
	head, skip, err := c.responseRun(id)
	if err != nil {
		return err
	}
	x, d, err := c.storedRun(head.ID)
	if err != nil {
		return err
	}
	out, ok := turnOf(x, d, head.ID, skip)
	if !ok || id != responseID(head.ID, skip) {
		return fault("not_found", "there is no response "+id, "")
	}
	v := &response{id: id, agent: head.Agent, created: head.Created, store: d == nil || !d.Forget}
	m := v.whole(out)
	switch {
	case len(out.calls) > 0:
	case head.State == store.JournalFailed:
		m["status"], m["error"] = "failed", object{"code": "model_failed", "message": cmp.Or(endOf(x).Error, "the run failed")}
	case head.State == store.JournalOver && endOf(x).Stop == pawl.StopCancelled:
		m["status"] = "cancelled"
	case head.State == store.JournalOver && endOf(x).Stop == pawl.StopLimit:
		m["status"] = "incomplete"
		m["incomplete_details"] = object{"reason": "max_output_tokens"}
	case head.State == store.JournalOver && endOf(x).Stop != pawl.StopAnswer && endOf(x).Stop != pawl.StopFinished:
		m["status"], m["error"] = "failed", object{"code": "model_failed", "message": cmp.Or(endOf(x).Cause, string(endOf(x).Stop))}
	case head.State != store.JournalOver:
		m["status"] = "in_progress"
	}
	return c.write(http.StatusOK, m)
}

// storedRun returns the stored run of a client of OpenAI's API, and the client's additions to its
// agent.
func (c *call) storedRun(run string) (*durable.Export, *dress, error) {
	x, err := c.s.engine.Export(c.ctx(), run)
	if err != nil {
		return nil, nil, err
	}
	d, err := c.s.dressOf(c.ctx(), place{c.client.scope(), run})
	return x, d, err
}

// item returns an item of a response. A client refers to it by its ID instead of sending it again.
func (c *call) item(id string) (inputItem, error) {
	none := fault("not_found", "there is no item "+strconv.Quote(id), "send the item itself; with store: false clients do")
	name, isMessage := strings.CutPrefix(id, "msg_")
	run, skip := runOfResponse("resp_" + name)
	if !isMessage {
		id = "call_" + strings.TrimPrefix(id, "fc_")
		run = runOf(id)
	}
	if store.CheckID(run) != nil {
		return inputItem{}, none
	}
	x, d, err := c.storedRun(run)
	if err != nil {
		return inputItem{}, none
	}
	if out, ok := turnOf(x, d, run, skip); isMessage && ok && id == messageID(responseID(run, skip)) && out.text != "" {
		text, err := json.Marshal(out.text)
		return inputItem{Type: "message", Role: "assistant", Content: text}, err
	}
	for _, r := range x.Replies {
		for i, call := range r.Response.Message.Calls() {
			if !isMessage && d.has(call) && id == callID(run, callKey(r.Key, i)) {
				return inputItem{Type: "function_call", CallID: id, Name: call.Name, Arguments: string(call.Args)}, nil
			}
		}
	}
	return inputItem{}, none
}

// has reports whether the client executes a call. d may be nil.
func (d *dress) has(c llm.ToolCall) bool {
	return d != nil && slices.ContainsFunc(d.Tools, func(t clientTool) bool { return t.Name == c.Name })
}

// start returns the Result and the messages that a run starts with. before is a conversation that
// the server stored, and msgs follow it. Only recorded calls may be executed: open calls of before
// stay open. Open calls of msgs stay open if all are calls of the client's tools, which the run
// returns to the client.
func (d *dress) start(before, msgs []llm.Message) (*pawl.Result, []llm.Message) {
	all := append(slices.Clip(before), msgs...)
	repaired, _ := llm.Repair(all) // calls get their final IDs
	open := (&pawl.Result{Messages: repaired}).Calls()
	switch {
	case len(open) > 0 && !slices.ContainsFunc(open, func(c llm.ToolCall) bool { return !d.has(c) }):
		return &pawl.Result{Messages: repaired}, nil
	case len((&pawl.Result{Messages: before}).Calls()) > 0:
		return &pawl.Result{Messages: before}, msgs
	}
	return nil, all
}

// callKey returns the key of call i of the reply to a request: run/1/0 for the first call of
// run/0/model.
func callKey(request llm.Key, i int) llm.Key {
	run, n, _ := strings.Cut(strings.TrimSuffix(string(request), "/model"), "/")
	step, _ := strconv.Atoi(n) // a key of the run itself; otherwise no call is found
	return llm.Key(run + "/" + strconv.Itoa(step+1) + "/" + strconv.Itoa(i))
}

// responseRun finds the run of a response.
func (c *call) responseRun(id string) (store.JournalRun, int, error) {
	run, skip := runOfResponse(id)
	if !strings.HasPrefix(run, "resp_") || store.CheckID(run) != nil {
		return store.JournalRun{}, 0, fault("not_found", "there is no response "+strconv.Quote(id), "")
	}
	head, err := c.s.o.Journal.JournalRun(c.ctx(), c.client.scope(), run)
	return head, skip, err
}

func endOf(x *durable.Export) durable.ExportedEnd {
	if x.End == nil {
		return durable.ExportedEnd{}
	}
	return *x.End
}

// turnOf returns the part of a run that one response contains: the replies after the first skip
// ones, up to the first reply with calls for the client. ok means that a response begins there.
func turnOf(x *durable.Export, d *dress, run string, skip int) (out reply, ok bool) {
	ok = skip == 0
	out.finish = "stop"
	var texts []string
	n := 0
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
			if n <= skip {
				ok = ok || n == skip && slices.ContainsFunc(r.Response.Message.Calls(), d.has)
				continue
			}
		} else if n < skip {
			continue
		}
		out.usage.Add(r.Response.Usage)
		if strings.Count(string(r.Key), "/") != 2 { // a reply of a nested agent
			continue
		}
		if text := r.Response.Message.Text(); text != "" {
			texts = append(texts, text)
		}
		out.finish = finishOf(r.Response.Finish)
		for i, call := range r.Response.Message.Calls() {
			if d.has(call) {
				call.ID = callID(run, callKey(r.Key, i))
				out.calls = append(out.calls, call)
			}
		}
		if len(out.calls) > 0 {
			break
		}
	}
	out.text = strings.Join(texts, "\n\n")
	if out.text == "" && len(out.calls) == 0 {
		out.text = answerOf(x)
	}
	return out, ok && (skip == 0 || n > skip)
}

// deleteResponse handles DELETE /v1/responses/{id}.
func (c *call) deleteResponse() error {
	id := c.r.PathValue("id")
	head, _, err := c.responseRun(id)
	if err != nil {
		return err
	}
	if err := c.erase(head); err != nil {
		return err
	}
	return c.write(http.StatusOK, object{"id": id, "object": "response", "deleted": true})
}

// replies counts the replies of the run itself, without nested agents.
func replies(x *durable.Export) (n int) {
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
		}
	}
	return n
}
