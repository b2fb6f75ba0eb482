// Package runs holds the commands about runs that outlive their process: runs, inbox, effects and
// schedules.
//
// Each command works on the journal of a database, or with --engine temporal on a Temporal cluster:
// see remote.
package runs
