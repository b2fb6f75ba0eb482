package vcr_test

import (
	"fmt"

	"github.com/pawl-go/pawl/recording/vcr"
)

// A cassette of go-vcr becomes a recording, without its key.
func Example() {
	r, err := vcr.Parse([]byte(`version: 2
interactions:
- request:
    method: POST
    url: https://api.openai.com/v1/chat/completions
    headers: {Authorization: [Bearer sk-secret], Content-Type: [application/json]}
    body: '{"model":"m"}'
  response:
    code: 200
    body: '{"choices":[]}'
`), nil)
	if err != nil {
		panic(err)
	}
	e := r.Exchanges[0]
	fmt.Println(e.Request.Header, string(e.Request.Body), e.Response.Status, string(e.Response.Body))
	// Output: map[content-type:application/json] {"model":"m"} 200 {"choices":[]}
}
