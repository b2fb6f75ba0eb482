package nearest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/nearest"
)

func ExampleWord() {
	fmt.Println(nearest.Word("fileread", []string{"file_write", "file_read"}))
	fmt.Printf("%q\n", nearest.Word("weather", []string{"file_write", "file_read"}))
	// Output:
	// file_read
	// ""
}

func TestWord(t *testing.T) {
	words := []string{"file_read", "file_write", "a", "lat", strings.Repeat("long", 40)}
	for s, want := range map[string]string{"": "", "b": "", "A": "a", "lng": "", "FILE-READ": "file_read", "file.write": "file_write", "file_raed": "file_read", "quite another": "",
		strings.Repeat("long", 40): "", strings.Repeat("x", 1<<16): ""} {
		if got := nearest.Word(s, words); got != want {
			t.Errorf("%.20q: got %q, want %q", s, got, want)
		}
	}
}
