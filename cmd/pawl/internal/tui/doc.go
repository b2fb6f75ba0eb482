// Package tui shows runs to a person and asks for approvals: in place on a terminal, or line by
// line.
//
//	events ──▶ Display ──▶ console (live view of show, editor, approval cards) on a terminal
//	                  └──▶ show.Printer (the same lines, once they are final) elsewhere
//	calls that need an approval ──▶ Asker ──▶ a card on the console, or a question line by line
//
// It holds the command chat, which is a conversation on either of them, and DurableRun, which shows
// a run that is stored step by step.
package tui
