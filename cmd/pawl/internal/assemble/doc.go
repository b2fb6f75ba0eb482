// Package assemble builds what a command runs from the command line: an agent from flags and a
// file, a durable run from a database, a thread from its messages.
//
//	AgentFlags + FILE.yaml ──▶ Setup{Agent, Tools, Secrets, DB} ──▶ Follow ──▶ PrintEnd, Ended
//	StoreFlags             ──▶ Journal (durable runs), Thread (conversations)
//	SettleFlags            ──▶ decisions on open calls
//
// The commands embed the flag structs. Apply writes the given flags over an agent from a file; the
// file flags.txt of package cli names the key of each flag. Setup hides secrets in all output and
// in saved files.
//
// The package does not use a terminal. Package tui sets Setup.Ask and Setup.Asks if there is a
// person to answer.
package assemble
