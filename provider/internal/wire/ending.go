package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Ending is what the word means with which a provider ends a reply.
type Ending byte

// The endings. The calls of a reply are executed only if it ends with Answered, with Calls, or, at
// servers whose words are not known in advance, with Unknown.
const (
	Unknown  Ending = iota // no table has the word
	Answered               // the reply is complete, with or without calls
	Calls                  // the reply is complete and has calls
	Full                   // cut, because the reply or the context window has its largest size
	Cut                    // cut for another reason
	Paused                 // the provider continues the reply when it is asked to
	Filtered               // the provider withholds the reply, or a part of it
	Unusable               // the provider refuses what the model wrote, or could not complete it
)

// Endings are the words with which an API ends a reply. A word without a row is Unknown.
type Endings map[string]Ending

// End is the word with which a reply says that it ended, and what the word means. A reply with the
// zero End has said nothing.
type End struct {
	Word   string
	Ending Ending
}

// Stated reports whether the reply has said how it ends.
func (e *End) Stated() bool { return e.Word != "" }

// State records that the reply says word, which means ending, and reports whether that counts. The
// first word counts, because what follows it is not part of the reply. But a reply that says once
// that it is not complete is not complete. "" says nothing.
func (e *End) State(word string, ending Ending) bool {
	overrules := e.Ending.complete() && !ending.complete()
	if word == "" || e.Stated() && !overrules {
		return false
	}
	e.Word = word
	e.Ending = ending
	return true
}

// complete reports whether no word says that the reply lacks something.
func (e Ending) complete() bool { return e == Unknown || e == Answered || e == Calls }

// finish returns the finish reason for an ending. A paused reply that is not continued is cut.
func (o *Emitter) finish(e Ending) llm.FinishReason {
	switch e {
	case Answered:
		return llm.FinishReasonStop
	case Calls:
		return llm.FinishReasonToolCalls
	case Filtered:
		return llm.FinishReasonContentFilter
	case Unusable:
		return llm.FinishReasonError
	case Unknown:
		if o.Lenient {
			return llm.FinishReasonOther
		}
	}
	return llm.FinishReasonLength
}

// FinishAs emits the last delta of a reply with this end. A word that the table of an API does not
// have may mean that the reply is not complete. So it counts as cut, and a notice names it, unless
// the Emitter is Lenient. A notice also names the words for replies that are cut, except for their
// size.
//
// What a server sends after that word is no part of the reply. A notice says that it was skipped.
func (o *Emitter) FinishAs(end End) error {
	word := end.Word
	e := end.Ending
	if o.Late {
		text := o.Provider + ": the server sent more after the finish reason " + strconv.Quote(word) + ", which was skipped"
		if err := o.NoteEnd(text, word); err != nil {
			return err
		}
	}

	text := ""
	switch {
	case e == Unknown && o.Lenient:
	case e == Unknown && word == "":
		text = "the reply does not say how it ended, so it counts as cut"
	case e == Unknown:
		text = "the reply ended with " + strconv.Quote(word) + ", which is no known reason, so it counts as cut"
	case e == Cut || e == Paused:
		text = "the reply is not complete: it ended with " + strconv.Quote(word)
	}

	// The notice comes before the last delta, because readers stop at that.
	if text != "" {
		if err := o.NoteEnd(o.Provider+": "+text, word); err != nil {
			return err
		}
	}
	return o.Finish(o.finish(e))
}

// NoteCacheMiss emits a notice that the provider could not use its cache, with its reason. Reasons
// end with _changed, or say context_compacted; other words say that the provider did not compare,
// and emit nothing.
func (o *Emitter) NoteCacheMiss(reason string, data []byte) error {
	if !strings.HasSuffix(reason, "_changed") && reason != "context_compacted" {
		return nil
	}
	text := o.Provider + ": the prompt cache was not used: " + reason
	return o.Send(llm.Delta{Notice: &llm.Notice{Code: "cache_miss", Text: text, Data: bytes.Clone(data)}})
}

// NoteEnd emits a notice about the word with which the reply ends.
func (o *Emitter) NoteEnd(text, word string) error {
	data := append(jsonscan.AppendString([]byte(`{"reason":`), word), '}')
	return o.Send(llm.Delta{Notice: &llm.Notice{Code: "finish", Text: text, Data: json.RawMessage(data)}})
}
