// Package derivation says why the values of a call needed no question of a policy about the origin
// of values, such as policy.Flow: which text, result or record stands behind each of them.
// Execution of package pawl stores it with the call.
//
// Transcript.Check verifies it from the transcript alone. It shares no code with the policy that
// made the derivations, so that a fault there does not hide itself: it searches the texts anew,
// with rules of its own, which are simpler and in doubt stricter.
//
//	transcript, call, values ──▶ Check ──▶ nil, or the value whose ground does not hold
package derivation

// Value is a value of a call, and what stands behind it.
type Value struct {
	Arg    string `json:"arg,omitzero"`   // the name of the argument; "" with Clean
	Value  string `json:"value,omitzero"` // of the argument, or the address in it
	Ground Ground `json:"ground"`         // what stands behind it
	// Call is the ID of the call whose result has the value. "" means that a message has it.
	Call string `json:"call,omitzero"`
	// Name is what the user said of the ground: the text that names the record, the path or address
	// of the document, or the host; with Reached, what the call before it reached. "" means the
	// value itself.
	Name string `json:"name,omitzero"`
}

// Ground is what stands behind a value.
type Ground string

// The grounds of values.
const (
	Clean    Ground = "clean"    // only the user, the operator and trusted tools wrote anything
	User     Ground = "user"     // the words of the user or of the operator have the value
	Trusted  Ground = "trusted"  // the result of a trusted tool has it
	Write    Ground = "write"    // a write of this run returned it
	Record   Ground = "record"   // a record has it, which the user named
	Request  Ground = "request"  // a call with the user's words returned a record with it
	Found    Ground = "found"    // a record has it, and the change stays inside
	Document Ground = "document" // a document that the user named has it, and no other such value
	Host     Ground = "host"     // its host is the user's, or a trusted tool's
	Link     Ground = "link"     // the user asked for what is behind links
	Whole    Ground = "whole"    // a result has the whole address, before anything inside was read
	Party    Ground = "party"    // the user chose who gets the amount
	Reached  Ground = "reached"  // a call of this turn has reached it, and nothing final
	Outer    Ground = "outer"    // the conversation around the agent endorses it
)
