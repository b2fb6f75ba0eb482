package dialect_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawl-go/pawl/internal/dialect"
)

// validator validates values as the core does: draft 2020-12, with formats, without loading other
// documents.
func validator(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem:tool", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:tool")
}

// compiled has the results of compiledOnce, by schema. No test of the package is parallel.
var compiled = map[string]struct {
	schema *jsonschema.Schema
	err    error
}{}

// compiledOnce is validator for schemas that are needed often: every dialect needs the originals,
// and every text needs the schema of its format.
func compiledOnce(schema []byte) (*jsonschema.Schema, error) {
	c, ok := compiled[string(schema)]
	if !ok {
		c.schema, c.err = validator(schema)
		compiled[string(schema)] = c
	}
	return c.schema, c.err
}

// tally counts the comparisons.
type tally struct{ schemas, values, fit, looser, stricter int }

// compare creates n values for a schema, n values for its output c, and similar values, adds the
// values in given, and checks both directions: a value that the output accepts and the original
// refuses needs a Looser loss, and a value that the original accepts and that cannot be sent needs
// a Stricter loss.
func compare(t *testing.T, d *dialect.Dialect, schema []byte, c *dialect.Compiled, n int, seed uint64, sum *tally,
	given ...any) {
	t.Helper()
	original, err := compiledOnce(schema)
	if err != nil {
		return // the core refuses the tool
	}
	root, sentRoot := decode(schema).(node), decode(c.Schema).(node)
	sentTakes := func(v any) bool { return takes(sentRoot, sentRoot, v) }
	if !enforced(d.Name) {
		sent, err := validator(c.Schema)
		if err != nil {
			t.Errorf("%s: what is sent is no JSON Schema: %v\n%s\n%s", d.Name, err, schema, c.Schema)
			return
		}
		sentTakes = func(v any) bool { return sent.Validate(v) == nil }
	}
	has := func(k dialect.Kind) bool {
		return slices.ContainsFunc(c.Losses, func(l dialect.Loss) bool { return l.Kind == k })
	}
	for _, l := range c.Losses {
		if l.Keyword == "properties" { // a field has another name; TestRestore checks these
			return
		}
	}
	looser, stricter := has(dialect.Looser), has(dialect.Stricter)
	sum.schemas++
	r := rand.New(rand.NewPCG(seed, 7))
	from, to := &maker{r, root}, &maker{r, sentRoot}
	for i := range len(given) + n*4 {
		var v any
		if i%2 == 0 {
			v = from.value(root, 0)
		} else {
			v = to.value(sentRoot, 0)
		}
		for range (i / 2) % 3 {
			v = from.near(v)
		}
		if i < len(given) {
			v = given[i]
		}
		if _, ok := v.(node); !ok {
			continue
		}
		sum.values++
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if sentTakes(v) {
			sum.fit++
			restored := c.Restore(b)
			if original.Validate(decode(restored)) != nil {
				sum.looser++
				if !looser {
					t.Errorf("%s: %s fits what is sent, %s not the original, and no loss says so\noriginal %s\nsent     %s\nlosses   %v\n%v",
						d.Name, b, restored, schema, c.Schema, c.Losses, original.Validate(decode(restored)))
					return
				}
			}
		}
		if original.Validate(v) == nil {
			sum.fit++
			say := v
			if enforced(d.Name) {
				say = spellOut(sentRoot, sentRoot, v)
			}
			if !sentTakes(say) {
				sum.stricter++
				if !stricter {
					t.Errorf("%s: %s fits the original, cannot be sent, and no loss says so\noriginal %s\nsent     %s\nlosses   %v", d.Name, b, schema, c.Schema, c.Losses)
					return
				}
				continue
			}
			if s, err := json.Marshal(say); err != nil {
				t.Fatal(err)
			} else if back := c.Restore(s); original.Validate(decode(back)) != nil && !looser {
				t.Errorf("%s: %s is said as %s and comes back as %s", d.Name, b, s, back)
				return
			}
		}
	}
}
