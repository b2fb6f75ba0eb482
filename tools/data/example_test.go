package data_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/data"
)

func Example() {
	var reg pawl.Registry
	tools, _ := data.New(nil).Tools(context.Background())
	if err := reg.Add(tools...); err != nil {
		panic(err)
	}
	// These are arguments that a model would write. The text of the file is passed unchanged.
	for _, c := range []struct{ name, args string }{
		{"data_parse", `{"content":"region,amount\nnorth,0.1\nsouth,12\nnorth,0.2\n","limit":2}`},
		{"data_aggregate", `{"records":"region,amount\nnorth,0.1\nsouth,12\nnorth,0.2\n","group_by":["region"],"metrics":[{"column":"amount","op":"sum"}]}`},
		{"data_filter", `{"records":[{"id":"007"},{"id":"7"}],"where":[{"column":"id","op":"==","value":7}]}`},
		{"data_transform", `{"records":[{"id":"007"},{"id":"7"}],"sort_by":"name"}`},
	} {
		fmt.Println(reg.Execute(context.Background(), c.name, json.RawMessage(c.args)).Result.Text())
	}
	// Output:
	// {"count":3,"truncated":true,"total":3,"returned":2,"next_offset":2,"columns":["region","amount"],"records":[{"region":"north","amount":"0.1"},{"region":"south","amount":"12"}]}
	// {"count":2,"groups":[{"region":"north","sum_amount":0.3},{"region":"south","sum_amount":12}]}
	// {"count":1,"records":[{"id":"7"}]}
	// sort_by: unknown column "name"; the columns are "id"
}
