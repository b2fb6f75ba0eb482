package model

import (
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/script"
)

// Conversation sends replies back in requests: the model behind must see the same content.
func Conversation[TT mutant.T[TT]](t TT, open Opener[TT]) {
	behind := script.New(
		script.Together(script.Think("First both."), script.Say("I look. "), script.Call("look", `{"at":"a"}`), script.Call("find", `{"at":"b"}`)),
		script.Together(script.Think("Once more."), script.Call("look", `{"at":"c"}`)),
		script.Func(func(req *llm.Request) script.Turn { return script.Say("There is " + script.Results(req)[0].Text()) }),
	)
	for _, whole := range []bool{false, true} {
		m := open(t, behind)
		req := Question()
		req.Whole = whole
		for i := range 3 {
			resp, err := Streamed(t, m, req)
			if err != nil {
				t.Fatalf("whole %t, reply %d: %v", whole, i+1, err)
			}
			req.Messages = append(req.Messages, resp.Message)
			if results := Answer(resp.Message); results != nil {
				req.Messages = append(req.Messages, *results)
			} else if got, want := resp.Message.Text(), `There is look of {"at":"c"}`; got != want {
				t.Errorf("whole %t: got the answer %q, want %q", whole, got, want)
			}
		}
	}
}
