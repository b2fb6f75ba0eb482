// Package show turns the events of a run into lines of a terminal.
//
//	events ──▶ View ──▶ permanent lines, each printed once ──▶ Printer (plain lines)
//	                └─▶ live lines, repainted ──▶ the console of package tui
//
// It needs no terminal and no agent file, so that a small program can show a run: see
// cmd/pawl/demo. Package markdown formats the text of the model.
package show
