//go:build !unix

package procgroup

import "os/exec"

func lead(*exec.Cmd) {}

func kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
