package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
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

// ShowResponse handles GET /v1/responses/{id}.
func (c *call) ShowResponse() error {
	id := c.R.PathValue("id")
	head, skip, err := c.responseRun(id)
	if err != nil {
		return err
	}
	x, d, err := c.StoredRun(head.ID)
	if err != nil {
		return err
	}
	out, ok := turnOf(x, d, head.ID, skip)
	if !ok || id != responseID(head.ID, skip) {
		return runs.Fault("not_found", "there is no response "+id, "")
	}
	v := &response{id: id, agent: head.Agent, created: head.Created, store: d == nil || !d.Forget}
	m := v.whole(out)
	switch {
	case len(out.calls) > 0:
	case head.State == store.JournalFailed:
		m["status"], m["error"] = "failed", Object{"code": "model_failed", "message": cmp.Or(endOf(x).Error, "the run failed")}
	case head.State == store.JournalOver && endOf(x).Stop == pawl.StopCancelled:
		m["status"] = "cancelled"
	case head.State == store.JournalOver && endOf(x).Stop == pawl.StopLimit:
		m["status"] = "incomplete"
		m["incomplete_details"] = Object{"reason": "max_output_tokens"}
	case head.State == store.JournalOver && endOf(x).Stop != pawl.StopAnswer && endOf(x).Stop != pawl.StopFinished:
		m["status"], m["error"] = "failed", Object{"code": "model_failed", "message": cmp.Or(endOf(x).Cause, string(endOf(x).Stop))}
	case head.State != store.JournalOver:
		m["status"] = "in_progress"
	}
	return c.Write(http.StatusOK, m)
}

// item returns an item of a response. A client refers to it by its ID instead of sending it again.
func (c *call) item(id string) (inputItem, error) {
	none := runs.Fault("not_found", "there is no item "+strconv.Quote(id), "send the item itself; with store: false clients do")
	name, isMessage := strings.CutPrefix(id, "msg_")
	run, skip := runOfResponse("resp_" + name)
	if !isMessage {
		id = "call_" + strings.TrimPrefix(id, "fc_")
		run = runOf(id)
	}
	if store.CheckID(run) != nil {
		return inputItem{}, none
	}
	x, d, err := c.StoredRun(run)
	if err != nil {
		return inputItem{}, none
	}
	if out, ok := turnOf(x, d, run, skip); isMessage && ok && id == messageID(responseID(run, skip)) && out.text != "" {
		text, err := json.Marshal(out.text)
		return inputItem{Type: "message", Role: "assistant", Content: text}, err
	}
	for _, r := range x.Replies {
		for i, call := range r.Response.Message.Calls() {
			if !isMessage && d.Has(call) && id == callID(run, callKey(r.Key, i)) {
				return inputItem{Type: "function_call", CallID: id, Name: call.Name, Arguments: string(call.Args)}, nil
			}
		}
	}
	return inputItem{}, none
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
		return store.JournalRun{}, 0, runs.Fault("not_found", "there is no response "+strconv.Quote(id), "")
	}
	head, err := c.S.O.Journal.JournalRun(c.Ctx(), c.Client.Scope(), run)
	return head, skip, err
}

func endOf(x *journal.Export) journal.ExportedEnd {
	if x.End == nil {
		return journal.ExportedEnd{}
	}
	return *x.End
}

// turnOf returns the part of a run that one response contains: the replies after the first skip
// ones, up to the first reply with calls for the client. ok means that a response begins there.
func turnOf(x *journal.Export, d *runs.Dress, run string, skip int) (out reply, ok bool) {
	ok = skip == 0
	out.finish = "stop"
	var texts []string
	n := 0
	for _, r := range x.Replies {
		if strings.Count(string(r.Key), "/") == 2 {
			n++
			if n <= skip {
				ok = ok || n == skip && slices.ContainsFunc(r.Response.Message.Calls(), d.Has)
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
			if d.Has(call) {
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
		out.text = runs.AnswerOf(x)
	}
	return out, ok && (skip == 0 || n > skip)
}

// DeleteResponse handles DELETE /v1/responses/{id}.
func (c *call) DeleteResponse() error {
	id := c.R.PathValue("id")
	head, _, err := c.responseRun(id)
	if err != nil {
		return err
	}
	if err := c.Erase(head); err != nil {
		return err
	}
	return c.Write(http.StatusOK, Object{"id": id, "object": "response", "deleted": true})
}
