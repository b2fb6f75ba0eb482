// Package fold says what a transcript looks like when its first steps are folded into a record, and
// older results are one line each. Rounds are a transcript by replies, a Mark is the state that
// decides about it, a Ledger writes the record, and Rounds.View makes the messages that are sent.
// The package is pure: it asks no model, reads no clock, and decides nothing. Package history does.
package fold
