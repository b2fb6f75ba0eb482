// Package fold renders a transcript whose old rounds are shortened. A round is a reply of the model
// and the results of its calls. Replies are numbered from 0; the reply to come has the next number.
//
//	transcript  instructions, task │ rounds < Folded │ rounds < Stubbed │ the rounds after them
//	sent        instructions, task │ one record      │ a stub a result  │ whole, or cut to a share
//
// The numbers Folded and Stubbed are fields of a Mark, the state of history.Window. Each reply ends
// with the Mark of its request, so the transcript alone says what every request contained. Rounds
// is a transcript by replies, and Rounds.View renders it in the state of a Mark. A Ledger writes
// the record. Weigh estimates sizes before a provider has counted them.
//
// The words of this package and of package history:
//
//	stub     a line in place of a result, with the id by which result_read finds the whole result
//	record   a message in place of the folded rounds: a list of what was read, written and said
//	repeat   a result whose content an equal call returned before; a line takes its place
//	cut      what is done to long results before they are sent for the first time
//	edit     a request that moves Folded or Stubbed; prompt caches miss once
//	room     the context window without the reserve for the reply
//
// The package asks no model, reads no clock, and decides nothing: package history decides. To read
// it, begin with rounds.go, mark.go and view.go. The other files can be skipped: ledger.go only
// writes text, and mark_v1.go reads an earlier form.
package fold
