// Package guard keeps a panic in a goroutine from ending the process.
package guard

import "fmt"

// Call calls f and returns its panic as an error.
func Call(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	f()
	return nil
}
