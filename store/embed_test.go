package store_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/store"
)

// fixed is an Embedder with a constant result.
type fixed [][]float32

func (fixed) Name() string { return "fixed" }

func (f fixed) Embed(context.Context, store.Use, []string) ([][]float32, error) { return f, nil }

func TestEmbedChecks(t *testing.T) {
	nan := float32(math.NaN())
	for _, row := range []struct {
		e    fixed
		want string // empty means no error
	}{{fixed{{1, 2}, {3, 4}}, ""}, {fixed{{1, 2}}, "got 1 vectors for 2 texts"}, {fixed{{1, 2}, {3}}, "has 1 values, and the vector of the first text has 2"},
		{fixed{{1, 2}, {nan, 1}}, "text 1: value 0"}, {fixed{{1, 2}, {0, 0}}, "no direction"}, {fixed{{}, {}}, "empty vector"}} {
		got, err := store.Embed(t.Context(), row.e, store.ForQuery, "a", "b")
		if row.want == "" {
			if err != nil || len(got) != 2 || got[1].Model != "fixed" || got[1].Values[0] != 3 {
				t.Errorf("%v: %v, %v", row.e, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, want %q", row.e, err, row.want)
		}
	}
}
