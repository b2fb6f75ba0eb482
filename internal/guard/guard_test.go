package guard_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl/internal/guard"
)

func TestCall(t *testing.T) {
	ran := false
	if err := guard.Call(func() { ran = true }); err != nil || !ran {
		t.Errorf("got %v, ran %t", err, ran)
	}
	if err := guard.Call(func() { panic(errors.New("boom")) }); err == nil || err.Error() != "panic: boom" {
		t.Errorf("got %v", err)
	}
}
