package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"testreport": main})
}

// TestScripts plays testdata/*.txt: each has the output of go test and the report of the command.
// skips.txt is the negative control for the rule that a skip is a failure for root on Debian.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE") != ""})
}
