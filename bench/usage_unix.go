//go:build unix

package main

import (
	"syscall"
	"time"
)

func usage() used {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return used{time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(u.Maxrss)}
}
