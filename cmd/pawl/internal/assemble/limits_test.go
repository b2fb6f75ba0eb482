package assemble

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// Each limit of pawl.LimitInfos with a flag has that flag, and each limit that ends a run has a
// hint.
func TestLimitFlags(t *testing.T) {
	flags := map[string]reflect.StructField{}
	for f := range reflect.TypeFor[limitFlags]().Fields() {
		flags["--"+f.Tag.Get("name")] = f
	}
	for _, info := range pawl.LimitInfos() {
		if info.Flag == "" {
			continue
		}
		f, ok := flags[info.Flag]
		text := cli.FlagTexts()[f.Tag.Get("help")]
		switch {
		case !ok:
			t.Errorf("there is no flag %s", info.Flag)
		case text.Help != info.Help || text.Sets != "limits."+string(info.Name) || f.Tag.Get("placeholder") != info.Unit:
			t.Errorf("%s has the text %+v and the tag %s", info.Flag, text, f.Tag)
		case !strings.HasPrefix(raised(info.Name), info.Flag+" "):
			t.Errorf("the hint of %s is %q", info.Name, raised(info.Name))
		}
		delete(flags, info.Flag)
	}
	for name := range flags {
		t.Errorf("pawl.LimitInfos has no limit with the flag %s", name)
	}

	// Negative control: a limit of a later version has a hint that names no flag of its own.
	if got := raised("a later one"); !strings.HasSuffix(got, "pawl run --help") {
		t.Errorf("the hint of an unknown limit is %q", got)
	}
}
