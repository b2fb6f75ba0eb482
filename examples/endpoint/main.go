// Command endpoint is a shop's stock service with one endpoint added: POST /ask answers questions
// with the help of a model that can look up the stock. File ask.go has all of it. The tests need
// neither a key nor a mock. The command needs OPENAI_API_KEY.
//
//	go run ./examples/endpoint &
//	curl -d '{"question":"Can I buy three lamps?"}' http://localhost:8080/ask
package main

import (
	"fmt"
	"log"
	"net/http"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/openai"
)

// stock is the number of pieces of each article.
type stock map[string]int

func main() {
	shop := stock{"lamp": 7, "chair": 0}
	log.Fatal(http.ListenAndServe("localhost:8080", routes(shop, openai.New("gpt-6.1-terra", nil))))
}

// routes is the service. The line with ask is new.
func routes(shop stock, model llm.Model) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stock/{article}", shop.show)
	mux.Handle("POST /ask", ask(shop, model))
	return mux
}

// show is an endpoint that the service had before.
func (s stock) show(w http.ResponseWriter, r *http.Request) {
	n, ok := s[r.PathValue("article")]
	if !ok {
		http.Error(w, "no such article", http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, n)
}
