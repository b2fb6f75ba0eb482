package cli

import (
	"context"
	"os"
	"testing"

	"github.com/pawl-go/pawl"
)

// A closed output cancels the run in an orderly way, so that it can be saved.
func TestAttended(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ctx, sys := Attended(t.Context(), &System{Out: writer, Err: writer}, pawl.ErrCancelled)
	if _, err := sys.Out.Write([]byte("hello\n")); err != nil || ctx.Err() != nil {
		t.Fatalf("somebody reads: got %v, %v", err, ctx.Err())
	}
	reader.Close()
	if _, err := sys.Out.Write([]byte("hello\n")); err == nil {
		t.Error("a write to nobody succeeded")
	}
	if got := context.Cause(ctx); got != pawl.ErrCancelled {
		t.Errorf("got cause %v, want %v", got, pawl.ErrCancelled)
	}
}
