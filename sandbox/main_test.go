package sandbox_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/test/soak"
)

func TestMain(m *testing.M) {
	soak.Waits(4)
	goleak.VerifyTestMain(m)
}
