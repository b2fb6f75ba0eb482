// Package cli holds what all commands of pawl share: the System that a command runs in, failures
// with their exit status and hint, and the plain forms of texts, times and tables.
//
//	main ──▶ System{In, Out, Err, Env} ──▶ a command's Run ──▶ error ──▶ Report ──▶ exit status
//
// A command returns an error and never exits. Fail, Usage and Silent make errors that carry an exit
// status; Failed derives the status from the error of a run; Report prints the error and its hint.
//
// Text of a model, a tool or a provider reaches the terminal only through Visible and Line, so no
// control character does.
package cli
