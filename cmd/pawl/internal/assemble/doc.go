// Package assemble builds what a command runs from the command line: an agent from flags and a
// file, a durable run from a database, a thread from its messages.
//
//	AgentFlags + FILE.yaml ──▶ Setup{Agent, Tools, Secrets, DB} ──▶ Follow ──▶ PrintEnd, Ended
//	StoreFlags             ──▶ Journal (durable runs), Thread (conversations)
//	SettleFlags            ──▶ decisions on open calls
//
// The flag structs are embedded by the commands. Their Over methods write what the flags set over
// an agent that a file describes. Setup hides secrets in everything that it shows or saves.
//
// The package does not know a terminal. Setup.Ask and Setup.Asks are set by package tui when a
// person is there to answer.
package assemble
