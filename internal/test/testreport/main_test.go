package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"testreport": main})
}

// TestScripts plays testdata/*.txt: each is one output of go test, and what the command makes of
// it. skips.txt is the negative control for the rule that as root on Debian a skip is a failure.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE") != ""})
}
