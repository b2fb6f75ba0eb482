//go:build !unix

package mcp

import "os/exec"

// This system has no process groups: only the program itself is ended.
func group(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
