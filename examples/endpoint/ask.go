package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// ask answers the question in {"question": "…"} with {"answer": "…"}. The status is 503 if the
// model gives no answer.
func ask(shop stock, model llm.Model) http.HandlerFunc {
	type lookup struct {
		Article string `json:"article" jsonschema:"the name in the singular, such as lamp"`
	}
	look := pawl.Func("stock", "Number of pieces in stock.", func(_ context.Context, in lookup) (int, error) {
		if n, ok := shop[in.Article]; ok {
			return n, nil
		}
		return 0, fmt.Errorf("no article has the name %q", in.Article)
	})
	look.Effect = pawl.EffectRead
	agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{look}, Instructions: "Answer questions about our stock."}
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Question string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&in); err != nil || in.Question == "" {
			http.Error(w, `want {"question": "…"}`, http.StatusBadRequest)
			return
		}
		res, err := agent.Run(r.Context(), llm.User(in.Question))
		if err != nil {
			log.Print(err)
			http.Error(w, "no answer now, try again later", http.StatusServiceUnavailable)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"answer": res.Text()})
	}
}
