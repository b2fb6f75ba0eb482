package hostile

import "strings"

// Demand is a request of users of runtimes, or a trap that runtimes have fallen into. Behaviours
// refer to it.
type Demand struct {
	ID   string `json:"id"`
	Says string `json:"says"`
}

// Demands lists the demands of the Behaviours. T1.0 are the rows of a comparison of nine runtimes,
// D the most frequent requests of their users, IA and OA traps found in older runtimes and
// specifications.
func Demands() []Demand {
	var all []Demand
	for line := range strings.Lines(demands) {
		if id, says, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, Demand{id, says})
		}
	}
	return all
}

const demands = `
T1.0-1 An unknown tool is answered, and the run goes on.
T1.0-2 The model receives a tool's error.
T1.0-3 A good result stays although another call of the reply failed.
T1.0-4 A value outside of its list of choices stops the call.
T1.0-5 A missing field stops the call.
T1.0-6 Arguments that end too early are not completed by guessing.
T1.0-7 A call of a reply that reached its length limit does not run, even if it can be parsed.
T1.0-8 A panic in a tool costs one call, and its trace stays inside.
T1.0-9 Three hundred calls in one reply run a few at a time.
T1.0-10 Results stand in the order of the calls.
T1.0-11 A model that never stops is stopped, without any setting.

D1 What fails in a tool goes back to the model and does not end the run.
D2 A made-up or misspelt tool name can be recovered from.
D3 Bad arguments are repaired where that is safe, else rejected with the field's name.
D4 A schema that a provider cannot express still holds.
D5 One unusable schema does not take the other tools with it.
D6 A call that was broken off leaves no conversation that every provider refuses.
D7 Reasoning and its signatures go back with the calls they led to.
D8 Loops are bounded and noticed.
D9 A forced tool choice does not force for ever.
D10 A person can be asked, and the run continues with the answer.
D11 An approval covers one call with exactly its arguments, once.
D12 Trying again or resuming repeats no side effect.
D13 A run outlives its process.
D14 Streams of servers that are only nearly compatible are put together right, or not at all.
D15 A truncated call never runs.
D16 Ids of calls are made to fit, and stay distinct.
D17 Reads run together, writes in order.
D18 Starting a call early changes nothing else.
D19 A slow tool or server cannot hold the run.
D20 Siblings of a failed, cancelled or panicking call are left alone.
D21 A huge result is cut to something a model can take.
D22 Hundreds of tools can be offered.
D23 The same conversation is the same bytes.
D24 One budget covers the whole tree of calls.
D25 Calls that the caller answers mix with calls that run.
D26 Calls made by code inside a tool go the same way as the model's own.
D27 What goes on inside a tool can be seen from outside.
D28 Each call is reported with its input and its outcome.
D29 A run can be played again without a key, to the same end.
D30 Calls that arrive as text are found.

IA-T1 Tools have the shape that the API at hand wants: nested or flat.
IA-T2 Results name the call's own id, not the id of the item around it.
IA-T3 Reasoning items stay with the items that follow them.
IA-T4 A signature of a call goes back with that call.
IA-T5 There are as many answers as there were calls.
IA-T6 All results of a reply travel together, and come first.
IA-T7 Empty inputs and empty results stay objects and strings, and failures are flagged.
IA-T8 Forbidding calls does not take the tools out of the request.
IA-T9 A choice of none stays none on every wire.
IA-T10 A forced choice and thinking are not sent together where they exclude each other.
IA-T11 A forced choice is sent once.
IA-T12 Names that a provider does not take are mapped, and mapped back.
IA-T13 A tool without parameters is offered with an object all the same.
IA-T14 Keywords that a dialect does not know are left out of what is sent, and only there.
IA-T15 A reply that stops and calls, calls.
IA-T16 The reason that a reply gives for its end does not decide whether its calls run.
IA-T17 A completed response with calls is not done.
IA-T18 Reasons of one provider alone (a full window, a refusal) are understood.
IA-T19 Which result belongs to which call is known from the history, also after a restart.
IA-T21 The key is not part of the address.
IA-T22 Calls of one reply stay one reply, text before them stays before them.
IA-T23 Thoughts are kept byte for byte, in order.
IA-T24 A step that stops early leaves a result for each of its calls.
IA-T27 Words that come from outside do not get between a call and its result.
IA-T30 The fake stands at the wire, where a wrong history shows.
IA-T31 Arguments that cannot be read do not become an empty object.
IA-T32 No braces or quotes are added to what was cut.
IA-T33 All of the schema is checked, and the complaint stays short.
IA-T34 A refusal says what is wrong.
IA-T35 The answer to an unknown tool lists the tools that exist.
IA-T36 A call without its arguments is an error, not the end.
IA-T37 A list in place of an object is not taken for one.
IA-T38 Arguments that are repeated as text are dropped, sentences around them are kept.
IA-T39 Whole numbers keep all of their digits.
IA-T40 A refusal does not repeat the arguments with the secrets in them.
IA-T41 Success and failure are flags, not words.
IA-T42 None means none, not unlimited.
IA-T43 So many rounds are so many rounds: neither one more nor one less.
IA-T44 Running out of budget is not success.
IA-T45 There are limits without asking for them.
IA-T46 A corrected mistake does not fail the run.
IA-T48 A tool that ends the run lets its siblings finish, and leaves a record.
IA-T49 After a failed step the run does not go on.
IA-T50 What a failing step cost is counted.
IA-T51 A time limit holds in the middle of a step.
IA-T52 What a child uses is charged to its parent.
IA-T55 A call that was refused says so.
IA-T58 Polling is no loop; a loop of two is one.
IA-T60 Calls run together, but not without bound.
IA-T61 Calls that touch the same thing take turns.
IA-T62 Calling off ends running tools, waits for them, and marks the rest.
IA-T63 Cutting a text leaves whole characters and says that it cut.
IA-T64 A result of any size fits into memory and request.
IA-T65 Slow is not silent: pings count, and silence ends.
IA-T66 Streams are read with any line ending.
IA-T67 A call of many fragments is one call.
IA-T68 A call without arguments may come without a fragment of them.
IA-T69 Fragments are put together by what the server really sends: no index, no id, the same id twice.
IA-T70 A request is repeated before its first fragment only, and no tool with it.
IA-T71 The time to wait may be a date, and overload has more than one number.
IA-T72 A time-out of the server is tried again.
IA-T73 Tokens are not counted twice.
IA-T74 Figures that make no sense do no harm.
IA-T75 Figures that come in several events are not added up.
IA-T78 Tools keep their order.

OA-D1 Calls and results stay typed, with any text in them.
OA-D2 The task is part of every request.
OA-D3 Every call has one result, right after it, in order.
OA-D4 A huge result stays one result.
OA-D5 Calls above a limit are answered, not dropped.
OA-D6 What a failing tool had to say is kept.
OA-D7 A result may begin with the word error.
OA-D8 Malformed arguments do not run.
OA-D9 Required fields, choices and unknown keys are checked.
OA-D10 The answer to an unknown name offers the nearest.
OA-D11 One bad call does not cost the others their results.
OA-D12 No word in a text ends a run.
OA-D13 A limit of rounds is exact, and the model reads it.
OA-D14 The tool that ends a run is executed first.
OA-D15 Tool choice is a value, not a string passed on.
OA-D16 A run with a forced choice ends.
OA-D17 Equal calls are equal however they are written.
OA-D18 There are budgets besides rounds.
OA-D19 Text that is nearly a call does not run, and is not lost.
OA-D21 Inner calls share the run's slots without deadlock.
OA-D22 Cancelling means the same for one call and for many, and no request follows.
OA-D23 A panic is caught wherever it happens.
OA-D24 Conflicting calls are put in order.
OA-D25 Waiting for a person is not on the tool's clock.
OA-D26 A refusal holds when the model insists.
OA-D27 Approval is given to arguments, not to a name.
OA-D28 A run is resumed from what was stored.
OA-D29 Only what is safe to repeat is repeated.
OA-D34 A tool may have a name that providers refuse.
OA-D35 Schemas that refer to themselves are no reason to fail.
OA-D44 Inner calls are checked, bounded and approved like outer ones.
OA-D54 Requests are repeated with patience where that may help, and only there.
OA-D56 Events say which call they belong to.
OA-D58 An empty answer is noticed, not looped on.
OA-D59 What was done is on record when the next request fails.
OA-D60 Counters go on where they were.
`
