package dialect_test

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/dialect"
)

func Example() {
	c, err := dialect.OpenAIStrict.Compile([]byte(`{"type":"object","properties":{
		"city": {"type":"string", "minLength":1},
		"unit": {"enum":["C","F"]}
	}, "required":["city"], "additionalProperties":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(string(c.Schema), `},"`, "},\n\""))
	for _, l := range c.Losses {
		fmt.Println(l.Kind, l)
	}
	fmt.Println(string(c.Restore([]byte(`{"city":"Oslo","unit":null}`))))
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"at least 1 character"},
	// "unit":{"type":["string","null"],"enum":["C","F",null]}},
	// "required":["city","unit"],"additionalProperties":false}
	// looser /properties/city: minLength: not enforced, but described: at least 1 character
	// reshaped /properties/unit: required: null stands for leaving the field out
	// {"city":"Oslo"}
}
