package server_test

import (
	"strings"
	"testing"
)

// An error about a member of the body has the name that the client wrote.
func TestErrorsNameTheMemberOfTheClient(t *testing.T) {
	v := serve(t, nil)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"model":"clerk","messages":[{"role":"user","content":"x"}],"temperature":"hot"}`,
			"the body: temperature: JSON"},
		{"/v1/responses", `{"model":"clerk","input":"x","top_p":[]}`, "the body: top_p: JSON"},
	} {
		status, reply := v.postJSONText(c.path, c.body)
		if status != 400 || !strings.Contains(reply, c.want) {
			t.Errorf("%s: %d %s, want %s", c.body, status, reply, c.want)
		}
	}
}
