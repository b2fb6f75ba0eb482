package observe

import (
	"errors"
	"iter"
	"strings"

	"github.com/pawl-go/pawl"
)

// Void stands in the text of a run before a reply that begins again, because it broke off. What the
// reply said before is void.
const Void = "\n[The reply broke off. What it said is void; it begins again.]\n"

// Text returns the text of the replies of a run as it arrives, and a function for its end. text
// executes the run. end returns the Result and the error of the run, as pawl.Agent.Run does:
//
//	text, end := observe.Text(agent.Stream(ctx, msgs...))
//	for s := range text {
//		fmt.Print(s)
//	}
//	res, err := end()
//
// text contains the words of every reply, also words before calls, and no words of nested runs. A
// new line separates two replies. If a reply broke off and begins again, Void precedes it. If the
// range over text was left early, the run has ended, and end returns an error. If there was none,
// end executes the run. Neither function is safe for concurrent use.
func Text(stream iter.Seq2[pawl.Event, error]) (text iter.Seq[string], end func() (*pawl.Result, error)) {
	if stream == nil {
		stream = fails(errors.New("the stream is nil; pass what Stream returned"))
	}
	var res *pawl.Result
	var err error
	begun := false
	text = func(yield func(string) bool) {
		if begun {
			return
		}
		begun = true
		err = errors.New("the text of the run was not read to its end")
		step := 0 // of the last text; 0 means none
		void := false

		// Collect keeps the Result of a run, and this function has its texts on the way.
		res, err = pawl.Collect(func(event func(pawl.Event, error) bool) {
			for e, failed := range stream {
				own := failed == nil && !strings.Contains(string(e.Run), "/")
				void = void || own && e.Kind == pawl.EventTextRetracted
				if own && e.Kind == pawl.EventText {
					s := e.Text
					switch {
					case void && step == e.Step:
						s = Void + s
					case step != 0 && step != e.Step:
						s = "\n" + s
					}
					void = false
					step = e.Step
					if !yield(s) {
						event(pawl.Event{}, err)
						return
					}
				}
				if !event(e, failed) {
					return
				}
			}
		}, nil)
	}
	return text, func() (*pawl.Result, error) {
		// A caller who only wants the end has not executed the run yet.
		for range text { // unless it was read
		}
		return res, err
	}
}
