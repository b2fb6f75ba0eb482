//go:build !unix

package mcp

import "os/exec"

// There are no process groups here: only the program itself is ended.
func group(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
