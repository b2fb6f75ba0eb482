package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/answertest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/api"
)

// Answers over HTTP have the outcomes of the table. The server begins a call as soon as it accepts
// its approval.
func TestAnswerTable(t *testing.T) {
	token := func(user string) string { return "the-token-of-" + user }
	answertest.Play(t, "HTTP", func(t *testing.T, n int, within time.Duration) (all []*answertest.Run) {
		var agents []*pawl.Agent
		var tills []*answertest.Till
		for i := range n {
			tills = append(tills, answertest.NewTill(t))
			agents = append(agents, tills[i].Agent(5+i, within))
		}
		v := serve(t, func(o *options) {
			o.Agents = agents
			for user, approves := range map[string][]string{"anna": nil, answertest.Stranger: nil, answertest.Approver: {"*"}} {
				o.Access.Tokens = append(o.Access.Tokens, api.Token{
					Name: user, Token: token(user), User: user, Tenant: "acme",
					Scopes: []api.Scope{api.ScopeAll}, Approves: approves})
			}
		})
		v.token = token("anna")
		for i, a := range agents {
			var run api.Run
			v.do("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","agent":%q,"input":"pay","wait":true}`, i, a.Name), 201, &run)
			if len(run.Pending) != 1 {
				t.Fatalf("got %+v", run)
			}
			all = append(all, &answertest.Run{Question: run.Pending[0], Till: tills[i],
				Answer: func(to answertest.To, d llm.Decision) string {
					path, user := "/v1/runs/r"+fmt.Sprint(i), "anna"
					if to.Lost {
						path += "-lost"
					}
					if path += map[bool]string{true: "/approve", false: "/deny"}[d.Approve]; to.User != "" {
						path, user = path+"?user=anna", to.User
					}
					verdict := api.Verdict{Key: d.Key, Digest: d.Digest, Args: d.Args}
					return answerOver(t, v, path, token(user), verdict)
				},
				Begin: func() { <-tills[i].Begun },
				End: sync.OnceValue(func() int {
					tills[i].Let()
					for run.State = ""; run.State != "waiting" && run.State != "over"; {
						run = api.Run{}
						v.do("POST", "/v1/runs", fmt.Sprintf(`{"id":"r%d","wait":true}`, i), 200, &run)
					}
					return len(run.Pending)
				})})
		}
		return all
	})
}

// answerOver sends an answer, and returns the word of its outcome.
func answerOver(t *testing.T, v *serving, path, token string, verdict api.Verdict) string {
	body, err := json.Marshal(verdict)
	if err != nil {
		return err.Error()
	}
	req := request(t, "POST", v.url+path, string(body))
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := v.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err.Error()
	case res.StatusCode == http.StatusOK:
		return answertest.Taken
	}
	return answertest.WordOf(strings.TrimSpace(string(b)))
}
