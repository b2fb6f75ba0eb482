package plain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawl-go/pawl/pawltest/hostile/internal/plain"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": "Rain."}}}})
	}))
	defer server.Close()
	loop := &plain.Loop{URL: server.URL}
	fmt.Println(loop.Run(context.Background(), "The weather in Oslo?"))
	// Output: Rain. <nil>
}
