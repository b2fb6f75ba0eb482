// Package origin says where a value of a conversation comes from, and whether the user stands
// behind it. It reads the messages of a conversation into an Index, and what it needs of a tool
// into a Conduct. Index.Judge then says why a call needs a question. The package knows nothing of
// approvals, modes and middleware: package policy decides with its answers.
package origin
