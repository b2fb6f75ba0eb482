package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
)

// chain is a value that nests n times below member.
func chain(member string, n int, end string) string {
	return `{"v":` + strings.Repeat(`{"`+member+`":`, n) + end + strings.Repeat(`}`, n) + `}`
}

// The schemas are recursive in several ways, and the deep values fit none of them. Without a bound
// the work would double with each level. The values are rejected soon; the time limit has room for
// a busy machine.
func TestChecksAreBounded(t *testing.T) {
	soak.Sequential(t)
	two := `{"type":"object","properties":{"c":{"$ref":"#/$defs/n"},"k":{"const":1}},"required":["c"]},{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}},"required":["c"]}`
	var steps strings.Builder // each definition uses the next definition twice
	for i := range 40 {
		fmt.Fprintf(&steps, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, tt := range map[string]struct{ schema, args string }{
		"anyOf":                       {`{"properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"integer"},` + two + `]}}}`, chain("c", 60, `"x"`)},
		"oneOf":                       {`{"properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"oneOf":[{"type":"integer"},` + two + `]}}}`, chain("c", 60, `"x"`)},
		"draft 7":                     {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"integer"},` + two + `]}}}`, chain("c", 60, `"x"`)},
		"inside a not":                {`{"properties":{"v":{"not":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"anyOf":[{"type":"integer"},` + two + `]}}}`, chain("c", 60, `"x"`)},
		"the root itself":             {`{"properties":{"v":{"anyOf":[{"$ref":"#"},{"$ref":"#","minProperties":1}]}},"additionalProperties":false}`, `{"v":` + chain("v", 60, `{"w":1}`) + `}`},
		"a pattern as well":           {`{"properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":["object","null"],"properties":{"c":{"$ref":"#/$defs/n"}},"patternProperties":{"^c":{"$ref":"#/$defs/n"}}}}}`, chain("c", 60, `"x"`)},
		"one value, many definitions": {`{"properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{` + steps.String() + `"d40":{"type":"string"}}}`, `{"v":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			tool := takes(tt.schema)
			tool.NoRepair = strings.HasPrefix(name, "a") // repair is bounded too
			if name == "one value, many definitions" {
				// No value can be checked, so the tool is refused.
				if err := tool.Check(); err == nil || !strings.Contains(err.Error(), "refers to itself for the same value, or through more than 64 schemas") {
					t.Errorf("Check: %v", err)
				}
				return
			}
			start := time.Now()
			x := execute(t, tool, tt.args)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if x.Outcome != pawl.OutcomeInvalid || !strings.Contains(x.Result.Text(), "cannot be checked in reasonable time") {
				t.Errorf("%s: %s", x.Outcome, x.Result.Text())
			}
		})
	}
}

// Values that fit are not affected: neither large nor deep values come near the bound, and
// concurrent checks do not share it.
func TestTheBoundIsFarFromWhatFits(t *testing.T) {
	soak.Sequential(t)
	tool := takes(`{"properties":{"v":{"$ref":"#/$defs/node"}},"required":["v"],"additionalProperties":false,"$defs":{"node":{"anyOf":[
		{"type":"object","properties":{"kind":{"const":"leaf"},"text":{"type":"string"}},"required":["kind","text"],"additionalProperties":false},
		{"type":"object","properties":{"kind":{"enum":["list","set"]},"items":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["kind","items"],"additionalProperties":false}]}}}`)
	leaves := strings.TrimSuffix(strings.Repeat(`{"kind":"leaf","text":"t"},`, 20_000), ",")
	deep := strings.Repeat(`{"kind":"set","items":[`, 12) + leaves[:27*4-1] + strings.Repeat(`]}`, 12)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, v := range []string{`{"kind":"list","items":[` + leaves + `]}`, deep} {
				if err := tool.Validate(json.RawMessage(`{"v":` + v + `}`)); err != nil {
					t.Errorf("%d bytes: %v", len(v), err)
				}
			}
		})
	}
	wg.Wait()
}
